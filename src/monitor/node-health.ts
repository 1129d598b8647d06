import type { Clock } from '../base/clock.js';

/**
 * How far a process has got with its node id. `acquiring`: none yet. `held`. `stopping`: held, or about to be, while the work is
 * being ended. `released`: given back. `lost`: against its will, or found to be past its deadline. `failed`: none was acquired, and none will be.
 */
export type NodePhase = 'acquiring' | 'held' | 'stopping' | 'released' | 'lost' | 'failed';

/** What a process says of its own node id at the time of the asking; all of it can be told as JSON. */
export interface NodeHealth {
  readonly state: NodePhase;
  /** Whether the process is worth keeping: until the lease is lost. */
  readonly live: boolean;
  /** Whether work may be sent here: the lease is valid, readiness reached, and the node id is not being retired. */
  readonly ready: boolean;
  /** Why it is not ready; null when it is. */
  readonly reason: string | null;
  /** Whether the lease is valid, while the cluster has fewer node ids now and this one is none of them: it is to be given up. */
  readonly retiring: boolean;
  readonly nodeId: number | null;
  /** The fencing token. */
  readonly version: number | null;
  readonly taskId: string | null;
  /** Until when the lease is valid unless it is renewed, in milliseconds on the monotonic clock; null unless it is, and for a fixed node id. */
  readonly deadline: number | null;
  /** How many bits a node id takes in unique ids, 8 … 16; null without a lease. */
  readonly idWidth: number | null;
  /** Null without ZooKeeper. It never decides about `live`, and about `ready` only until the other nodes know of a take-over. */
  readonly discovery: {
    readonly state: 'ok' | 'degraded';
    /** Why it is degraded. */
    readonly problem: string | null;
    readonly ready: boolean;
  } | null;
}

/** What knows the health of a node: its `NodeMonitor`, or its mirror in another thread. */
export interface WatchedNode {
  /** What the answer is right now. */
  health(): NodeHealth;
  /** Calls `listener` whenever it may be another one for something that has happened, until the returned function is called. */
  onEvent(listener: () => void): () => void;
}

/** What `/livez`, `/readyz` and `/lease` send of a process' own node id, and `/api/events` as its `instance`. */
export interface NodeHealthJson extends Omit<NodeHealth, 'deadline'> {
  /** For how much longer the lease is valid unless it is renewed, in whole milliseconds; null unless it is, and for a fixed node id. */
  readonly validForMs: number | null;
}

/** The same facts for readers with another clock: a deadline on this process' monotonic one would tell them nothing. */
export function nodeHealthJson({ deadline, ...facts }: NodeHealth, clock: Pick<Clock, 'monotonic'>): NodeHealthJson {
  return { ...facts, validForMs: deadline === null ? null : Math.max(0, Math.floor(deadline - clock.monotonic())) };
}
