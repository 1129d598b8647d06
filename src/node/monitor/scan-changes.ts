import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import type { ClusterScan } from './cluster-reader.js';
import type { EventFacts } from './event-log.js';
import { leaseChanges } from './lease-changes.js';

/** The changes of a cluster between two scans that are `sinceMs` milliseconds apart, as events. */
export function scanChanges(before: ClusterScan, after: ClusterScan, sinceMs: number): EventFacts[] {
  const [was, is] = [before.hints?.cluster, after.hints?.cluster];
  const nodes = was || is ? after.nodes : [...after.nodes, ...withoutZnodes(before.nodes, after.nodes)];
  // Node ids from ZooKeeper alone have versions that grow by any amount.
  const countsVersions = !after.head.allocation;
  return [
    ...resized(was?.size, is?.size),
    ...leaseChanges(before.nodes, nodes, { countsVersions, sinceMs, before: was, after: is }),
  ];
}

/**
 * If ZooKeeper alone gives out the node ids, an id whose znode is gone has no holder, and keeps its version.
 */
function withoutZnodes(before: readonly NodeStatus[], after: readonly NodeStatus[]): NodeStatus[] {
  const present = new Set(after.map(({ id }) => id));
  const gone = before.filter(({ id }) => !present.has(id));
  return gone.map((node) => ({
    ...node,
    state: 'released',
    taskId: undefined,
    idWidth: undefined,
    problem: undefined,
  }));
}

function resized(before: number | undefined, size: number | undefined): EventFacts[] {
  if (before === undefined || before === size) return [];
  if (size === undefined)
    return [{ kind: 'resized', text: 'the cluster is gone: there are no node ids any more' }];
  return [{ kind: 'resized', text: `the cluster has ${size} node ids now, ${before} before` }];
}
