import type { TreeReport } from './discovery-comparison.js';
import type { StatusReport } from './status-report.js';

/** How the store of the leases is doing, as the scans tell. */
export interface StoreHealth {
  /** `unknown` before the first scan has ended. */
  readonly state: 'ok' | 'failing' | 'unknown';
  /** Why it is failing, as one sentence. */
  readonly problem: string | null;
  /** How long the last listing took, in milliseconds. */
  readonly latencyMs: number | null;
  /**
   * How far the store's clock is ahead of this host's, at least and at most, in milliseconds; null where that
   * is not known.
   */
  readonly clockOffsetMs: readonly [min: number, max: number] | null;
  /** When the last successful scan ended, by this host's wall clock, in milliseconds since the Unix epoch. */
  readonly lookedAt: number | null;
}

/** Something that happened in a cluster between two scans. */
export interface ClusterEvent {
  /** Counts from 1 within the {@link ClusterView.epoch}. */
  readonly id: number;
  /** When it was seen, by this host's wall clock, in milliseconds since the Unix epoch. */
  readonly at: number;
  /**
   * When the scan before had ended, by the same clock: it happened after that. Null before the first scan,
   * and of the scans themselves.
   */
  readonly since: number | null;
  /**
   * `acquired`: a free id. `taken-over`: one whose holder had not released it. `released`: by its holder.
   * `evicted`: by force. `overdue`: its holder did not renew it in time; no task may take it before the grace
   * period is over. `retired`, `restored`: by scaling. `resized`: the cluster has another number of ids.
   * `damaged`: the lease object is absent or unreadable. `version-repeated`: a version of Camunda's was used
   * again, or went back. `store-failed`, `store-ok`: the scans themselves.
   */
  readonly kind:
    | (
        | 'acquired'
        | 'taken-over'
        | 'released'
        | 'evicted'
        | 'overdue'
        | 'retired'
        | 'restored'
        | 'damaged'
        | 'version-repeated'
      )
    | ('resized' | 'store-failed' | 'store-ok');
  /** Null where it is not about one node id. */
  readonly nodeId: number | null;
  readonly version: number | null;
  readonly taskId: string | null;
  /** Whom it was taken from, where that is known. */
  readonly previousTaskId: string | null;
  /** The whole of it in one sentence, without a full stop. */
  readonly text: string;
}

/** Everything that a console shows of a cluster at one moment. */
export interface ClusterSnapshot {
  /**
   * The leases, as `nodelease status --json` shows them; with more than 256 node ids `knownNodes` has only
   * what differs from their versions.
   */
  readonly report: StatusReport;
  readonly store: StoreHealth;
  /** The discovery tree; null without ZooKeeper, and while it cannot be read. */
  readonly tree: TreeReport | null;
  /** The last 200 things that happened, oldest first. */
  readonly events: readonly ClusterEvent[];
}

/** The same as far as it is known, without waiting for it. */
export interface CurrentCluster extends Omit<ClusterSnapshot, 'report'> {
  /** Null while the cluster has never been read, or not for so long that it may be another one by now. */
  readonly report: StatusReport | null;
  /** Another number after each scan, and whenever else the report is another one but for its ages. */
  readonly revision: number;
}

/** A cluster that is followed. Takes no part in the protocol. */
export interface ClusterView {
  /** Random, and another one in every process: the numbers of events begin anew with it. */
  readonly epoch: string;
  /**
   * What there is now: the last scan, where that is fresh, else another one.
   *
   * @throws {StoreError} or {ZooKeeperError} when no scan ever succeeded
   * @throws `signal.reason`
   */
  snapshot(signal?: AbortSignal): Promise<ClusterSnapshot>;
  /** What is known at this moment. The parts that have not changed are the same objects, the report aside. */
  current(): CurrentCluster;
  /**
   * Scans while there are listeners, and calls them whenever something may be different. They must not throw.
   * Returns what ends it.
   */
  follow(listener: () => void): () => void;
  /** Ends all scans. The store is closed by its owner. Idempotent. */
  close(): Promise<void>;
}
