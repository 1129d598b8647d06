import type { ShardEvent, StartShard } from './holding.js';
import type { ShardKey } from './shard-of.js';

/** How to take part in the ownership of shards. */
export interface OwnShardsOptions {
  /** Number of shards, 1 … 4096. The first task fixes it for the cluster. */
  readonly count: number;
  /** Called for each shard that this node gets. */
  readonly start: StartShard;
  /**
   * How long a start may take before it counts as failed and the shard's signal aborts, in milliseconds. The
   * shard moves once the start has settled. @default 60000
   */
  readonly startTimeoutMs?: number | undefined;
  /** How long a stop may take before the shard's signal aborts, in milliseconds. @default 30000 */
  readonly stopTimeoutMs?: number | undefined;
  /** Where this node is reached, `HOST:PORT`, for `shardRouter`. @default none */
  readonly address?: string | undefined;
  /** Receives the events of this node's shards. If it throws, the error becomes an uncaught one. */
  readonly onEvent?: ((event: ShardEvent) => void) | undefined;
}

/** A shard that this node runs. */
export interface OwnedShard {
  readonly shard: number;
  readonly token: number;
}

/** The shards of this node. Dispose of it, or release the lease, to stop all and hand them on. */
export interface OwnedShards extends AsyncDisposable {
  readonly count: number;
  /** The version of the map that this node follows; lower than any before it has read one. */
  readonly epoch: number;
  /** The shards whose `start` has resolved and whose stop has not begun. */
  readonly owned: readonly OwnedShard[];
  /** The shards whose work is ending. */
  readonly stopping: readonly OwnedShard[];
  /** The shard of a key, as the function of this name. */
  shardOf(key: ShardKey): number;
  /** Whether this node runs the key's shard, and can prove that it holds its lease. Compares clocks. */
  owns(key: ShardKey): boolean;
}
