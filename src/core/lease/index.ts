// `nodelease/engine`: the engine alone, with clock, random source and store as parameters.

export { type AcquireLeaseOptions, acquireLease } from './acquire/acquire-lease.js';
export type { EnsureClusterOptions } from './acquire/ensure-cluster.js';
export type {
  ClusterConfig,
  ClusterTimes,
  StoreEpoch,
  TimesChange,
  WantedSettings,
} from './model/cluster-config.js';
export {
  type EncodedLease,
  type LeaseCodec,
  LeaseUnreadableError,
  nativeCodec,
} from './model/lease-codec.js';
export type {
  HeldLease,
  KnownNodes,
  LeaseState,
  NodeIdState,
  PreviousHolder,
  ReleasedLease,
  RetiredLease,
} from './model/lease-state.js';
export type { LeaseAttributes, LeaseSpanName, LeaseTracer, NoteAttributes } from './model/lease-tracer.js';
export { type Eviction, evictHolder } from './operate/evict.js';
export {
  type InitializeOptions,
  type InitializeReport,
  initializeCluster,
  type Repair,
  type RepairOptions,
  repairCluster,
} from './operate/initialize.js';
export { type ClusterStatus, inspectCluster, type LateHolder, type NodeStatus } from './operate/inspect.js';
export { scaleCluster } from './operate/scale.js';
export type {
  DamagedLease,
  NarrowHolder,
  RetiringHolder,
  ScaleEvent,
  ScaleOptions,
  ScaleOutcome,
} from './operate/scaling.js';
export { type TuneOptions, type TuneOutcome, tuneCluster } from './operate/tune.js';
export type { StoredCluster } from './session/cluster-store.js';
export {
  type SessionCall,
  type SessionListing,
  type SessionWrite,
  StoreSession,
} from './session/store-session.js';
