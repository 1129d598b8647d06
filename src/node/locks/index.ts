// Locks and elections on a lease store, without ZooKeeper: `nodelease/locks`.

export { LockLostError } from '../../core/lease/model/lock-lost.js';
export type { TickReport } from '../wire/cluster-snapshot.js';
export { electOnStore } from './elect.js';
export type { LockStore } from './lock-place.js';
export { type OnceOptions, oncePer } from './once.js';
export type { OnceRun } from './once-run.js';
export type { SchedulePlan } from './schedule.js';
export { acquireLock, type LockOptions, type StoreLock } from './store-lock.js';
export type { TickRecord } from './tick.js';
