import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { NodeIdState } from '../../core/lease/model/lease-state.js';

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
  /** The foreign format of the cluster; left out for one of nodelease. */
  readonly format?: 'camunda';
  /** Restores from backups; left out for a cluster of nodelease. */
  readonly restores?: readonly RestoreReport[];
}

/** A {@link StatusReport} without the node ids, and without what is counted from them. */
export type ReportHead = Omit<StatusReport, 'nodes' | 'totals' | 'page'>;

/** What the report on a cluster in a foreign format has in addition, and the report on a node id of it. */
export type ForeignReport = Required<Pick<StatusReport, 'format' | 'restores'>>;
export type ForeignNode = Pick<NodeReport, 'camunda'>;

/** What an operator should look into, although it does not keep the node id from being used. */
export function warningOf({ camunda }: ForeignNode = {}): string | undefined {
  return camunda?.warning ?? undefined;
}

/** The node ids of a further page of a report. */
export type ReportPage = Pick<StatusReport, 'nodes' | 'page'>;

/** The settings of a cluster in a report. */
export interface ClusterReport extends Pick<ClusterConfig, 'size' | 'name' | 'graceMs' | 'bootstrapped'> {
  /** In a foreign format, the apparent duration of most holders; null if it is unknown. */
  readonly durationMs: number | null;
  /** Null in a foreign format, whose holders make no unique ids. */
  readonly idWidth: number | null;
  /** Where the store was restarted, restored or replaced: no node id is given out now. */
  readonly settling?: true | undefined;
}

/** One node id in a {@link StatusReport}. */
export interface NodeReport {
  readonly id: number;
  readonly state: NodeIdState;
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
   * Null unless it is held, expired or evicted.
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
  readonly camunda?: {
    /** False for an id that scaling down has given up. */
    readonly acquirable: boolean;
    /**
     * How far the holder's clock seems to be ahead of the other holders', in milliseconds; 0 up to 3 s, null
     * without a holder.
     */
    readonly clockOffsetMs: number | null;
    /** What an operator should look into, as a sentence without its full stop. */
    readonly warning: string | null;
  };
}

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
     * `other-version`: the tree lags behind, or a znode is left over. `other-task`: the znode is of a task of
     * another cluster, at the same version. `unreadable`: the znode has no version, or may not be read.
     * `unknown`: ZooKeeper gave no answer.
     */
    readonly state: 'ok' | 'missing' | 'other-version' | 'other-task' | 'unreadable' | 'unknown';
    /** The version in the tree; null if it shows none, or another task. */
    readonly version: number | null;
  }[];
}

/** How the discovery tree shows a node id that is held. */
export type NodeDiscovery = DiscoveryStatusReport['nodes'][number];

/** How many node ids are in which state. */
export interface LeaseTotals {
  /** True if they come from a LIST, by size and age of the objects: most have not been read. */
  readonly hints: boolean;
  readonly held: number;
  readonly expired: number;
  /** Ids that may be taken and are not `expired`. With a LIST also ids that were evicted a moment ago. */
  readonly free: number;
  /** Number of the free ones that were never held. */
  readonly neverHeld: number;
  /** Null with a LIST: these count as free. */
  readonly evicted: number | null;
  /** Ids that cannot be used; with a LIST the absent ones only. */
  readonly damaged: number;
  /** Objects of retired ids, most of them beyond the cluster's size. */
  readonly retired: number;
}

/** The position of a page in a large cluster. */
export interface PageReport {
  /** The first requested id. */
  readonly from: number;
  /** Maximum number of node ids. */
  readonly limit: number;
  /** The beginning of the next page; null without one, and if the page has the most noteworthy ids. */
  readonly next: number | null;
}

/** A restore from a backup, as its object records it. */
export interface RestoreReport {
  readonly restoreId: string;
  /** The node ids that have been restored; empty if the object cannot be read. */
  readonly restoredNodes: readonly number[];
  readonly problem: string | null;
}
