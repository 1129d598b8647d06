import type { ClusterStatus, NodeStatus } from '../lease/operate/inspect.js';
import { type LeaseTotals, totalsOf } from './listed-cluster.js';

/** Where a page stands in a large cluster. */
export interface PageReport {
  /** From which id on they were asked for. */
  readonly from: number;
  /** Maximum number of node ids. */
  readonly limit: number;
  /** Where the next page begins; null where there is none, and where the page is a choice of the ids of which there is most to tell. */
  readonly next: number | null;
}

/** A cluster, and as many of its node ids as were asked for. */
export interface PagedCluster extends ClusterStatus {
  /** Of all node ids, whatever the page shows. */
  readonly totals: LeaseTotals;
  /** Ids beyond the cluster's size that are held still, a hundred at most. */
  readonly draining: readonly NodeStatus[];
  /** Null where every lease object was read. */
  readonly page: PageReport | null;
}

/** Clusters of up to so many node ids are read as a whole unless a page is asked for. */
export const READ_AS_A_WHOLE = 500;

/** A cluster all of whose node ids were read, and of which nothing else is known. */
export function wholeCluster({ cluster, nodes }: ClusterStatus): PagedCluster {
  return { cluster, nodes, totals: totalsOf(nodes, cluster, 0), draining: [], page: null };
}
