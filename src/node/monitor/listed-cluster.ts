import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import { markedCluster } from '../../core/lease/model/foreign-cluster.js';
import { nodeIdOf, takenAfterMs } from '../../core/lease/model/lease-state.js';
import type { ClusterStatus, NodeStatus } from '../../core/lease/operate/inspect.js';
import type { ListedObject } from '../../core/store/lease-store.js';
import type { ForeignNode, ForeignReport, LeaseTotals, PageReport } from '../wire/status-report.js';

/**
 * The state of a lease object as a LIST shows it, by size and age alone. `expired`: older than its duration, or
 * that of the cluster if it has not been read, and the grace. `released`: of a tombstone's size, which an evicted one has, too.
 */
export type ListedState = 'held' | 'expired' | 'released' | 'vacant' | 'absent';

/** A cluster as one LIST shows it. Read the objects before you act on it (rule 4). */
export interface ListedCluster {
  readonly cluster: ClusterConfig;
  /** The rows of the lease objects, also of those beyond the cluster's size. */
  readonly rows: ReadonlyMap<number, ListedObject>;
  /** Of every node id, at its index. */
  readonly leases: readonly ListedState[];
  /** Ids beyond the cluster's size that still seem to be held, in ascending order. */
  readonly draining: readonly number[];
  /** Number of objects beyond the cluster's size that do not seem to be held. */
  readonly retired: number;
  /** The sign that another program keeps a cluster in the same objects; undefined without one. */
  readonly foreign: string | undefined;
}

/** A node id in any format. */
export interface ScannedNode extends NodeStatus {
  /** What the report on it has in addition; undefined in nodelease's format, and if it cannot be read. */
  readonly foreign?: ForeignNode | undefined;
}

/** A cluster, and the requested part of its node ids. */
export interface PagedCluster extends ClusterStatus {
  readonly nodes: readonly ScannedNode[];
  /** Of all node ids, whatever the page shows. */
  readonly totals: LeaseTotals;
  /** Ids beyond the cluster's size that are still held, a hundred at most. */
  readonly draining: readonly ScannedNode[];
  /** Null if every lease object was read. */
  readonly page: PageReport | null;
  /** What the report on a cluster in a foreign format has in addition. */
  readonly foreign?: ForeignReport | undefined;
}

/** Clusters of up to this many node ids are read as a whole unless a page is asked for. */
export const READ_AS_A_WHOLE = 500;

/** A cluster whose node ids were all read, without further facts. */
export function wholeCluster({ cluster, nodes }: ClusterStatus): PagedCluster {
  return { cluster, nodes, totals: readTotals(nodes, cluster, 0), draining: [], page: null };
}

/**
 * Classifies the rows of a LIST.
 *
 * @param tombstoneMaxBytes no held lease is that small
 * @param durationOf the duration in a lease, where it is known
 */
export function listedCluster(
  objects: readonly ListedObject[],
  cluster: ClusterConfig,
  tombstoneMaxBytes: number,
  durationOf: (id: number) => number | undefined = () => undefined,
): ListedCluster {
  const rows = new Map<number, ListedObject>();
  for (const row of objects) {
    const id = nodeIdOf(row.key);
    if (id !== undefined) rows.set(id, row);
  }
  const { size, durationMs, graceMs } = cluster;
  const stateOf = (id: number, row = rows.get(id)): ListedState => {
    if (row === undefined) return 'absent';
    if (row.size === 0) return 'vacant';
    if (row.size <= tombstoneMaxBytes) return 'released';
    return row.age.min > takenAfterMs(durationOf(id) ?? durationMs, graceMs) ? 'expired' : 'held';
  };
  const leases = Array.from({ length: size }, (_, id) => stateOf(id));
  const beyond = [...rows.keys()].filter((id) => id >= size);
  const held = beyond.filter((id) => stateOf(id) === 'held');
  return {
    cluster,
    rows,
    leases,
    draining: held.sort((a, b) => a - b),
    retired: beyond.length - held.length,
    foreign: markedCluster(objects)?.found,
  };
}

/** The totals of a cluster: exact if all of its node ids were read, otherwise according to its LIST. */
export function totalsOf(
  nodes: readonly NodeStatus[],
  { cluster, leases, retired }: ListedCluster,
): LeaseTotals {
  if (nodes.length === cluster.size) return readTotals(nodes, cluster, retired);
  const count = { held: 0, expired: 0, released: 0, vacant: 0, absent: 0 };
  for (const state of leases) count[state] += 1;
  const { released, vacant, absent, ...taken } = count;
  const notCreated = cluster.bootstrapped ? 0 : absent;
  const neverHeld = vacant + notCreated;
  return {
    hints: true,
    ...taken,
    free: released + neverHeld,
    neverHeld,
    evicted: null,
    damaged: absent - notCreated,
    retired,
  };
}

function readTotals(
  nodes: readonly NodeStatus[],
  cluster: ClusterConfig,
  retiredBeyond: number,
): LeaseTotals {
  const count = { held: 0, free: 0, expired: 0, evicted: 0, damaged: 0, retired: retiredBeyond };
  let neverHeld = 0;
  for (const node of nodes) {
    const { state } = node;
    if (problemOf(node, cluster) !== undefined) count.damaged += 1;
    else if (state === 'held' || state === 'expired' || state === 'evicted' || state === 'retired')
      count[state] += 1;
    else {
      count.free += 1;
      if (node.version === 0) neverHeld += 1;
    }
  }
  return { hints: false, ...count, neverHeld };
}

/** A lease object that cannot be used. */
interface Damage {
  readonly id: number;
  /** What is wrong with it, as a sentence without its full stop. */
  readonly problem: string;
}

/**
 * The problem that keeps a node id from being used; undefined without one. Before bootstrap is complete an
 * absent object is a vacant id.
 */
export function problemOf(
  { state, problem }: NodeStatus,
  cluster: ClusterConfig | undefined,
): string | undefined {
  if (state !== 'absent') return problem;
  return cluster?.bootstrapped ? 'lease object is absent although the cluster is bootstrapped' : undefined;
}

/** Every damaged lease object of a cluster, in ascending order of the ids. */
export function damageOf({ cluster, nodes }: ClusterStatus): Damage[] {
  return nodes.flatMap((node) => {
    const problem = problemOf(node, cluster);
    return problem === undefined ? [] : [{ id: node.id, problem }];
  });
}
