import type { Clock } from '../../src/base/clock.js';
import { type AcquireLeaseOptions, acquireLease } from '../../src/lease/acquire/acquire-lease.js';
import type { Lease } from '../../src/lease/model/lease.js';
import type { LeaseStore } from '../../src/store/lease-store.js';
import { observedAge } from '../../src/store/observed-age.js';
import { timeless } from '../support/timeless-store.js';

/** What gives a task its lease: the shipped engine, or another one to be compared with it. */
export interface Engine {
  /** Has the contract of `acquireLease`, as far as the simulation uses it: it reports `acquired`, `renewed` and `lost`. */
  acquire(options: AcquireLeaseOptions): Promise<Lease>;
  /** What tasks and operators make of the store. @default the store as it is */
  readonly opened?: (store: LeaseStore, clock: Clock) => LeaseStore;
}

export const shippedEngine: Engine = { acquire: acquireLease };

/** The same on a store that tells no time of writing. */
export const observedEngine: Engine = { acquire: acquireLease, opened: (store, clock) => observedAge(timeless(store), clock) };
