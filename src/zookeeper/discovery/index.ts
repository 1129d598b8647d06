export type { ViewedZooKeeper } from '../client/children-view.js';
export type { ReconcileEvent, ReconcileState } from '../client/reconcile-loop.js';
export {
  type AnnouncedEndpoint,
  type Announcement,
  checkAnnouncement,
  type PayloadType,
} from './announcement.js';
export { type Assignment, decodeAssignment, encodeAssignment } from './assignment.js';
export { type DiscoveredLease, Discoverer, type DiscovererOptions } from './discoverer.js';
export {
  Discovery,
  type DiscoveryEvent,
  type DiscoveryOptions,
  type TenureOrigin,
} from './discovery.js';
export {
  DiscoveryResolver,
  type DiscoveryResolverOptions,
  type EndpointChoices,
} from './discovery-resolver.js';
export {
  DiscoveryTree,
  type DiscoveryTreeOptions,
  type TreeEvent,
} from './discovery-tree.js';
export { type IdWidth, watchIdWidth } from './id-width.js';
export {
  NodeWatcher,
  type NodeWatcherOptions,
  type UnreadableNode,
} from './node-watcher.js';
export type { Readiness, ReadinessEvent } from './readiness.js';
export { entryPath, type TreeEntry } from './tree-paths.js';
