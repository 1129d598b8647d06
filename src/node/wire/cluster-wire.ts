// What the page reads of what `/api/events` sends. It is compiled for browsers, without the server's types:
// `wire.test.ts` does not compile when the two differ.

/** One node id. See `NodeReport`. */
export interface WireNode {
  readonly id: number;
  readonly state:
    | 'vacant'
    | 'held'
    | 'expired'
    | 'released'
    | 'evicted'
    | 'retired'
    | 'absent'
    | 'unreadable';
  readonly version: number;
  readonly taskId: string | null;
  readonly ageMs: readonly [min: number, max: number | null] | null;
  readonly expiresInMs: number | null;
  readonly timestamp: number | null;
  readonly knownNodes: Readonly<Record<number, number>>;
  readonly idWidth: number | null;
  readonly sticky?: string;
  readonly problem: string | null;
  /** Only in Camunda's cluster. */
  readonly camunda?: { readonly acquirable: boolean; readonly warning: string | null };
}

/** Everything of a report but the nodes. See `StatusReport`. */
export interface WireCluster {
  readonly store: string | null;
  readonly cluster: {
    readonly size: number;
    readonly durationMs: number | null;
    readonly graceMs: number;
    readonly idWidth: number | null;
    readonly bootstrapped: boolean;
  } | null;
  readonly discovery: {
    readonly state: 'ok' | 'degraded';
    readonly problem: string | null;
    readonly nodes: readonly {
      readonly id: number;
      readonly state: string;
      readonly version: number | null;
    }[];
  } | null;
  readonly allocation: {
    readonly zookeeper: string;
    readonly groups: readonly number[];
    readonly idWidth: number;
  } | null;
  readonly draining: readonly { readonly id: number; readonly taskId: string | null }[];
  readonly format?: 'camunda';
  readonly restores?: readonly {
    readonly restoreId: string;
    readonly restoredNodes: readonly number[];
    readonly problem: string | null;
  }[];
}

/** See `StoreHealth`. */
export interface WireStore {
  readonly state: 'ok' | 'failing' | 'unknown';
  readonly problem: string | null;
  readonly latencyMs: number | null;
  readonly clockOffsetMs: readonly [min: number, max: number] | null;
  readonly lookedAt: number | null;
}

/** See `EntryReport`. */
export interface WireEntry {
  readonly path: string;
  readonly nodeId: number | null;
  readonly version: number | null;
  readonly taskId: string | null;
  readonly address: string | null;
  readonly port: number | null;
  readonly problem: string | null;
}

/** The discovery tree. See `DiscoveryReport`. */
export interface WireTree {
  readonly zookeeper: string;
  readonly exists: boolean;
  readonly nodes: readonly WireEntry[];
  readonly services: readonly { readonly service: string; readonly nodes: readonly WireEntry[] }[];
  readonly endpoints: readonly { readonly endpoint: string; readonly keys: readonly WireKey[] }[];
  readonly foreign: readonly string[];
  /** Undefined where no locks are followed, null while they cannot be read. */
  readonly locks?: readonly WireLock[] | null | undefined;
  /** The same of shared data. */
  readonly data?: readonly WireData[] | null | undefined;
  /** The same of configurations. */
  readonly configurations?: readonly WireConfiguration[] | null | undefined;
}

/** See `FleetReport`. */
export interface WireConfiguration {
  readonly context: string;
  readonly revisions: Readonly<Record<string, number>>;
  readonly nodes: readonly {
    readonly nodeId: number;
    readonly revisions: Readonly<Record<string, number>>;
    readonly behind: readonly string[];
  }[];
}

/** See `SharedDataReport`. */
export interface WireData {
  readonly zookeeper: string;
  readonly root: string;
  readonly data: readonly WireDatum[];
}

/** See `DatumReport`. */
export interface WireDatum {
  readonly path: string;
  readonly name: string | null;
  readonly scope: string | null;
  readonly kind: string | null;
  readonly lifespan: string | null;
  readonly size: number;
  readonly entries: readonly WireDataEntry[];
  readonly problem: string | null;
}

/** See `DataEntry`. */
export interface WireDataEntry {
  readonly path: string;
  readonly key: WireScalar | null;
  readonly scalar: WireScalar | null;
  readonly place: number | null;
  readonly owner: string | null;
  readonly node: string | null;
  readonly version: string | null;
  readonly problem: string | null;
}

interface WireScalar {
  readonly type: string;
  readonly value: string;
}

/** See `Standing`. */
export interface WireLock {
  readonly path: string;
  readonly kind: string;
  readonly holders: readonly WireContender[];
  readonly waiting: readonly WireContender[];
}

/** See `Contender`. */
export interface WireContender {
  readonly data: string;
  readonly token: string;
  readonly since: number;
}

interface WireKey {
  readonly key: string;
  readonly refs: readonly WireEntry[];
}

/** See `ShardsReport`. */
export interface WireShards {
  readonly epoch: number;
  readonly problem: string | null;
  readonly members: readonly WireMember[];
  readonly shards: readonly (readonly [owner: number, token: number, next: number])[];
  readonly failed: readonly (readonly [shard: number, starts: number])[];
  readonly limits: readonly (readonly [member: number, limit: number])[];
}

export interface WireMember {
  readonly id: number;
  readonly version: number;
}

/** Something that happened. See `ClusterEvent`. */
export interface WireEvent {
  readonly id: number;
  readonly at: number;
  readonly since: number | null;
  /** One that the page does not know is shown all the same. */
  readonly kind: string;
  readonly nodeId: number | null;
  readonly version: number | null;
  readonly taskId: string | null;
  readonly previousTaskId: string | null;
  readonly text: string;
}

/** The node id of the process that serves the page, as `/readyz` reports it. */
export interface WireInstance {
  readonly state: string;
  readonly live: boolean;
  readonly ready: boolean;
  readonly reason: string | null;
  readonly nodeId: number | null;
  readonly version: number | null;
  readonly taskId: string | null;
  /** Null for a fixed node id, which needs no renewal, and where the lease is not valid. */
  readonly validForMs: number | null;
  readonly discovery: {
    readonly state: 'ok' | 'degraded';
    readonly problem: string | null;
    readonly ready: boolean;
  } | null;
}

/** See `StatusReport`: all node ids, or the first page of them. */
export interface WireReport extends WireCluster, WirePage {}

/** Node ids from `from` up to `next`; all that there are without a page. */
export interface WirePage {
  readonly nodes: readonly WireNode[];
  readonly page: { readonly from: number; readonly next: number | null } | null;
}

/** What `/api/history` answers. See `NodeTenures`: the newest tenure comes first. */
export interface WireHistory {
  readonly nodes: readonly {
    readonly id: number;
    readonly tenures: readonly WireTenure[];
    readonly knownSince: number | null;
  }[];
}

export interface WireTenure {
  readonly version: number;
  readonly taskId: string;
  readonly acquiredAt: number | null;
  readonly endedAt: number | null;
  readonly end: string | null;
}

/** What comes first on every connection. */
export interface WireHello {
  readonly epoch: string;
  /** @default false */
  readonly hasServices?: boolean;
  readonly hasConfigurations?: boolean;
  readonly writesData?: boolean;
  readonly instance: WireInstance | null;
  /** Null while the cluster has never been read. */
  readonly report: WireReport | null;
  readonly store: WireStore;
  readonly tree: WireTree | null;
  readonly shards?: WireShards | undefined;
  readonly events: readonly WireEvent[];
}
