import type { Interval } from '../../store/lease-store.js';

/** What a node knows of the others: node id → version. */
export type KnownNodes = Readonly<Record<number, number>>;

/** A lease object that names a holder. */
export interface HeldLease {
  readonly kind: 'held';
  readonly taskId: string;
  /** The fencing token of this tenure, 1 or more. */
  readonly version: number;
  /** Expiry in store time, milliseconds since the Unix epoch. For readers and for the id generator; no expiry is decided by it. */
  readonly timestamp: number;
  readonly durationMs: number;
  readonly knownNodes: KnownNodes;
  /**
   * Random, one per attempt to acquire. The task id comes from outside, where two runs may be given the same one;
   * this is what tells a task's own writes from all others (rule 5).
   */
  readonly nonce: string;
  /** Counts the writes of this tenure, so that every one of them has a body, and so an etag, of its own. */
  readonly renewal: number;
  /** When the tenure began, in store time, milliseconds since the Unix epoch. */
  readonly acquiredAt: number;
  /**
   * How many bits a node id takes in the unique ids that this tenure makes from now on, 8 … 16: told to a `scale` that waits for all to use
   * so many. 0 for a holder that does not say.
   */
  readonly idWidth: number;
  /**
   * The last millisecond, in store time, that ids of this node id with fewer bits than that are stamped with, in this tenure or before;
   * undefined for a holder that does not say.
   */
  readonly narrowIdsUntil: number | undefined;
}

/** A tombstone: no task holds the id, and its version is kept. */
export interface ReleasedLease {
  readonly kind: 'released';
  /** The highest version that was ever used. */
  readonly version: number;
  /** The last `timestamp` that a holder wrote, or 0 when unknown. */
  readonly timestamp: number;
  /**
   * How long, from the writing of this tombstone, a holder that does not know of it yet may still trust its lease, in milliseconds:
   * 0 when the holder itself released it, the lease's duration when another task did.
   */
  readonly durationMs: number;
  /**
   * The last millisecond that a unique id of this node id was stamped with, in store time, where the holder itself said so when it released:
   * before `timestamp`, so that its successor need not wait for that to pass. Undefined where only `timestamp` is known.
   */
  readonly stampedUntil: number | undefined;
}

/** A tombstone of an id that must not be acquired (scale-down). */
export interface RetiredLease {
  readonly kind: 'retired';
  /** The highest version that was ever used; 0 for an id that no task ever held. */
  readonly version: number;
  readonly timestamp: number;
  /** As of {@link ReleasedLease}: for how long a holder that was retired by force may still trust its lease. */
  readonly durationMs: number;
  /** As of {@link ReleasedLease}. */
  readonly stampedUntil: number | undefined;
  /** The cluster's generation in which it was retired; undefined for a writer that does not say. */
  readonly generation: number | undefined;
}

/** What a lease object says. */
export type LeaseState = { readonly kind: 'vacant' } | HeldLease | ReleasedLease | RetiredLease;

/** The first node id that does not exist: 65,536 ids of 16 bits less the 8 reserved ones. */
export const MAX_NODE_IDS = 65_528;

/** The first millisecond since the Unix epoch that no unique id has bits for. */
export const END_OF_TIME = 2 ** 48;

/** How long a lease of a cluster may last, in milliseconds: a shorter one would be lost by a single slow request. */
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
 * The last millisecond in store time that any earlier tenure may have stamped a unique id with, 0 for none; undefined where there was a
 * tenure of which nothing is known.
 */
export function stampedUntilOf(state: LeaseState): number | undefined {
  if (state.kind === 'vacant' || state.version === 0) return 0;
  if (state.kind !== 'held' && state.stampedUntil !== undefined) return state.stampedUntil;
  // A tenure's ids are stamped before its timestamp.
  return state.timestamp === 0 ? undefined : state.timestamp - 1;
}

/**
 * The shortest grace for a duration, in milliseconds: a thousandth. A holder's clock that is slow and a store's that is fast count the
 * duration differently; bad quartz is off by some 200 ppm.
 */
export function leastGraceMs(durationMs: number): number {
  return Math.ceil(durationMs / 1_000);
}

/** Whether a contender may take the lease now (rule 4). */
export type Availability =
  | { readonly kind: 'free'; readonly from: 'vacant' | 'released' | 'expired' }
  /** Not before its age has grown by `waitMs`. */
  | { readonly kind: 'held'; readonly waitMs: number }
  | { readonly kind: 'retired' };

/**
 * Rule 4: a held lease may be taken only when the lower bound of its age, by the store's own clock, exceeds the duration that
 * stands in it plus the grace. No wall clock takes part.
 */
export function availability(state: LeaseState, age: Interval, graceMs: number): Availability {
  switch (state.kind) {
    case 'vacant':
      return { kind: 'free', from: 'vacant' };
    case 'retired':
      return { kind: 'retired' };
    case 'released':
      if (state.durationMs === 0) return { kind: 'free', from: 'released' };
      return onceExpired(state.durationMs, age, graceMs);
    case 'held':
      return onceExpired(state.durationMs, age, graceMs);
  }
}

function onceExpired(durationMs: number, age: Interval, graceMs: number): Availability {
  const limitMs = durationMs + Math.max(graceMs, leastGraceMs(durationMs));
  return age.min > limitMs ? { kind: 'free', from: 'expired' } : { kind: 'held', waitMs: limitMs - age.min + 1 };
}

/**
 * The state of an id that the cluster has: what was retired in an earlier generation is as good as released now. The age of such an object
 * counts from its retirement, as it does for other tombstones.
 */
export function revived(state: LeaseState, generation: number): LeaseState {
  if (state.kind !== 'retired' || state.generation === undefined || state.generation >= generation) return state;
  const { version, timestamp, durationMs, stampedUntil } = state;
  return version === 0 ? { kind: 'vacant' } : { kind: 'released', version, timestamp, durationMs, stampedUntil };
}

/** What a task brings along when it takes an id. */
export interface Claim {
  readonly taskId: string;
  readonly nonce: string;
  readonly durationMs: number;
  /** Store time, milliseconds since the Unix epoch, a lower bound. */
  readonly storeNow: number;
  /** The last millisecond that another task may have stamped a unique id with that could be one of this node id's: see `idFloor` of the cluster. */
  readonly stampedUntil: number;
  readonly idWidth: number;
}

/** A new tenure: the next version (rule 2), and a `timestamp` beyond that of the previous tenure. */
export function acquired(previous: LeaseState, claim: Claim): HeldLease {
  return {
    kind: 'held',
    taskId: claim.taskId,
    version: versionOf(previous) + 1,
    timestamp: Math.max(timestampOf(previous) + 1, claim.stampedUntil + 1, Math.floor(claim.storeNow) + claim.durationMs),
    durationMs: claim.durationMs,
    knownNodes: {},
    nonce: claim.nonce,
    renewal: 0,
    acquiredAt: Math.floor(claim.storeNow),
    idWidth: claim.idWidth,
    narrowIdsUntil: claim.stampedUntil,
  };
}

/** A width that a tenure has gone over to. */
export type AdoptedWidth = Pick<HeldLease, 'idWidth' | 'narrowIdsUntil'>;

/** The same tenure, prolonged. `renewal` must be one that this tenure has not used yet. */
export function renewed(
  held: HeldLease,
  change: { renewal: number; storeNow: number; knownNodes: KnownNodes; width: AdoptedWidth },
): HeldLease {
  return {
    ...held,
    ...(change.width.idWidth > held.idWidth && change.width),
    renewal: change.renewal,
    timestamp: Math.max(held.timestamp, Math.floor(change.storeNow) + held.durationMs),
    knownNodes: change.knownNodes,
  };
}

/**
 * The end of a tenure: a tombstone that keeps version and timestamp, so that neither its version nor its etag ever repeats.
 *
 * @param stampedUntil the last millisecond that a unique id of this node id is stamped with, in this tenure or before; undefined where it
 *   is not known
 */
export function released(held: HeldLease, stampedUntil: number | undefined): ReleasedLease {
  return { kind: 'released', version: held.version, timestamp: held.timestamp, durationMs: 0, stampedUntil };
}

/**
 * A tombstone of an id that the cluster gives up, made of whatever state it is in but a live holder's, who is to be waited for or
 * {@link evicted} first.
 */
export function retired(state: Exclude<LeaseState, HeldLease>, generation: number): RetiredLease {
  if (state.kind === 'vacant') return { kind: 'retired', version: 0, timestamp: 0, durationMs: 0, stampedUntil: undefined, generation };
  return { ...state, kind: 'retired', generation };
}

/**
 * An operator's force-release (rule 9): the version rises, and the holder finds a conflict when it renews. Until then it trusts its
 * lease, so nobody may take the id for as long as that can last (rule 1); not at all when it had `expired` already.
 */
export function evicted(held: HeldLease, expired = false): ReleasedLease {
  const durationMs = expired ? 0 : held.durationMs;
  return { kind: 'released', version: held.version + 1, timestamp: held.timestamp, durationMs, stampedUntil: undefined };
}
