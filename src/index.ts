// The public API, and nothing else.

export { type AcquireOptions, acquire, type ZooKeeperOptions } from './acquire.js';
export type { Clock, RandomSource } from './clock.js';
export { type ConnectedServices, type ConnectServicesOptions, connectServices } from './connect-services.js';
export type { AnnouncedEndpoint, Announcement, PayloadType } from './discovery/announcement.js';
export {
  AcquireTimeoutError,
  ConfigError,
  NodeLeaseError,
  type NodeLeaseErrorCode,
  StoreUnusableError,
} from './errors.js';
export { IdsExhaustedError } from './id/id-error.js';
export { type UniqueIdsOptions, uniqueIds } from './id/lease-ids.js';
export type { UniqueIdGenerator } from './id/unique-id-generator.js';
export {
  type Lease,
  type LeaseEvent,
  type LeaseListener,
  LeaseLostError,
  LeaseReleasedError,
  LeaseRetiringError,
  type LossReason,
} from './lease/lease.js';
export { ordinalOf, staticLease } from './lease/static-lease.js';
export type { TenureTime } from './lease/tenure-time.js';
export type { WidthListener } from './lease/tenure-width.js';
export type { LossPolicy, ManagedLease } from './managed-lease.js';
export type { NodeHealth, NodePhase } from './monitor/node-health.js';
export { type MonitorEvent, NodeMonitor } from './monitor/node-monitor.js';
export { type LeaseStore, StoreError } from './store/lease-store.js';
export { systemClock, systemRandom } from './system.js';
