// The engine by itself, with clock, chance and store as parameters: `nodelease/engine`.

export { type AcquireLeaseOptions, acquireLease } from './acquire-lease.js';
export type { ClusterConfig, WantedSettings } from './cluster-config.js';
export type { StoredCluster } from './cluster-store.js';
export type { EnsureClusterOptions } from './ensure-cluster.js';
export { type Eviction, evictHolder } from './evict.js';
export {
  type InitializeOptions,
  type InitializeReport,
  initializeCluster,
  type Repair,
  type RepairOptions,
  repairCluster,
} from './initialize.js';
export { type ClusterStatus, inspectCluster, type NodeStatus } from './inspect.js';
export { type EncodedLease, type LeaseCodec, LeaseUnreadableError, nativeCodec } from './lease-codec.js';
export type { HeldLease, KnownNodes, LeaseState, ReleasedLease, RetiredLease } from './lease-state.js';
export type { LeaseAttributes, LeaseSpanName, LeaseTracer, NoteAttributes } from './lease-tracer.js';
export {
  type DamagedLease,
  type RetiringHolder,
  type ScaleEvent,
  type ScaleOptions,
  type ScaleOutcome,
  scaleCluster,
} from './scale.js';
export { type SessionCall, StoreSession } from './store-session.js';
export type { NarrowHolder } from './width-adoption.js';
