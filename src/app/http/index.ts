export type { NodeIdState } from '../../core/lease/model/lease-state.js';
export type { TenureEnd } from '../../core/lease/model/tenure-history.js';
export {
  DEFAULT_LISTEN_ADDRESS,
  formatListenAddress,
  isLoopback,
  type ListenAddress,
  parseListenAddress,
} from '../../core/settings/listen-address.js';
export {
  ClusterFollower,
  type ClusterFollowerOptions,
  type ClusterView,
  type CurrentCluster,
} from '../../node/monitor/cluster-follower.js';
export type { FollowedParts } from '../../node/monitor/discovery/discovery-comparison.js';
export { type MonitorEvent, NodeMonitor, type WatchedNode } from '../../node/runtime/node-monitor.js';
export type {
  ClusterEvent,
  ClusterSnapshot,
  ConsoleOffers,
  Contender,
  DiscoveryReport,
  EntryReport,
  KeyReport,
  LockReport,
  NodeTenures,
  ShardsMember,
  ShardsReport,
  Standing,
  StoreHealth,
  Tenure,
  TreeParts,
  TreeReport,
} from '../../node/wire/cluster-snapshot.js';
export type { NodeHealth, NodeHealthJson, NodePhase } from '../../node/wire/node-health.js';
export type {
  AllocationReport,
  ClusterReport,
  DiscoveryStatusReport,
  DrainingReport,
  LeaseTotals,
  NodeReport,
  PageReport,
  ReportHead,
  RestoreReport,
  StatusReport,
} from '../../node/wire/status-report.js';
export type { FleetReport, NodeRevisions } from '../../zookeeper/configuration/fleet-report.js';
export type {
  DataEntry,
  DataReport,
  DatumHead,
  DatumReport,
  Kind,
  Lifespan,
  Scalar,
  ShownScalar,
} from '../../zookeeper/shared-data/data-report.js';
export type { DatumRecord } from '../../zookeeper/shared-data/entry.js';
export type { Address } from '../../zookeeper/shared-data/layout.js';
export { type ConfigurationsSource, configurationsPage } from '../configuration/configurations-api.js';
export { type DiscoveryAppOptions, discoveryApp } from '../services/curator/discovery-app.js';
export {
  type DiscoveryServer,
  type DiscoveryServerEvent,
  type DiscoveryServerOptions,
  startDiscoveryServer,
} from '../services/curator/discovery-server.js';
export {
  type AnyInstance,
  type PooledProvider,
  ProviderPool,
  type ProviderPoolOptions,
} from '../services/curator/provider-pool.js';
export { type ServicesSource, servicesPage } from '../services/services-api.js';
export {
  type HeldShard,
  type LeaseEnd,
  type ServedShards,
  type ShardsChange,
  type ShardsRoutesOptions,
  type ShardsState,
  shardsRoutes,
} from '../shards/shards-api.js';
export { type DataSource, dataWrites } from '../shared-data/data-api.js';
export {
  type MetricsText,
  type NodeAppContext,
  type NodeAppOptions,
  type NodeAppPart,
  nodeApp,
} from './node-app.js';
export { type NodeHandler, type NodeHandlerOptions, nodeHandler } from './node-handler.js';
export { NodeMetrics, type NodeMetricsOptions } from './node-metrics.js';
export { type NodeServer, type NodeServerOptions, startNodeServer } from './node-server.js';
export {
  type BearerToken,
  BearerTokenFile,
  type PageAccess,
  type WriteAccess,
  writeAccess,
} from './server/access.js';
export { type HttpListener, type ListenOptions, listen } from './server/listen.js';
export { OpenStreams } from './server/open-streams.js';
