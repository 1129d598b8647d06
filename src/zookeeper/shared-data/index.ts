// Monastery's shared data: announced nodes, and scalars, sets, lists and maps that all nodes of a cluster
// see.

export type { ReconcileEvent } from '../client/reconcile-loop.js';
export type { AnnouncedNode, DisconnectReason, KnownNode, NodeState } from './announced-node.js';
export { type ConditionalCall, type SharedDatum, SharedMap, SharedScalar, SharedSet } from './collections.js';
export type { Condition } from './collision-chain.js';
export type {
  DataEntry,
  DataReport,
  DatumHead,
  DatumReport,
  Kind,
  Lifespan,
  Scalar,
  ShownScalar,
} from './data-report.js';
export type { DataCall } from './datum.js';
export type { DatumRecord, Entry } from './entry.js';
export { type Address, DEFAULT_ROOT, HASHED_PATHS, type PathStrategy, placeName, sha256 } from './layout.js';
export type {
  LostNode,
  NodeSupervisor,
  StopReason,
  SupervisorOptions,
  SupervisorState,
} from './node-supervisor.js';
export type { Change, Replica, Replicated } from './replica.js';
export { followedData } from './report.js';
export {
  fromScalar,
  type ScalarType,
  type SharedJson,
  type SharedValue,
  TypedText,
  toScalar,
} from './scalar-codec.js';
export { type OpenOptions, SharedData, type SharedDataOptions, sharedData } from './shared-data.js';
export { SharedDataError, type SharedDataFault } from './shared-data-error.js';
export { SharedList } from './shared-list.js';
