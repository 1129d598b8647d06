import { concurrently, REQUESTS_AT_ONCE } from '../../base/concurrently.js';
import type { ListedObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec, readSticky } from '../model/lease-codec.js';
import { nodeIdOf } from '../model/lease-state.js';
import type { CandidateScan } from './candidate-scan.js';
import type { Candidate } from './candidates.js';
import type { AcquireContext } from './claim.js';

/** Of how many objects the mark is read at most, the oldest first. */
const MAX_READS = 64;

/** Which of the free ids a task would rather have. It orders them and decides nothing else. */
export class Preference {
  /** By key and etag. */
  readonly #marks = new Map<string, string | undefined>();

  constructor(
    private readonly context: Pick<AcquireContext, 'session' | 'retry' | 'sticky' | 'preferId' | 'shown'>,
  ) {}

  /**
   * The candidates in groups that are tried one after the other: the preferred id; those that a task with the
   * same key held last, one by one, the one that was written last first; those without a key; others, the
   * longest free first. Among many, and in a fleet where tasks compete, only the preferred id is distinguished,
   * so that a storm costs no request more.
   */
  async inOrder(candidates: readonly Candidate[], isContended: boolean): Promise<Candidate[][]> {
    const { sticky, preferId } = this.context;
    const preferred = candidates.filter(({ id }) => id === preferId);
    const others = candidates.filter(({ id }) => id !== preferId);
    const used = others.filter(isUsed);
    if (sticky === undefined || isContended || used.length > MAX_READS) return [preferred, others];
    const mine = await this.#mine(used);
    const free = others.filter((candidate) => this.#markOf(candidate) === undefined);
    const foreign = used.filter((candidate) => !mine.includes(candidate) && !free.includes(candidate));
    return [preferred, ...mine.map((one) => [one]), free, foreign.sort(byAge)];
  }

  /**
   * The last lease with the own mark where that cannot be taken yet: the task's former one, unless another
   * task has the same key.
   */
  async former({ listing, candidates, cluster }: CandidateScan): Promise<Candidate | undefined> {
    const { size } = cluster.config;
    const held = listing.objects
      .map((row) => ({ id: nodeIdOf(row.key) ?? size, key: row.key, row }))
      .filter(({ id, row }) => id < size && this.#isHeld(row, cluster.config))
      .sort(byAge)
      .slice(0, MAX_READS);
    const free = candidates.filter(isUsed);
    const [last] = await this.#mine([...held, ...(free.length > MAX_READS ? [] : free)]);
    return last?.row && this.#isHeld(last.row, cluster.config) ? last : undefined;
  }

  /**
   * When a lease can be found expired, on the monotonic clock, by a scan that shows it as it was; undefined
   * once it can be taken, or has been written.
   */
  expiryOf(
    { key, row: before }: Candidate,
    { listing, cluster, scannedAt }: CandidateScan,
  ): number | undefined {
    const row = listing.objects.find((each) => each.key === key);
    if (row === undefined || row.etag !== before?.etag || !this.#isHeld(row, cluster.config))
      return undefined;
    const { session, shown } = this.context;
    const inMs = shown.takenAfterMs(key, cluster.config) - row.age.min + 1;
    return scannedAt + session.untilTold(inMs, { ...row, storeTime: listing.storeTime });
  }

  /** Those with the own mark, the one that was written last first. */
  async #mine(candidates: readonly Candidate[]): Promise<Candidate[]> {
    const { session, retry, sticky, shown } = this.context;
    const unread = candidates.filter((candidate) => !this.#marks.has(stateOf(candidate)));
    await concurrently(unread, REQUESTS_AT_ONCE, async ({ key }) => {
      const object = await retry((call) => session.read(key, call));
      if (object === undefined) return;
      this.#marks.set(`${key} ${object.etag}`, readSticky(object.metadata));
      shown.note(object);
    });
    return candidates.filter((candidate) => this.#markOf(candidate) === sticky).sort((a, b) => byAge(b, a));
  }

  #markOf(candidate: Candidate): string | undefined {
    return this.#marks.get(stateOf(candidate));
  }

  /** Whether no task can take it, by the lower bound of its age (rule 4). */
  #isHeld({ key, size, age }: ListedObject, cluster: ClusterConfig): boolean {
    return size > nativeCodec.tombstoneMaxBytes && age.min <= this.context.shown.takenAfterMs(key, cluster);
  }
}

/** Objects of different ids may have equal etags. */
function stateOf({ key, row }: Candidate): string {
  return `${key} ${row?.etag}`;
}

/** Whether a task has held it before. */
function isUsed({ row }: Candidate): boolean {
  return row !== undefined && row.size > 0;
}

function byAge(a: Candidate, b: Candidate): number {
  return (b.row?.age.min ?? 0) - (a.row?.age.min ?? 0);
}
