import type { PastTenure } from '../../core/lease/model/tenure-history.js';
import type { FleetReport } from '../../zookeeper/configuration/fleet-report.js';
import type { Standing } from '../../zookeeper/recipes/standing.js';
import type { DataReport } from '../../zookeeper/shared-data/data-report.js';
import type { NodeHealthJson } from './node-health.js';
import type { NodeReport, StatusReport } from './status-report.js';

// For the page, which may import no other room.
export type { Contender, Standing } from '../../zookeeper/recipes/standing.js';
export type { DataEntry, DataReport, DatumReport } from '../../zookeeper/shared-data/data-report.js';
export type { FleetReport };

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
  /** Undefined for a cluster without shards, and where they are not followed. */
  readonly shards?: ShardsReport | undefined;
  /** The locks of the store; undefined while they have not been read, and where they are not followed. */
  readonly locks?: readonly LockReport[] | undefined;
  /** The last 200 events, oldest first. */
  readonly events: readonly ClusterEvent[];
}

/** The health of the store of the leases, according to the scans. */
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

/** Before the first scan. */
export const UNKNOWN_STORE: StoreHealth = {
  state: 'unknown',
  problem: null,
  latencyMs: null,
  clockOffsetMs: null,
  lookedAt: null,
};

/** Something that happened in a cluster between two scans. */
export interface ClusterEvent {
  /** Counts from 1 within the `epoch`. */
  readonly id: number;
  /** When it was seen, by this host's wall clock, in milliseconds since the Unix epoch. */
  readonly at: number;
  /**
   * When the previous scan had ended, by the same clock: the event happened after that. Null before the first
   * scan, and for the scans themselves.
   */
  readonly since: number | null;
  /**
   * `acquired`: a free id. `taken-over`: one whose holder had not released it. `released`: by its holder.
   * `evicted`: by force. `overdue`: its holder did not renew it in time; no task may take it before the grace
   * period is over. `retired`, `restored`: by scaling. `resized`: the cluster has another number of ids.
   * `damaged`: the lease object is absent or unreadable. `version-repeated`: a version was used again, or
   * went back: only in a foreign format. `store-failed`, `store-ok`: the scans themselves.
   */
  readonly kind:
    | 'acquired'
    | 'taken-over'
    | 'released'
    | 'evicted'
    | 'overdue'
    | 'retired'
    | 'restored'
    | 'damaged'
    | 'version-repeated'
    | 'resized'
    | 'store-failed'
    | 'store-ok';
  /** Null if the event is not about one node id. */
  readonly nodeId: number | null;
  readonly version: number | null;
  readonly taskId: string | null;
  /** The task from which it was taken, if known. */
  readonly previousTaskId: string | null;
  /** The event in one sentence, without its full stop. */
  readonly text: string;
}

/** Who owns which shard. */
export interface ShardsReport {
  readonly epoch: number;
  /** Why a repair is due, as a sentence without its subject and full stop; null without a reason. */
  readonly problem: string | null;
  /** The tenures that take part. */
  readonly members: readonly ShardsMember[];
  /** Of each shard: its owner and the one to move to, as indices of `members` or -1, and between them the token. */
  readonly shards: readonly (readonly [owner: number, token: number, next: number])[];
  /** The shards that do not start, or have not run for long, and how many starts in a row have failed. */
  readonly failed: readonly (readonly [shard: number, starts: number])[];
  /** The members, as indices, that take no more shards than this for now, since starts have failed there. */
  readonly limits: readonly (readonly [member: number, limit: number])[];
}

/** A tenure that takes part in the shards. */
export interface ShardsMember {
  readonly id: number;
  readonly version: number;
}

/** A lock of a store, as `status --locks --json` prints it. */
export interface LockReport extends Pick<NodeReport, 'state' | 'problem'> {
  readonly name: string;
  /** The task that holds it, or held it when it `expired`; null for a free one. */
  readonly holder: string | null;
  /** The version: that of the next holder is greater. */
  readonly token: number;
  /** When the holder acquired it, and until when it is held unless renewed: store time, in milliseconds since the Unix epoch. */
  readonly since: number | null;
  readonly until: number | null;
  /** The last tick of `nodelease once`; null without one, and where it cannot be read. */
  readonly once: TickReport | null;
}

/** A tick that a task has claimed; its times are store time, in milliseconds since the Unix epoch. */
export interface TickReport {
  readonly tick: number;
  /** 1 for the first claim of the tick. */
  readonly attempt: number;
  readonly taskId: string;
  readonly startedAt: number;
  /** How many ticks before it no task has claimed, at most 1,000. */
  readonly missed: number;
  /** Left out while it runs, and where its task was killed, or has lost the lock. */
  readonly outcome?: 'succeeded' | 'failed' | 'forgotten' | undefined;
  readonly endedAt?: number | undefined;
}

/** What comes first on every connection of `/api/events`. */
export interface ClusterHello extends Omit<ClusterSnapshot, 'report'>, ConsoleOffers {
  /** Random, and different in every process: the numbers of events restart with it. */
  readonly epoch: string;
  /** The node id of the process that serves the page; null without one. */
  readonly instance: NodeHealthJson | null;
  /** All node ids, or the first page of them; null while the cluster has never been read. */
  readonly report: StatusReport | null;
}

/**
 * What a console has in addition to the cluster: its further pages, and whether holders of the token may change
 * shared data.
 */
export interface ConsoleOffers {
  readonly hasServices?: true | undefined;
  readonly hasConfigurations?: true | undefined;
  readonly writesData?: true | undefined;
  /** What may be done to the task of a node id, by a POST of `/api/acts/ACT/ID`: in the demo only. */
  readonly acts?: readonly string[] | undefined;
}

/** What `/api/history` answers. */
export interface ClusterHistory {
  readonly nodes: readonly NodeTenures[];
}

/** The known tenures of a node id, the newest first. */
export interface NodeTenures {
  readonly id: number;
  readonly tenures: readonly Tenure[];
  /**
   * From when on no tenure is missing, in store time, in milliseconds since the Unix epoch: where none is known
   * at a later time, no task held the id. 0 where none was forgotten; null where nothing is known.
   */
  readonly knownSince: number | null;
}

/** A tenure of an id; `endedAt` and `end` are null for one that is not known to be over. */
export interface Tenure extends Pick<PastTenure, 'version' | 'taskId'> {
  /** Store time, in milliseconds since the Unix epoch; null where the object does not say. */
  readonly acquiredAt: number | null;
  readonly endedAt: number | null;
  readonly end: PastTenure['end'] | null;
}

/** What is followed in ZooKeeper's tree in addition to the discovery tree. */
export interface TreeParts {
  readonly locks: readonly Standing[];
  readonly data: readonly DataReport[];
  readonly configurations: readonly FleetReport[];
}

/** The discovery tree, and the parts that are followed: null while they cannot be read. */
export type TreeReport = DiscoveryReport & {
  readonly [Name in keyof TreeParts]?: TreeParts[Name] | null | undefined;
};

/** What `discovery ls --json` prints: every field is always there, null where there is nothing to say. */
export interface DiscoveryReport {
  /** The connect string. */
  readonly zookeeper: string;
  /** The requested path, within the chroot. */
  readonly path: string;
  /** False when there is nothing at that path. */
  readonly exists: boolean;
  /** In ascending order of the ids. */
  readonly nodes: readonly (EntryReport & { readonly clusterNodeId: number })[];
  /** The requested services, also services that no node offers any more. */
  readonly services: readonly { readonly service: string; readonly nodes: readonly EntryReport[] }[];
  readonly endpoints: readonly { readonly endpoint: string; readonly keys: readonly KeyReport[] }[];
  /** The paths of znodes that do not belong to the tree. */
  readonly foreign: readonly string[];
}

/** A key of an endpoint in a {@link DiscoveryReport}. */
export interface KeyReport {
  /** `_` for the endpoints that have none. */
  readonly key: string;
  readonly refs: readonly (EntryReport & { readonly ref: string })[];
}

/** One announcement in a report. */
export interface EntryReport {
  readonly path: string;
  /** From its name, otherwise from its data; null if neither has it. */
  readonly nodeId: number | null;
  readonly version: number | null;
  readonly taskId: string | null;
  readonly service: string | null;
  readonly address: string | null;
  readonly port: number | null;
  /** 16 hex digits; null for a persistent znode, which belongs to no session. */
  readonly sessionId: string | null;
  /** All fields of its JSON; null if it is not JSON. */
  readonly data: Readonly<Record<string, unknown>> | null;
  readonly problem: string | null;
}
