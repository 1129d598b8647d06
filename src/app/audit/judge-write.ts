import { isDeepStrictEqual } from 'node:util';
import { type LeaseState, revived, timestampOf, versionOf } from '../../core/lease/model/lease-state.js';
import type { TenureEnd } from '../../core/lease/model/tenure-history.js';
import type { TickRecord } from '../../node/locks/tick.js';
import type { Shard, ShardMap } from '../../node/shards/shard-map.js';

/** The promises, by what breaks them. */
export type Breach =
  | 'version-fell'
  | 'version-twice'
  | 'taken-early'
  | 'retired-taken'
  | 'foreign-write'
  | 'deleted'
  | 'shard-token';

/**
 * What a write was: how the tenure before it ended; `renewed`; `written` where there was no tenure before it, or
 * after damage.
 */
type Step = TenureEnd | 'renewed' | 'written' | Breach;

export const isEnd = (step: Step): step is TenureEnd =>
  ['released', 'expired', 'evicted', 'retired'].includes(step);

/** What is known of a write in addition to the object before it and after it. */
interface WriteFacts {
  /** The longest time that may have passed between the two writes, in milliseconds. */
  readonly elapsedMs: number;
  /** That of the cluster's settings. */
  readonly generation: number;
  /** Whether the object was unreadable or absent in between. */
  readonly damaged: boolean;
}

/** How long a holder, or the one before, may trust its lease after this write, in milliseconds. */
export const trustOf = (state: LeaseState) => (state.kind === 'vacant' ? 0 : state.durationMs);

/**
 * Judges a write of a lease object by the object before it (docs/design/protocol.md). A take-over is too early
 * within the duration in that object. Within the grace after it, the clocks of the store's servers may differ.
 */
export function judgeWrite(
  older: LeaseState,
  newer: LeaseState,
  { elapsedMs, generation, damaged }: WriteFacts,
): Step {
  const rise = versionOf(newer) - versionOf(older);
  if (rise < 0) return 'version-fell';
  // By `scale`, where a lost `cluster.json` has left the id retired.
  const reopened = older.kind === 'retired' && revived(older, older.generation + 1);
  if (isDeepStrictEqual(newer, reopened)) return 'written';
  // The unique ids of a tenure end before its timestamp, and those of the next one begin after it.
  const isBack = !damaged && timestampOf(newer) < timestampOf(older);
  if (newer.kind === 'held') {
    if (rise === 0) {
      const isSame = older.kind === 'held' && older.nonce === newer.nonce && older.taskId === newer.taskId;
      if (!isSame) return 'version-twice';
      return newer.renewal > older.renewal && !isBack ? 'renewed' : 'foreign-write';
    }
    if (older.kind === 'retired' && older.generation >= generation) return 'retired-taken';
  } else if (older.kind === 'held') {
    if (rise === 0) return newer.kind === 'released' && !isBack ? 'released' : 'foreign-write';
  } else if (newer.kind !== 'retired' || rise > 0) return damaged ? 'written' : 'foreign-write';
  // An eviction keeps others away for as long as the holder may trust its lease.
  const trustMs = trustOf(older);
  const isEviction = newer.kind !== 'held' && trustOf(newer) >= trustMs;
  if (!isEviction && trustMs > 0 && elapsedMs <= trustMs) return 'taken-early';
  if (isBack) return 'foreign-write';
  if (older.kind !== 'held') return 'written';
  return !isEviction ? 'expired' : newer.kind === 'retired' ? 'retired' : 'evicted';
}

/**
 * Whether a map of shards may follow another one (T1 and T3): its epoch is later, and the token of each owner is
 * that epoch, unless it was the owner before with the same token. So tokens rise.
 */
export function mayFollow(older: ShardMap, newer: ShardMap): boolean {
  const isNext = ({ owner, token }: Shard, at: number) => {
    const before = older.shards[at];
    const isSame = owner?.id === before?.owner?.id && owner?.version === before?.owner?.version;
    return owner === undefined || token === newer.epoch || (isSame && token === before?.token);
  };
  return newer.epoch > older.epoch && newer.shards.every(isNext);
}

/**
 * Whether a tick may follow another one: a later one, `once --forget`, or, unless the older one has succeeded,
 * its outcome or another attempt (rules O2 and O5).
 */
export function mayFollowTick(older: TickRecord, newer: TickRecord): boolean {
  if (newer.tick > older.tick || newer.outcome === 'forgotten') return true;
  const { outcome } = older;
  if (newer.tick < older.tick || (outcome !== undefined && outcome !== 'failed')) return false;
  return newer.attempt > older.attempt || (newer.nonce === older.nonce && outcome === undefined);
}
