import { concurrently } from '../../base/concurrently.js';
import { nativeCodec, readMark } from '../model/lease-codec.js';
import { nodeIdOf } from '../model/lease-state.js';
import type { CandidateScan } from './candidate-scan.js';
import type { Candidate } from './candidates.js';
import type { AcquireContext } from './claim.js';

/** Of how many objects the mark is read at most, the oldest first, and of how many at a time. */
const READS = { most: 64, atOnce: 16 } as const;

/** A held lease with the own mark: the task's former one, unless another task has the same key. */
export interface FormerLease {
  readonly id: number;
  readonly key: string;
  readonly etag: string;
  /** When it can be found expired unless it is renewed, on the monotonic clock. */
  readonly expiryAt: number;
}

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

  /** The lease with the own mark that looks held, if there is one among the oldest. */
  async former({ listing, candidates, cluster, scannedAt }: CandidateScan): Promise<FormerLease | undefined> {
    const { session, sticky } = this.context;
    const { size, durationMs, graceMs } = cluster.config;
    const free = new Set(candidates.map(({ key }) => key));
    const held = listing.objects
      .flatMap((row) => ({ id: nodeIdOf(row.key) ?? size, key: row.key, row }))
      .filter(({ id, key, row }) => id < size && row.size > nativeCodec.tombstoneMaxBytes && !free.has(key))
      .sort(byAge)
      .slice(0, READS.most);
    const marks = await this.#marks(held);
    const found = held.find(({ key }) => marks.get(key) === sticky);
    if (found === undefined) return undefined;
    const { id, key, row } = found;
    const inMs = durationMs + graceMs - row.age.min + 1;
    const { storeTime } = listing;
    return { id, key, etag: row.etag, expiryAt: scannedAt + session.untilTold(inMs, { ...row, storeTime }) };
  }

  async #marks(candidates: readonly Candidate[]): Promise<Map<string, string | undefined>> {
    const { session, retry } = this.context;
    const marks = await concurrently(candidates, READS.atOnce, async ({ key }) => {
      const object = await retry((call) => session.read(key, call));
      return [key, object && readMark(object.metadata)] as const;
    });
    return new Map(marks);
  }
}

function byAge(a: Candidate, b: Candidate): number {
  return (b.row?.age.min ?? 0) - (a.row?.age.min ?? 0);
}
