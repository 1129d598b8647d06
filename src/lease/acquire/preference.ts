import { concurrently } from '../../base/concurrently.js';
import type { ListedObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec, readSticky } from '../model/lease-codec.js';
import { nodeIdOf } from '../model/lease-state.js';
import type { CandidateScan } from './candidate-scan.js';
import type { Candidate } from './candidates.js';
import type { AcquireContext } from './claim.js';

/** Of how many objects the mark is read at most, the oldest first, and of how many at a time. */
const READS = { most: 64, atOnce: 16 } as const;

/** Which of the free ids a task would rather have. It orders them and decides nothing else. */
export class Preference {
  constructor(private readonly context: Pick<AcquireContext, 'session' | 'retry' | 'sticky' | 'preferId'>) {}

  /**
   * The candidates in groups that are tried one after the other: the preferred id; those that a task with the
   * same key held last; those without a key; others, the longest free first. Among many, and in a fleet where
   * tasks compete, only the preferred id is told apart, so that a storm costs no request more.
   */
  async inOrder(candidates: readonly Candidate[], isContended: boolean): Promise<Candidate[][]> {
    const { sticky, preferId } = this.context;
    const preferred = candidates.filter(({ id }) => id === preferId);
    const others = candidates.filter(({ id }) => id !== preferId);
    const used = others.filter(({ row }) => row !== undefined && row.size > 0);
    if (sticky === undefined || isContended || used.length > READS.most) return [preferred, others];
    const marks = await this.#marks(used);
    const mine = used.filter(({ key }) => marks.get(key) === sticky);
    const free = others.filter(({ key }) => marks.get(key) === undefined);
    const foreign = used.filter((candidate) => !mine.includes(candidate) && !free.includes(candidate));
    return [preferred, mine, free, foreign.sort(byAge)];
  }

  /**
   * The lease with the own mark that cannot be taken yet, if there is one among the oldest: the task's former
   * one, unless another task has the same key.
   */
  async former({ listing, cluster }: CandidateScan): Promise<Candidate | undefined> {
    const { size } = cluster.config;
    const held = listing.objects
      .map((row) => ({ id: nodeIdOf(row.key) ?? size, key: row.key, row }))
      .filter(({ id, row }) => id < size && isHeld(row, cluster.config))
      .sort(byAge)
      .slice(0, READS.most);
    const marks = await this.#marks(held);
    return held.find(({ key }) => marks.get(key) === this.context.sticky);
  }

  /**
   * When a lease can be found expired, on the monotonic clock, by a scan that shows it as it was; undefined
   * once it can be taken, or has been written.
   */
  expiryOf(
    { key, row: before }: Candidate,
    { listing, cluster, scannedAt }: CandidateScan,
  ): number | undefined {
    const { durationMs, graceMs } = cluster.config;
    const row = listing.objects.find((each) => each.key === key);
    if (row === undefined || row.etag !== before?.etag || !isHeld(row, cluster.config)) return undefined;
    const inMs = durationMs + graceMs - row.age.min + 1;
    return scannedAt + this.context.session.untilTold(inMs, { ...row, storeTime: listing.storeTime });
  }

  async #marks(candidates: readonly Candidate[]): Promise<Map<string, string | undefined>> {
    const { session, retry } = this.context;
    const marks = await concurrently(candidates, READS.atOnce, async ({ key }) => {
      const object = await retry((call) => session.read(key, call));
      return [key, object && readSticky(object.metadata)] as const;
    });
    return new Map(marks);
  }
}

/** Whether no task can take it, by the lower bound of its age (rule 4). */
function isHeld({ size, age }: ListedObject, { durationMs, graceMs }: ClusterConfig): boolean {
  return size > nativeCodec.tombstoneMaxBytes && age.min <= durationMs + graceMs;
}

function byAge(a: Candidate, b: Candidate): number {
  return (b.row?.age.min ?? 0) - (a.row?.age.min ?? 0);
}
