// Locks and elections on a lease store, without ZooKeeper: `nodelease/locks`.

export { LockLostError } from '../lease/model/lock-lost.js';
export { elect } from './elect.js';
export type { LockStore } from './lock-place.js';
export { acquireLock, type LockHandle, type LockOptions } from './store-lock.js';
