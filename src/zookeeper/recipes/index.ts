// Coordination over ZooKeeper that carries a fencing token: Curator's recipes, byte for byte.

export { LockLostError, LockReleasedError } from '../../core/lease/model/lock-lost.js';
export { type Barrier, barrier } from './barrier.js';
export { type Counter, counter } from './counter.js';
export { type DoubleBarrier, type DoubleBarrierOptions, doubleBarrier } from './double-barrier.js';
export {
  type Election,
  type ElectOptions,
  elect,
  type Participant,
  participants,
  watchLeader,
} from './elect.js';
export { createFence, type Fence } from './fence.js';
export { lock, type ZooKeeperLock } from './lock.js';
export type { LockHandle } from './lock-handle.js';
export { type Queue, type QueueOptions, queue } from './queue/queue.js';
export type { OnDamaged } from './queue/queue-items.js';
export type { TakenItem } from './queue/taken-item.js';
export { readLock, type WriteLockHandle, writeLock } from './read-write-lock.js';
export type { RecipeOptions, WaitOptions } from './recipe.js';
export { RecipeError, type RecipeFault } from './recipe.js';
export { type SemaphoreOptions, semaphore } from './semaphore.js';
export type { Contender, Standing } from './standing.js';
export { followedLocks } from './standings.js';
export {
  type CoordinateOptions,
  type JoinOptions,
  type Transaction,
  type TransactionOutcome,
  transaction,
} from './transaction.js';
