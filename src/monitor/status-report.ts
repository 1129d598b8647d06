import type { ClusterConfig } from '../lease/model/cluster-config.js';
import type { CamundaNode, NodeStatus } from '../lease/operate/inspect.js';
import type { RestoreReport } from './camunda-cluster.js';
import {
  type LeaseTotals,
  type PagedCluster,
  type PageReport,
  problemOf,
  READ_AS_A_WHOLE,
} from './listed-cluster.js';

/** What `status --json` prints: every field is always there, null where there is nothing to say. */
export interface StatusReport {
  /** Null where node ids come from ZooKeeper alone. */
  readonly store: string | null;
  /** Null when there is no cluster yet, and where node ids come from ZooKeeper alone. */
  readonly cluster: ClusterReport | null;
  /**
   * In ascending order of the ids: all of them, or those of the `page`; from ZooKeeper alone those in the
   * tree, without ages and expiries.
   */
  readonly nodes: readonly NodeReport[];
  /**
   * How far ZooKeeper agrees with the store; null when it was not asked, and where there is no store to agree
   * with.
   */
  readonly discovery: DiscoveryStatusReport | null;
  /** Where ZooKeeper gives out the node ids; null where they are leased from a store. */
  readonly allocation: AllocationReport | null;
  /**
   * Ids beyond the cluster's size that are held still, in ascending order, a hundred at most: their holders
   * have been told to give them up.
   */
  readonly draining: readonly DrainingReport[];
  /**
   * How many of all node ids are in which state; null when there is no cluster yet, and where node ids come
   * from ZooKeeper alone.
   */
  readonly totals: LeaseTotals | null;
  /** Which part of a large cluster `nodes` is; null where it is everything. */
  readonly page: PageReport | null;
  /** Left out for a cluster of nodelease. */
  readonly format?: 'camunda';
  /** Restores from backups; left out for a cluster of nodelease. */
  readonly restores?: readonly RestoreReport[];
}

/** Everything of a {@link StatusReport} but the node ids, and what is counted from them. */
export type ReportHead = Omit<StatusReport, 'nodes' | 'totals' | 'page'>;

/** An id that the cluster has given up and that is held still. */
export type DrainingReport = Pick<NodeReport, 'id' | 'version' | 'taskId'>;

/** What a {@link StatusReport} says of node ids from ZooKeeper alone. */
export interface AllocationReport {
  /** The connect string. */
  readonly zookeeper: string;
  /** The groups of 256 ids that exist, in ascending order. */
  readonly groups: readonly number[];
  /**
   * How many bits of a unique id a node id takes: the most of what these groups need, the holders use, and
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
     * `other-version`: the tree lags behind, or a znode is left over. `unreadable`: what stands there tells
     * no version, or may not be read. `unknown`: ZooKeeper gave no answer.
     */
    readonly state: 'ok' | 'missing' | 'other-version' | 'unreadable' | 'unknown';
    /** The version in the tree; null where it shows none. */
    readonly version: number | null;
  }[];
}

/** How the discovery tree shows a node id that is held. */
export type NodeDiscovery = DiscoveryStatusReport['nodes'][number];

/** The settings of a cluster in a report. */
export interface ClusterReport extends Pick<ClusterConfig, 'size' | 'graceMs' | 'bootstrapped'> {
  /** Of Camunda's cluster, what most holders seem to renew by; null where that is not known. */
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
   * Milliseconds since the last write by the store's clock, at least and at most; the latter is null where
   * the store cannot tell.
   */
  readonly ageMs: readonly [min: number, max: number | null] | null;
  /**
   * How much longer its holder may trust the lease at most, in milliseconds; below 0 for one that is overdue.
   * Null unless it is held or expired.
   */
  readonly expiresInMs: number | null;
  /** The expiry that the holder wrote, in store time, milliseconds since the Unix epoch. */
  readonly timestamp: number | null;
  /** What its holder knows of the others' versions. */
  readonly knownNodes: Readonly<Record<number, number>>;
  /**
   * How many bits a node id takes in the unique ids that its holder makes; null without a holder, or where
   * the holder does not say.
   */
  readonly idWidth: number | null;
  readonly problem: string | null;
  /**
   * What else is known of it in Camunda's cluster; left out in a cluster of nodelease, and where the object
   * cannot be read.
   */
  readonly camunda?: CamundaNode;
}

/**
 * The report on a cluster, or on its absence. In a cluster that is too large to be read as a whole by default
 * `knownNodes` has only what differs from the versions of the node ids that were read.
 */
export function statusReport(
  store: string,
  status?: PagedCluster,
  discovery: DiscoveryStatusReport | null = null,
): StatusReport {
  if (status === undefined) return reportOf({ store, discovery });
  const { cluster, nodes, totals, page } = status;
  const told = cluster.size <= READ_AS_A_WHOLE ? nodes : withWrongVersions(nodes, page !== null);
  const reports = told.map((node) => nodeReport(node, problemOf(node, cluster)));
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

/** With more node ids than this, what all know of all others would fill megabytes. */
const MAX_TOLD_IN_FULL = 256;

/**
 * Leaves out what the holders know rightly of the others' versions, where there are many node ids.
 *
 * @param isPage whether other ids have not been read: what the holders know of them is left out, too
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

/** What a report says of a cluster in a store besides its node ids. */
export function reportHead(
  store: string,
  { cluster, draining, camunda }: Pick<PagedCluster, 'cluster' | 'draining' | 'camunda'>,
): Partial<ReportHead> {
  const told = draining.map(({ id, version, taskId = null }) => ({ id, version, taskId }));
  return {
    store,
    cluster: clusterReport(cluster),
    draining: told,
    ...(camunda && { format: 'camunda' as const, ...camunda }),
  };
}

/** What a report says of a cluster's settings. */
export function clusterReport({
  size,
  durationMs,
  graceMs,
  idWidth,
  bootstrapped,
}: ClusterConfig): ClusterReport {
  return { size, durationMs: durationMs || null, graceMs, idWidth: idWidth || null, bootstrapped };
}

/** What a report says of one node id. `problem` is what is wrong with it, where something is. */
export function nodeReport(node: NodeStatus, problem: string | undefined): NodeReport {
  const { id, state, version, taskId = null, age, timestamp = null, knownNodes, idWidth = null } = node;
  const expiresIn = expiresInMs(node);
  return {
    ...{ id, state, version, taskId },
    ageMs:
      age === undefined ? null : [Math.floor(age.min), Number.isFinite(age.max) ? Math.ceil(age.max) : null],
    expiresInMs: expiresIn === undefined ? null : Math.ceil(expiresIn),
    ...{ timestamp, knownNodes, idWidth },
    problem: problem ?? null,
    ...(node.camunda && { camunda: node.camunda }),
  };
}

/**
 * How much longer the holder of a lease may trust it at most, in milliseconds, by the store's clock and the
 * least age: the same calculation by which contenders decide that they may take it (rule 4). Undefined for an
 * id without a holder.
 */
export function expiresInMs({ age, durationMs }: NodeStatus): number | undefined {
  return age === undefined || durationMs === undefined ? undefined : durationMs - age.min;
}
