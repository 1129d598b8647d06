import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { CamundaNode, NodeStatus } from '../../core/lease/operate/inspect.js';
import type { RestoreReport } from './camunda-cluster.js';
import {
  type LeaseTotals,
  type PagedCluster,
  type PageReport,
  problemOf,
  READ_AS_A_WHOLE,
} from './listed-cluster.js';

/** The output of `status --json`. Every field is always present, null without a value. */
export interface StatusReport {
  /** Null if node ids come from ZooKeeper alone. */
  readonly store: string | null;
  /** Null when there is no cluster yet, and if node ids come from ZooKeeper alone. */
  readonly cluster: ClusterReport | null;
  /**
   * In ascending order of the ids: all of them, or those of the `page`; from ZooKeeper alone those in the
   * tree, without ages and expiries.
   */
  readonly nodes: readonly NodeReport[];
  /** How far ZooKeeper agrees with the store; null if it was not read, and without a store. */
  readonly discovery: DiscoveryStatusReport | null;
  /** The state of node ids that ZooKeeper gives out; null if they are leased from a store. */
  readonly allocation: AllocationReport | null;
  /**
   * Ids beyond the cluster's size that are still held, in ascending order, a hundred at most: their holders
   * have been asked to release them.
   */
  readonly draining: readonly DrainingReport[];
  /**
   * How many of all node ids are in which state; null when there is no cluster yet, and where node ids come
   * from ZooKeeper alone.
   */
  readonly totals: LeaseTotals | null;
  /** The part of a large cluster that `nodes` contains; null if it contains everything. */
  readonly page: PageReport | null;
  /** Left out for a cluster of nodelease. */
  readonly format?: 'camunda';
  /** Restores from backups; left out for a cluster of nodelease. */
  readonly restores?: readonly RestoreReport[];
}

/** A {@link StatusReport} without the node ids, and without what is counted from them. */
export type ReportHead = Omit<StatusReport, 'nodes' | 'totals' | 'page'>;

/** A retired id that is still held. */
export type DrainingReport = Pick<NodeReport, 'id' | 'version' | 'taskId'>;

/** The part of a {@link StatusReport} on node ids from ZooKeeper alone. */
export interface AllocationReport {
  /** The connect string. */
  readonly zookeeper: string;
  /** The groups of 256 ids that exist, in ascending order. */
  readonly groups: readonly number[];
  /**
   * Number of bits of a node id in a unique id: the maximum of what these groups need, the holders use, and
   * ids ever had here.
   */
  readonly idWidth: number;
}

/** How far the discovery tree agrees with the leases. */
export interface DiscoveryStatusReport {
  readonly state: 'ok' | 'degraded';
  /** Why it is degraded. */
  readonly problem: string | null;
  /** The node ids that are held, in ascending order. */
  readonly nodes: readonly {
    readonly id: number;
    /**
     * `other-version`: the tree lags behind, or a znode is left over. `unreadable`: the znode has no version,
     * or may not be read. `unknown`: ZooKeeper gave no answer.
     */
    readonly state: 'ok' | 'missing' | 'other-version' | 'unreadable' | 'unknown';
    /** The version in the tree; null if it shows none. */
    readonly version: number | null;
  }[];
}

/** How the discovery tree shows a node id that is held. */
export type NodeDiscovery = DiscoveryStatusReport['nodes'][number];

/** The settings of a cluster in a report. */
export interface ClusterReport extends Pick<ClusterConfig, 'size' | 'graceMs' | 'bootstrapped'> {
  /** For Camunda's cluster, the apparent duration of most holders; null if it is unknown. */
  readonly durationMs: number | null;
  /** Null for Camunda's cluster, which makes no unique ids. */
  readonly idWidth: number | null;
}

/** One node id in a {@link StatusReport}. */
export interface NodeReport {
  readonly id: number;
  readonly state: NodeStatus['state'];
  /** The highest version used so far, 0 for none. */
  readonly version: number;
  readonly taskId: string | null;
  /**
   * Minimum and maximum time since the last write by the store's clock, in milliseconds; the maximum is null
   * if the store does not report it.
   */
  readonly ageMs: readonly [min: number, max: number | null] | null;
  /**
   * Maximum time for which its holder may still trust the lease, in milliseconds; below 0 if it is overdue.
   * Null unless it is held or expired.
   */
  readonly expiresInMs: number | null;
  /** The expiry that the holder wrote, in store time, milliseconds since the Unix epoch. */
  readonly timestamp: number | null;
  /** The versions of other nodes that its holder knows. */
  readonly knownNodes: Readonly<Record<number, number>>;
  /**
   * How many bits a node id takes in the unique ids that its holder makes; null without a holder, or where
   * the holder does not say.
   */
  readonly idWidth: number | null;
  /**
   * The first 16 hex digits of the SHA-256 of the last holder's sticky key; left out if it had none.
   */
  readonly sticky?: string;
  readonly problem: string | null;
  /**
   * The further facts in Camunda's cluster; left out in a cluster of nodelease, and if the object cannot be
   * read.
   */
  readonly camunda?: CamundaNode;
}

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
  const nothing = {
    store: null,
    cluster: null,
    nodes: [],
    discovery: null,
    allocation: null,
    draining: [],
    totals: null,
    page: null,
  };
  return { ...nothing, ...facts };
}

/** With more node ids than this, the known versions of all nodes would fill megabytes. */
const MAX_TOLD_IN_FULL = 256;

/**
 * Leaves out the correct versions that holders know of other nodes, if there are many node ids.
 *
 * @param isPage whether other ids have not been read: their known versions are left out, too
 */
export function withWrongVersions(nodes: readonly NodeStatus[], isPage = false): readonly NodeStatus[] {
  if (nodes.length <= MAX_TOLD_IN_FULL && !isPage) return nodes;
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
  { cluster, draining, camunda }: Pick<PagedCluster, 'cluster' | 'draining' | 'camunda'>,
): Partial<ReportHead> {
  const held = draining.map(({ id, version, taskId = null }) => ({ id, version, taskId }));
  return {
    store,
    cluster: clusterReport(cluster),
    draining: held,
    ...(camunda && { format: 'camunda' as const, ...camunda }),
  };
}

/** The report on a cluster's settings. */
export function clusterReport({
  size,
  durationMs,
  graceMs,
  idWidth,
  bootstrapped,
}: ClusterConfig): ClusterReport {
  return { size, durationMs: durationMs || null, graceMs, idWidth: idWidth || null, bootstrapped };
}

/** The report on one node id, with its `problem`, if any. */
export function nodeReport(node: NodeStatus, problem: string | undefined): NodeReport {
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
    ...{ id, state, version, taskId },
    ageMs:
      age === undefined ? null : [Math.floor(age.min), Number.isFinite(age.max) ? Math.ceil(age.max) : null],
    expiresInMs: expiresIn === undefined ? null : Math.ceil(expiresIn),
    ...{ timestamp, knownNodes, idWidth },
    ...(sticky !== undefined && { sticky }),
    problem: problem ?? null,
    ...(node.camunda && { camunda: node.camunda }),
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
