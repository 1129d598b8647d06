import type { ClusterSnapshot, NodeTenures } from '../wire/cluster-snapshot.js';
import type { StatusReport } from '../wire/status-report.js';

/** The part of it that is known, without a wait. */
export interface CurrentCluster extends Omit<ClusterSnapshot, 'report'> {
  /** Null while the cluster has never been read, or if the last read is too old. */
  readonly report: StatusReport | null;
  /** Changes after each scan, and whenever the report changes in more than its ages. */
  readonly revision: number;
}

/** A cluster that is followed. Takes no part in the protocol. */
export interface ClusterView {
  /** Random, and different in every process: the numbers of events restart with it. */
  readonly epoch: string;
  /**
   * The current state: the last scan if it is fresh, otherwise a new one.
   *
   * @throws {StoreError} or {ZooKeeperError} when no scan ever succeeded
   * @throws `signal.reason`
   */
  snapshot(signal?: AbortSignal): Promise<ClusterSnapshot>;
  /** The known state at this moment. Unchanged parts are the same objects, except for the report. */
  current(): CurrentCluster;
  /** The tenures that the lease objects of these ids showed at the last scan; none before one. */
  tenures(ids: ReadonlySet<number>): readonly NodeTenures[];
  /**
   * Scans while there are listeners, and calls them at every possible change. They must not throw. The
   * returned function ends it.
   */
  follow(listener: () => void): () => void;
  /** Ends all scans. The store is closed by its owner. Idempotent. */
  close(): Promise<void>;
}
