import type { ClusterConfig } from '../lease/model/cluster-config.js';
import { camundaCluster } from '../lease/model/foreign-cluster.js';
import { nativeCodec } from '../lease/model/lease-codec.js';
import { nodeIdOf } from '../lease/model/lease-state.js';
import type { ClusterStatus, NodeStatus } from '../lease/operate/inspect.js';
import type { ListedObject } from '../store/lease-store.js';

/**
 * The state of a lease object as a LIST shows it, by size and age alone. `expired`: older than duration and grace of the cluster. `released`: of a
 * tombstone's size, which one that was taken away by force has, too.
 */
export type ListedState = 'held' | 'expired' | 'released' | 'vacant' | 'absent';

/** A cluster as one LIST shows it: nothing to act upon without reading the objects (rule 4). */
export interface ListedCluster {
  readonly cluster: ClusterConfig;
  /** The rows of the lease objects, also of those beyond the cluster's size. */
  readonly rows: ReadonlyMap<number, ListedObject>;
  /** Of every node id, at its index. */
  readonly leases: readonly ListedState[];
  /** Ids beyond the cluster's size that seem to be held still, in ascending order. */
  readonly draining: readonly number[];
  /** Number of objects beyond the cluster's size that do not seem to be held. */
  readonly retired: number;
  /** What shows that another program keeps a cluster in the same objects; undefined where nothing does. */
  readonly foreign: string | undefined;
}

/** How many node ids are in which state. */
export interface LeaseTotals {
  /** True where they are what a LIST tells, by size and age of the objects: most have not been read. */
  readonly hints: boolean;
  readonly held: number;
  readonly expired: number;
  /** Those that may be taken and are not `expired`. By a LIST also those that were evicted a moment ago. */
  readonly free: number;
  /** Number of the free ones that were never held. */
  readonly neverHeld: number;
  /** Null by a LIST: these count as free. */
  readonly evicted: number | null;
  /** Those that cannot be used; by a LIST the absent ones only. */
  readonly damaged: number;
  /** Objects of ids that were given up, beyond the cluster's size for the most part. */
  readonly retired: number;
}

/** Classifies the rows of a LIST. */
export function listedCluster(objects: readonly ListedObject[], cluster: ClusterConfig): ListedCluster {
  const rows = new Map<number, ListedObject>();
  for (const row of objects) {
    const id = nodeIdOf(row.key);
    if (id !== undefined) rows.set(id, row);
  }
  const leases = Array.from({ length: cluster.size }, (_, id) => listedState(rows.get(id), cluster));
  const beyond = [...rows].filter(([id]) => id >= cluster.size);
  const draining = beyond.filter(([, row]) => listedState(row, cluster) === 'held').map(([id]) => id);
  return {
    ...{ cluster, rows, leases, draining: draining.sort((a, b) => a - b), retired: beyond.length - draining.length },
    foreign: camundaCluster(objects),
  };
}

function listedState(row: ListedObject | undefined, { durationMs, graceMs }: ClusterConfig): ListedState {
  if (row === undefined) return 'absent';
  if (row.size === 0) return 'vacant';
  if (row.size <= nativeCodec.tombstoneMaxBytes) return 'released';
  return row.age.min > durationMs + graceMs ? 'expired' : 'held';
}

/** The totals as far as a LIST tells them. */
export function listedTotals({ cluster, leases, retired }: ListedCluster): LeaseTotals {
  const count = { held: 0, expired: 0, released: 0, vacant: 0, absent: 0 };
  for (const hint of leases) count[hint] += 1;
  const created = cluster.bootstrapped ? 0 : count.absent;
  const neverHeld = count.vacant + created;
  const { held, expired } = count;
  return {
    hints: true,
    held,
    expired,
    free: count.released + neverHeld,
    neverHeld,
    evicted: null,
    damaged: count.absent - created,
    retired,
  };
}

/**
 * The totals of node ids that were all read.
 *
 * @param retiredBeyond how many objects of retired ids there are beyond the cluster's size
 */
export function totalsOf(nodes: readonly NodeStatus[], cluster: ClusterConfig, retiredBeyond: number): LeaseTotals {
  const count = { held: 0, free: 0, expired: 0, evicted: 0, damaged: 0, retired: retiredBeyond };
  let neverHeld = 0;
  for (const node of nodes) {
    const { state } = node;
    if (problemOf(node, cluster) !== undefined) count.damaged += 1;
    else if (state === 'held' || state === 'expired' || state === 'evicted' || state === 'retired') count[state] += 1;
    else {
      count.free += 1;
      if (node.version === 0) neverHeld += 1;
    }
  }
  return { hints: false, ...count, neverHeld };
}

/** A lease object that cannot be used. */
export interface Damage {
  readonly id: number;
  /** What is wrong with it, as a sentence without its full stop. */
  readonly problem: string;
}

/** What keeps a node id from being used; undefined for one that is fine. Before bootstrap is complete an absent object is a vacancy. */
export function problemOf(node: NodeStatus, cluster: ClusterStatus['cluster']): string | undefined {
  if (node.state === 'absent') return cluster.bootstrapped ? 'lease object is absent although the cluster is bootstrapped' : undefined;
  return node.problem;
}

/** Every damaged lease object of a cluster, in ascending order of the ids. */
export function damageOf({ cluster, nodes }: ClusterStatus): Damage[] {
  return nodes.flatMap((node) => {
    const problem = problemOf(node, cluster);
    return problem === undefined ? [] : [{ id: node.id, problem }];
  });
}
