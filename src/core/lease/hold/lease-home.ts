import type { Clock, RandomSource } from '../../base/clock.js';
import type { Lease } from '../model/lease.js';
import type { LeaseMark } from '../model/lease-state.js';
import type { StoreSession } from '../session/store-session.js';

/** What a lease in a store offers to work that is built on it, such as shards. */
export interface LeaseHome {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** A session with the store of the lease, closed with the lease: its own, where that is in this thread. */
  session(): Promise<StoreSession>;
  /**
   * Sets what further renewals write in addition: the first mark at once. Resolves when the lease shows it,
   * unless another one has replaced it.
   */
  mark(mark: LeaseMark): Promise<void>;
  /** For the metrics, where the node takes part in shards. */
  shards?: () => ShardFigures;
  /**
   * Ends the work. `release()` awaits it while the lease is still renewed (rule 8). Resolves to whether all work
   * has ended: otherwise the lease is not given back, and expires. Must not reject.
   */
  leave?: () => Promise<boolean>;
}

/** The shards as this node knows them. */
export interface ShardFigures {
  /** How many it runs. */
  readonly owned: number;
  /** How many of the node's shards are to move to another one. */
  readonly moving: number;
  /** How many have no owner, of all. */
  readonly orphaned: number;
  /** How many of the node's shards do not run, or have not for long, since their last start has failed. */
  readonly failing: number;
  /** How many starts have failed on this node. */
  readonly failedStarts: number;
  /** How long ago the map was changed, in milliseconds. */
  readonly epochAgeMs: number;
}

const homes = new WeakMap<Lease, LeaseHome>();

/** Undefined for a static id, and for one from ZooKeeper. */
export function homeOf(lease: Lease): LeaseHome | undefined {
  return homes.get(lease);
}

export function setHome(lease: Lease, home: LeaseHome | undefined): void {
  if (home !== undefined) homes.set(lease, home);
}

/** Ends the work that is built on the lease, if there is any, and then the lease. */
export function afterWork(lease: Lease, end: (workEnded: boolean) => Promise<void>): Promise<void> {
  const leave = homes.get(lease)?.leave;
  return leave === undefined ? end(true) : leave().then(end);
}
