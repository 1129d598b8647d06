export type { TenureEnd } from '../../core/lease/model/tenure-history.js';
export type { RestoreReport } from '../../node/monitor/camunda-cluster.js';
export { ClusterFollower, type ClusterFollowerOptions } from '../../node/monitor/cluster-follower.js';
export type {
  ClusterEvent,
  ClusterSnapshot,
  ClusterView,
  CurrentCluster,
  ShardsReport,
  StoreHealth,
} from '../../node/monitor/cluster-view.js';
export type { TreeReport } from '../../node/monitor/discovery/discovery-comparison.js';
export type {
  DiscoveryReport,
  EntryReport,
  KeyReport,
} from '../../node/monitor/discovery/discovery-report.js';
export type { LeaseTotals, PageReport } from '../../node/monitor/listed-cluster.js';
export type {
  AllocationReport,
  ClusterReport,
  DiscoveryStatusReport,
  DrainingReport,
  NodeReport,
  ReportHead,
  StatusReport,
} from '../../node/monitor/status-report.js';
export type { NodeTenures, Tenure } from '../../node/monitor/tenures.js';
export type { NodeHealth, NodeHealthJson, NodePhase, WatchedNode } from '../../node/runtime/node-monitor.js';
export { type MonitorEvent, NodeMonitor } from '../../node/runtime/node-monitor.js';
export {
  DEFAULT_LISTEN_ADDRESS,
  formatListenAddress,
  isLoopback,
  type ListenAddress,
  parseListenAddress,
} from '../../node/settings/listen-address.js';
export type { FleetReport, NodeRevisions } from '../../zookeeper/configuration/fleet.js';
export type { Contender, Standing } from '../../zookeeper/recipes/standings.js';
export type { DatumRecord } from '../../zookeeper/shared-data/entry.js';
export type { Address, Kind, Lifespan } from '../../zookeeper/shared-data/layout.js';
export type {
  DataEntry,
  DatumHead,
  DatumReport,
  SharedDataReport,
} from '../../zookeeper/shared-data/report.js';
export type { Scalar } from '../../zookeeper/shared-data/scalar-codec.js';
export type { ConfigurationsSource } from './console/configurations-api.js';
export type { DataSource } from './console/data-api.js';
export type { ServicesSource } from './console/services-api.js';
export { type DiscoveryAppOptions, discoveryApp } from './curator/discovery-app.js';
export { DISCOVERY_OPENAPI } from './curator/discovery-openapi.js';
export {
  type DiscoveryServer,
  type DiscoveryServerEvent,
  type DiscoveryServerOptions,
  startDiscoveryServer,
} from './curator/discovery-server.js';
export {
  type AnyInstance,
  type PooledProvider,
  ProviderPool,
  type ProviderPoolOptions,
} from './curator/provider-pool.js';
export { type MetricsText, type NodeAppOptions, nodeApp } from './node-app.js';
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
export type { HeldShard, LeaseEnd, ServedShards, ShardsChange, ShardsState } from './shards-api.js';
