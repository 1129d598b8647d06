// The public API, and nothing else.

export { type AcquireOptions, acquire, type ZooKeeperOptions } from './acquire.js';
export type { Clock, RandomSource } from './clock.js';
export {
  AcquireTimeoutError,
  ConfigError,
  NodeLeaseError,
  type NodeLeaseErrorCode,
  StoreUnusableError,
} from './errors.js';
export { type Lease, type LeaseEvent, type LeaseListener, LeaseLostError, type LossReason } from './lease/lease.js';
export { ordinalOf, staticLease } from './lease/static-lease.js';
export type { LossPolicy, ManagedLease } from './managed-lease.js';
export { type LeaseStore, StoreError } from './store/lease-store.js';
