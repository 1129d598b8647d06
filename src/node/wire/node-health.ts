/**
 * The phase of a process and its node id. `acquiring`: no node id yet. `stopping`: held, or about to be,
 * while the work is being ended. `lost`: against its will, or past its deadline. `failed`: no node id was
 * acquired, and none will be.
 */
export type NodePhase = 'acquiring' | 'held' | 'stopping' | 'released' | 'lost' | 'failed';

/** The state of a process's own node id at the time of the call; it can be written as JSON. */
export interface NodeHealth {
  readonly state: NodePhase;
  /** Whether the process should be kept: until the lease is lost. */
  readonly live: boolean;
  /**
   * Whether work may be sent here: the lease is valid, readiness reached, and the node id is not being
   * retired.
   */
  readonly ready: boolean;
  /** Why it is not ready; null when it is. */
  readonly reason: string | null;
  /**
   * Whether the lease is valid, but the cluster has shrunk and retires this node id: it is to be released.
   */
  readonly retiring: boolean;
  readonly nodeId: number | null;
  /** The fencing token. */
  readonly version: number | null;
  readonly taskId: string | null;
  /**
   * Until when the lease is valid unless it is renewed, in milliseconds on the monotonic clock; null if it is
   * not valid, and for a fixed node id.
   */
  readonly deadline: number | null;
  /** The path of the node id's data directory; absent without one. */
  readonly dataDir?: string;
  /** How many bits a node id takes in unique ids, 8 … 16; null without a lease. */
  readonly idWidth: number | null;
  /**
   * Null without ZooKeeper. It never affects `live`, and `ready` only until the other nodes know of a
   * take-over.
   */
  readonly discovery: {
    readonly state: 'ok' | 'degraded';
    /** Why it is degraded. */
    readonly problem: string | null;
    readonly ready: boolean;
  } | null;
}

/**
 * The health of a process's own node id in `/livez`, `/readyz` and `/lease`, and in `/api/events` as its
 * `instance`.
 */
export interface NodeHealthJson extends Omit<NodeHealth, 'deadline'> {
  /**
   * How much longer the lease is valid without renewal, in whole milliseconds; null if it is not valid, and
   * for a fixed node id.
   */
  readonly validForMs: number | null;
}
