// The public API, and nothing else.

export type { Clock, RandomSource } from './base/clock.js';
export {
  AcquireTimeoutError,
  ConfigError,
  NodeLeaseError,
  type NodeLeaseErrorCode,
  StoreUnusableError,
  WaitTimeoutError,
} from './base/errors.js';
export { systemClock, systemRandom } from './base/system.js';
export type { CopyMode } from './data-dir/copy-tree.js';
export { DataDirError } from './data-dir/data-dir-error.js';
export type { DataDirEvent, DataDirOptions } from './data-dir/data-dir-options.js';
export type { AnnouncedEndpoint, Announcement, PayloadType } from './discovery/announcement.js';
export { IdsExhaustedError } from './id/id-time.js';
export { type UniqueIdsOptions, uniqueIds } from './id/lease-ids.js';
export type { UniqueIdGenerator } from './id/unique-id-generator.js';
export { ordinalOf, staticLease } from './lease/hold/static-lease.js';
export type { TenureTime, WidthListener } from './lease/hold/tenure-time.js';
export {
  type HolderEvent,
  type Lease,
  type LeaseEvent,
  type LeaseListener,
  LeaseLostError,
  LeaseReleasedError,
  LeaseRetiringError,
  type LossReason,
  type TenureLostError,
} from './lease/model/lease.js';
export type { PreviousHolder } from './lease/model/lease-state.js';
export { type AcquireOptions, type AcquireZooKeeperOptions, acquire } from './runtime/acquire.js';
export {
  type ConnectedServices,
  type ConnectServicesOptions,
  connectServices,
} from './runtime/connect-services.js';
export type { LossPolicy, ManagedLease } from './runtime/managed-lease.js';
export { type MonitorEvent, type NodeHealth, NodeMonitor, type NodePhase } from './runtime/node-monitor.js';
export { type LeaseStore, StoreError } from './store/lease-store.js';
export type { ZooKeeperTls } from './zookeeper/connection/tls.js';
