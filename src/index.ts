// The public API, and nothing else.

export { optionsFromEnvironment } from './app/settings/environment-options.js';
export type { Clock, RandomSource } from './core/base/clock.js';
export {
  AcquireTimeoutError,
  ConfigError,
  NodeLeaseError,
  type NodeLeaseErrorCode,
  StoreUnusableError,
  WaitTimeoutError,
} from './core/base/errors.js';
export { systemClock, systemRandom } from './core/base/system.js';
export type { CopyMode } from './core/data-dir/copy-tree.js';
export { DataDirError } from './core/data-dir/data-dir-error.js';
export type { DataDirEvent, DataDirOptions } from './core/data-dir/data-dir-options.js';
export { IdsExhaustedError } from './core/id/id-time.js';
export { type UniqueIdsOptions, uniqueIds } from './core/id/lease-ids.js';
export type { UniqueIdGenerator } from './core/id/unique-id-generator.js';
export { ordinalOf, staticLease } from './core/lease/hold/static-lease.js';
export type { TenureTime, WidthListener } from './core/lease/hold/tenure-time.js';
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
} from './core/lease/model/lease.js';
export type { PreviousHolder } from './core/lease/model/lease-state.js';
export { type LeaseStore, StoreError } from './core/store/lease-store.js';
export {
  type AcquireOptions,
  type AcquireZooKeeperOptions,
  acquire,
  type ManagedLease,
} from './node/runtime/acquire.js';
export type { LossPolicy } from './node/runtime/managed-lease.js';
export { type MonitorEvent, NodeMonitor } from './node/runtime/node-monitor.js';
export { protect } from './node/runtime/protect.js';
export type { NodeHealth, NodePhase } from './node/wire/node-health.js';
export type { ZooKeeperTls } from './zookeeper/client/connection/tls.js';
export type { AnnouncedEndpoint, Announcement, PayloadType } from './zookeeper/discovery/announcement.js';
export {
  type ConnectedServices,
  type ConnectServicesOptions,
  connectServices,
} from './zookeeper/services/connect-services.js';
