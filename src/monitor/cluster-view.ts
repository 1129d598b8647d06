import type { DiscoveryReport } from './discovery-report.js';
import type { NodeReport, ReportHead, StatusReport } from './status-report.js';

/** How the place where the leases come from is doing, as the looks at it tell. */
export interface StoreHealth {
  /** `unknown` before the first look has ended. */
  readonly state: 'ok' | 'failing' | 'unknown';
  /** Why it is failing, as one sentence. */
  readonly problem: string | null;
  /** How long the last request of a look took, in milliseconds. */
  readonly latencyMs: number | null;
  /** How far the store's clock is ahead of this host's, at least and at most, in milliseconds; null where that is not known. */
  readonly clockOffsetMs: readonly [min: number, max: number] | null;
  /** When the last look that succeeded ended, by this host's wall clock, in milliseconds since the Unix epoch. */
  readonly lookedAt: number | null;
}

/** Something that happened in a cluster between two looks. */
export interface ClusterEvent {
  /** Counts from 1 within the {@link ClusterView.epoch}. */
  readonly id: number;
  /** When it was seen, by this host's wall clock, in milliseconds since the Unix epoch. */
  readonly at: number;
  /**
   * `acquired`: a free id. `taken-over`: one whose holder had not released it. `released`: by its holder. `evicted`: by force. `overdue`: its
   * holder did not renew it in time; nobody may take it before the grace period is over. `retired`, `restored`: by scaling. `resized`: the
   * cluster has another number of ids. `damaged`: the lease object is absent or unreadable. `store-failed`, `store-ok`: the looks themselves.
   */
  readonly kind:
    | 'acquired'
    | 'taken-over'
    | 'released'
    | 'evicted'
    | 'overdue'
    | 'retired'
    | 'restored'
    | 'resized'
    | 'damaged'
    | 'store-failed'
    | 'store-ok';
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
   * The leases, as `nodelease status --json` shows them. `nodes` is sorted by id. With more than 256 node ids `knownNodes` has only what
   * differs from the version of the node id, here and in a {@link ClusterUpdate}: all of it would fill megabytes.
   */
  readonly report: StatusReport;
  readonly store: StoreHealth;
  /** The discovery tree; null without ZooKeeper, and while it cannot be read. */
  readonly tree: DiscoveryReport | null;
  /** The last 200 things that happened, oldest first. */
  readonly events: readonly ClusterEvent[];
}

/** A part of a {@link ClusterSnapshot} that is different now. */
export type ClusterUpdate =
  /** Node ids that were written, or are in another state now. */
  | { readonly type: 'nodes'; readonly nodes: readonly NodeReport[] }
  /** Everything but the nodes of the report: the cluster was created, or has other settings. */
  | { readonly type: 'cluster'; readonly report: ReportHead }
  | { readonly type: 'store'; readonly store: StoreHealth }
  | { readonly type: 'tree'; readonly tree: DiscoveryReport | null }
  | { readonly type: 'change'; readonly event: ClusterEvent };

/** A cluster as it is followed by whoever shows it. Takes no part in the protocol. */
export interface ClusterView {
  /** Random, and another one in every process: the numbers of events begin anew with it. */
  readonly epoch: string;

  /**
   * What there is to see now: what was seen last, where that is fresh, else after a look.
   *
   * @throws {StoreError} or {ZooKeeperError} when there never was a look that succeeded
   * @throws `signal.reason`
   */
  snapshot(signal?: AbortSignal): Promise<ClusterSnapshot>;

  /**
   * Looks again and again as long as somebody follows, and calls `listener` with what is different. Listeners must not throw.
   *
   * @returns ends it
   */
  follow(listener: (update: ClusterUpdate) => void): () => void;

  /** Nobody is told anything any more. The store is whoever's opened it. Idempotent. */
  close(): Promise<void>;
}
