import type { Interval } from '../../store/lease-store.js';
import { type TenureEnd, type TenureHistory, withPast } from './tenure-history.js';

/** The versions of other nodes that a node knows: node id → version. */
export type KnownNodes = Readonly<Record<number, number>>;

/** A lease object that names a holder. */
export interface HeldLease {
  readonly kind: 'held';
  readonly taskId: string;
  /** The fencing token of this tenure, 1 or more. */
  readonly version: number;
  /**
   * Expiry in store time, milliseconds since the Unix epoch. It is for readers and for the id generator, and
   * never decides whether a lease has expired.
   */
  readonly timestamp: number;
  readonly durationMs: number;
  readonly knownNodes: KnownNodes;
  /**
   * Random, one for each attempt to acquire. It distinguishes a task's own writes from those of another run
   * with the same task id (rule 5).
   */
  readonly nonce: string;
  /** Counts the writes of this tenure, so that each one has a different body, and so a different etag. */
  readonly renewal: number;
  /** When the tenure began, in store time, milliseconds since the Unix epoch. */
  readonly acquiredAt: number;
  /**
   * Bits of a node id in the unique ids that this tenure makes from now on, 8 … 16; 0 for a holder in a foreign
   * format. `scale` waits for it.
   */
  readonly idWidth: number;
  /** The last timestamp, in store time, of this node id's unique ids with fewer bits. */
  readonly narrowIdsUntil: number;
  /** The mark of the holder's sticky key. A hint: it decides only which free id is tried first. */
  readonly sticky?: string | undefined;
  /** The tenures before. */
  readonly history?: TenureHistory | undefined;
  /** The mark of the store's epoch in which the id was taken. */
  readonly epoch?: string | undefined;
  /** Of a task that takes part in the ownership of shards: the epoch of `shards.json` that it follows. */
  readonly shards?: { readonly epoch: number } | undefined;
  /** Where the task is reached, as it says itself. */
  readonly address?: string | undefined;
}

/** What work that is built on the lease adds to it. */
export type LeaseMark = Pick<HeldLease, 'shards' | 'address'>;

/** Whether such work has set a mark, and the lease shows none yet. */
export const lacksMark = (held: HeldLease, { shards }: LeaseMark) => shards !== undefined && !held.shards;

/** A tombstone: no task holds the id, and its version is kept. */
export interface ReleasedLease {
  readonly kind: 'released';
  /** The highest version that was ever used. */
  readonly version: number;
  /** The last `timestamp` that a holder wrote, or 0 when unknown. */
  readonly timestamp: number;
  /**
   * How long the former holder may still trust its lease, in milliseconds from the writing of this tombstone:
   * 0 when that holder released it, the lease's duration when another task did.
   */
  readonly durationMs: number;
  /**
   * The last id timestamp of this node id, in store time, as its holder said at the release: before
   * `timestamp`. Undefined where it is not known.
   */
  readonly stampedUntil: number | undefined;
  /** That of the last holder. */
  readonly sticky?: string | undefined;
  /** The tenures so far. */
  readonly history?: TenureHistory | undefined;
  /** That of the last tenure. */
  readonly epoch?: string | undefined;
}

/**
 * A tombstone of an id that must not be acquired (scale-down). Its `version` is 0 for an id that no task ever
 * held.
 */
export interface RetiredLease extends Omit<ReleasedLease, 'kind'> {
  readonly kind: 'retired';
  /** The cluster's generation in which it was retired; infinity in a foreign format. */
  readonly generation: number;
}

/** The content of a lease object. */
export type LeaseState = { readonly kind: 'vacant' } | HeldLease | ReleasedLease | RetiredLease;

/**
 * The state of a node id. `held`: not expired. `expired`: its holder no longer renews; may be taken. `evicted`:
 * released by force or repaired; not available while the old holder may still trust its lease. `vacant`: never
 * held; until bootstrap is complete, also an id without an object. `absent`: no object; damage, except in a
 * foreign format. `unreadable`: damage.
 */
export type NodeIdState = LeaseState['kind'] | 'expired' | 'evicted' | 'absent' | 'unreadable';

/** The first node id that does not exist: 65,536 ids of 16 bits less the 8 reserved ones. */
export const MAX_NODE_IDS = 65_528;

/** The first millisecond since the Unix epoch that does not fit into a unique id. */
export const END_OF_TIME = 2 ** 48;

/**
 * The shortest and the longest duration, in milliseconds: a single slow request would lose a shorter lease.
 */
export const DURATION_MS = { least: 1_000, most: 86_400_000 } as const;

/** The longest grace, in milliseconds. */
export const MOST_GRACE_MS = 3_600_000;

/** The key of a node id's lease object. */
export function leaseKey(nodeId: number): string {
  return `${nodeId}.json`;
}

/** The node id of a lease object's key, or undefined for every other object. */
export function nodeIdOf(key: string): number | undefined {
  const id = Number(key.slice(0, -'.json'.length));
  return Number.isInteger(id) && id >= 0 && id < MAX_NODE_IDS && leaseKey(id) === key ? id : undefined;
}

/** The highest version used so far; 0 for an id that no task ever held. */
export function versionOf(state: LeaseState): number {
  return state.kind === 'vacant' ? 0 : state.version;
}

/** The last expiry that a holder wrote, in store time; 0 for none. */
export function timestampOf(state: LeaseState): number {
  return state.kind === 'vacant' ? 0 : state.timestamp;
}

/**
 * The last id timestamp, in store time, of all tenures so far; 0 without a tenure, undefined if there was one
 * of which nothing is known.
 */
export function stampedUntilOf(state: LeaseState): number | undefined {
  if (state.kind === 'vacant' || state.version === 0) return 0;
  if (state.kind !== 'held' && state.stampedUntil !== undefined) return state.stampedUntil;
  // The ids of a tenure carry times before its timestamp.
  return state.timestamp === 0 ? undefined : state.timestamp - 1;
}

/**
 * The shortest grace for a duration, in milliseconds: a thousandth, since the clocks of holder and store may
 * drift apart, each by some 200 ppm.
 */
export function leastGraceMs(durationMs: number): number {
  return Math.ceil(durationMs / 1_000);
}

/** The age, in milliseconds, above which a lease with this duration may be taken (rule 4). */
export function takenAfterMs(durationMs: number, graceMs: number): number {
  return durationMs + Math.max(graceMs, leastGraceMs(durationMs));
}

/** Whether a contender may take the lease now (rule 4). */
type Availability =
  | { readonly kind: 'free'; readonly from: 'vacant' | 'released' | 'expired' }
  /** Not available before its age has grown by `waitMs`. */
  | { readonly kind: 'held'; readonly waitMs: number }
  | { readonly kind: 'retired' };

/**
 * Rule 4: a held lease may be taken only when its age exceeds the duration in that lease plus the grace. The
 * age is the lower bound by the store's own clock. No wall clock is used.
 */
export function availability(state: LeaseState, age: Interval, graceMs: number): Availability {
  if (state.kind === 'vacant') return { kind: 'free', from: 'vacant' };
  if (state.kind === 'retired') return { kind: 'retired' };
  const { durationMs } = state;
  if (state.kind === 'released' && durationMs === 0) return { kind: 'free', from: 'released' };
  const limitMs = takenAfterMs(durationMs, graceMs);
  return age.min > limitMs
    ? { kind: 'free', from: 'expired' }
    : { kind: 'held', waitMs: limitMs - age.min + 1 };
}

/**
 * Whether an age may exceed a limit; without an upper bound, whether it certainly does. A hint: rule 4 uses
 * the lower bound alone.
 */
export function mayExceed({ min, max }: Interval, limitMs: number): boolean {
  return (Number.isFinite(max) ? max : min) > limitMs;
}

/**
 * The state of an id of the cluster: an id that was retired in an earlier generation counts as released. Its
 * age counts from its retirement.
 */
export function revived(state: LeaseState, generation: number): LeaseState {
  if (state.kind !== 'retired' || state.generation >= generation) return state;
  const { generation: _, ...tombstone } = state;
  return state.version === 0 ? { kind: 'vacant' } : { ...tombstone, kind: 'released' };
}

/** The data of a task that takes an id. */
interface NewTenure {
  readonly taskId: string;
  readonly nonce: string;
  readonly durationMs: number;
  /** Store time, milliseconds since the Unix epoch, a lower bound. */
  readonly storeNow: number;
  /** The last timestamp of unique ids of other tasks that could equal an id of this tenure. */
  readonly stampedUntil: number;
  readonly idWidth: number;
  readonly sticky?: string | undefined;
  /** The mark of the store's epoch. */
  readonly epoch?: string | undefined;
}

/** Whether the state may be older than one that the store has lost: no tenure of this epoch has written it. */
export function mayBeOutdated(state: LeaseState, epoch: string | undefined): boolean {
  return epoch !== undefined && (state.kind === 'vacant' || state.epoch !== epoch);
}

/** More numbers than are given out in a second. */
export const PER_SECOND = 2 ** 20;

/**
 * A number that those after `from` cannot have reached: by store time, so that what is lost twice is passed as
 * well; else, where a clock is behind, by a second's.
 *
 * @param storeNow milliseconds since the Unix epoch
 */
export function leapt(from: number, storeNow: number): number {
  const byTime = Math.floor((storeNow * PER_SECOND) / 1_000);
  return byTime > from ? byTime : from + PER_SECOND;
}

/** A new tenure: the next version (rule 2), and a `timestamp` beyond that of the previous tenure. */
export function acquired(previous: LeaseState, tenure: NewTenure): HeldLease {
  return {
    kind: 'held',
    taskId: tenure.taskId,
    // Later versions may have been lost with the store's last writes (rule 12).
    version:
      (mayBeOutdated(previous, tenure.epoch)
        ? leapt(versionOf(previous), tenure.storeNow)
        : versionOf(previous)) + 1,
    timestamp: Math.max(
      timestampOf(previous) + 1,
      tenure.stampedUntil + 1,
      Math.floor(tenure.storeNow) + tenure.durationMs,
    ),
    durationMs: tenure.durationMs,
    knownNodes: {},
    nonce: tenure.nonce,
    renewal: 0,
    acquiredAt: Math.floor(tenure.storeNow),
    idWidth: tenure.idWidth,
    narrowIdsUntil: tenure.stampedUntil,
    sticky: tenure.sticky,
    history: historyOf(previous),
    epoch: tenure.epoch,
  };
}

/** The tenures of a lease that a task takes. A lease that is still held has expired then. */
function historyOf(state: LeaseState): TenureHistory | undefined {
  if (state.kind === 'vacant') return undefined;
  return state.kind === 'held' ? withPast(state, 'expired', state.timestamp) : state.history;
}

/** Whether the last holder of an id had the same sticky key, or another or none. `none`: there was no holder. */
export type PreviousHolder = 'same' | 'other' | 'none';

/** The last holder by the state that an acquiring write replaces, for a task with this mark. */
export function previousHolder(previous: LeaseState, sticky: string | undefined): PreviousHolder {
  if (previous.kind === 'vacant' || previous.version === 0) return 'none';
  return sticky !== undefined && previous.sticky === sticky ? 'same' : 'other';
}

/** A width that a tenure has adopted. */
export type AdoptedWidth = Pick<HeldLease, 'idWidth' | 'narrowIdsUntil'>;

/** The same tenure, prolonged. `renewal` must be one that this tenure has not used yet. */
export function renewed(
  held: HeldLease,
  change: {
    renewal: number;
    durationMs: number;
    storeNow: number;
    knownNodes: KnownNodes;
    width: AdoptedWidth;
    mark?: LeaseMark;
  },
): HeldLease {
  return {
    ...held,
    shards: change.mark?.shards,
    address: change.mark?.address,
    ...(change.width.idWidth > held.idWidth && change.width),
    renewal: change.renewal,
    durationMs: change.durationMs,
    timestamp: Math.max(held.timestamp, Math.floor(change.storeNow) + change.durationMs),
    knownNodes: change.knownNodes,
  };
}

/**
 * The end of a tenure: a tombstone that keeps version and timestamp, so that neither its version nor its etag
 * ever repeats.
 */
export function released(held: HeldLease, stampedUntil: number | undefined, endedAt: number): ReleasedLease {
  const { version, timestamp, sticky, epoch } = held;
  const history = withPast(held, 'released', endedAt);
  return { kind: 'released', version, timestamp, durationMs: 0, stampedUntil, sticky, history, epoch };
}

/** A tombstone of an id that the cluster gives up. A holder must release first, or be {@link evicted}. */
export function retired(state: Exclude<LeaseState, HeldLease>, generation: number): RetiredLease {
  if (state.kind === 'vacant')
    return { kind: 'retired', version: 0, timestamp: 0, durationMs: 0, stampedUntil: undefined, generation };
  return { ...state, kind: 'retired', generation };
}

/**
 * An operator's forced release (rule 9): the version rises, and the holder finds a conflict when it renews.
 * No task may take the id while that holder can trust its lease (rule 1). That is one duration, or no time if
 * the lease has `expired` already. The history says how the tenure `ended`, and when.
 */
export function evicted(
  held: HeldLease,
  expired = false,
  ended: readonly [end: TenureEnd, at: number] = ['expired', held.timestamp],
): ReleasedLease {
  const durationMs = expired ? 0 : held.durationMs;
  return {
    kind: 'released',
    version: held.version + 1,
    timestamp: held.timestamp,
    durationMs,
    stampedUntil: undefined,
    sticky: held.sticky,
    history: expired ? historyOf(held) : withPast(held, ...ended),
    epoch: held.epoch,
  };
}
