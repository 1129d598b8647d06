import type { NodeStatus } from '../lease/operate/inspect.js';
import type { DiscoveryStatus } from './discovery-comparison.js';
import type { ListedCluster } from './listed-cluster.js';
import type { ReportHead } from './status-report.js';

/** The result of one scan of a cluster. */
export interface ClusterScan {
  /** In ascending order of the ids; empty when there is no cluster yet. */
  readonly nodes: readonly NodeStatus[];
  /** Those of the scan before that are not there any more, as they are now. */
  readonly gone: readonly NodeStatus[];
  /** How many node ids there are; undefined when there is no cluster yet, and where that is not bounded. */
  readonly size: number | undefined;
  /** What the LIST of this scan told; undefined when there is no cluster yet, and where there is no LIST. */
  readonly hints?: ListedCluster | undefined;
  /** Ids beyond the size that are held still, in ascending order. @default none */
  readonly draining?: readonly NodeStatus[];
  /** What keeps a node id of this scan from being used. */
  problemOf(node: NodeStatus): string | undefined;
  /** Everything but the nodes, as `nodelease status --json` shows it. */
  head(discovery: DiscoveryStatus | undefined): ReportHead;
}

/** Where a cluster is scanned. */
export interface ClusterSource {
  /**
   * Scans once. Not to be called again before that has ended.
   *
   * @throws {StoreError}, {StoreUnusableError} or {ZooKeeperError} when it cannot be read
   * @throws `signal.reason`
   */
  look(signal: AbortSignal): Promise<ClusterScan>;

  /** How long the last request took that says something of how fast the answers come, in milliseconds; null before there was one. */
  readonly latencyMs: number | null;

  /** How far the clock of the store is ahead of this host's wall clock, at least and at most, in milliseconds; null where that is not known. */
  clockOffsetMs(): readonly [min: number, max: number] | null;
}
