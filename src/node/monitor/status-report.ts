import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import type {
  ClusterReport,
  DiscoveryStatusReport,
  NodeReport,
  ReportHead,
  StatusReport,
} from '../wire/status-report.js';
import { type PagedCluster, problemOf, READ_AS_A_WHOLE, type ScannedNode } from './listed-cluster.js';

/**
 * The report on a cluster, or on its absence. In a cluster that is too large to be read as a whole by
 * default, `knownNodes` has only the differences from the versions that were read.
 */
export function statusReport(
  store: string,
  status?: PagedCluster,
  discovery: DiscoveryStatusReport | null = null,
): StatusReport {
  if (status === undefined) return reportOf({ store, discovery });
  const { cluster, nodes, totals, page } = status;
  const shown = cluster.size <= READ_AS_A_WHOLE ? nodes : withWrongVersions(nodes, page !== null);
  const reports = shown.map((node) => nodeReport(node, problemOf(node, cluster)));
  return reportOf({ ...reportHead(store, status), nodes: reports, discovery, totals, page });
}

/** A report of these facts, with its fields in the order of its JSON. */
export function reportOf(facts: Partial<StatusReport>): StatusReport {
  return {
    store: null,
    cluster: null,
    nodes: [],
    discovery: null,
    allocation: null,
    draining: [],
    totals: null,
    page: null,
    ...facts,
  };
}

/** With more node ids than this, the known versions of all nodes would fill megabytes. */
const MAX_IN_FULL = 256;

/**
 * Leaves out the correct versions that holders know of other nodes, if there are many node ids.
 *
 * @param isPage whether other ids have not been read: their known versions are left out, too
 */
export function withWrongVersions(nodes: readonly ScannedNode[], isPage = false): readonly ScannedNode[] {
  if (nodes.length <= MAX_IN_FULL && !isPage) return nodes;
  const versions = new Map(nodes.map(({ id, version }) => [id, version]));
  const isWrong = (id: number, version: number) =>
    versions.get(id) !== version && !(isPage && !versions.has(id));
  // Most holders know the same, and share one object.
  const shortened = new Map<NodeStatus['knownNodes'], NodeStatus['knownNodes']>();
  return nodes.map((node) => {
    const { knownNodes } = node;
    const wrong =
      shortened.get(knownNodes) ??
      Object.fromEntries(Object.entries(knownNodes).filter(([id, known]) => isWrong(Number(id), known)));
    shortened.set(knownNodes, wrong);
    return { ...node, knownNodes: wrong };
  });
}

/** The report on a cluster in a store, without its node ids. */
export function reportHead(
  store: string,
  { cluster, draining, foreign }: Pick<PagedCluster, 'cluster' | 'draining' | 'foreign'>,
): Partial<ReportHead> {
  return {
    store,
    cluster: clusterReport(cluster),
    draining: draining.map(({ id, version, taskId = null }) => ({ id, version, taskId })),
    ...foreign,
  };
}

/** The report on a cluster's settings. */
export function clusterReport({
  size,
  name,
  durationMs,
  graceMs,
  idWidth,
  bootstrapped,
  epoch,
}: ClusterConfig): ClusterReport {
  return {
    size,
    durationMs: durationMs || null,
    graceMs,
    idWidth: idWidth || null,
    bootstrapped,
    ...(epoch?.settling && { settling: true as const }),
    name,
  };
}

/** The report on one node id, with its `problem`, if any. */
export function nodeReport(node: ScannedNode, problem: string | undefined): NodeReport {
  const {
    id,
    state,
    version,
    taskId = null,
    age,
    timestamp = null,
    knownNodes,
    idWidth = null,
    sticky,
  } = node;
  const expiresIn = expiresInMs(node);
  return {
    id,
    state,
    version,
    taskId,
    ageMs:
      age === undefined ? null : [Math.floor(age.min), Number.isFinite(age.max) ? Math.ceil(age.max) : null],
    expiresInMs: expiresIn === undefined ? null : Math.ceil(expiresIn),
    timestamp,
    knownNodes,
    idWidth,
    ...(sticky !== undefined && { sticky }),
    problem: problem ?? null,
    ...node.foreign,
  };
}

/**
 * Maximum time for which the holder of a lease may still trust it, in milliseconds, by the store's clock and
 * the minimum age. Contenders decide by the same calculation that they may take it (rule 4). Undefined for an
 * id without a holder.
 */
export function expiresInMs({ age, durationMs }: NodeStatus): number | undefined {
  return age === undefined || durationMs === undefined ? undefined : durationMs - age.min;
}
