import { ConfigError } from '../base/errors.js';
import { notify } from '../base/listeners.js';
import { Overtaken } from '../lease/hold/holder.js';
import { homeOf } from '../lease/hold/lease-home.js';
import type { Lease } from '../lease/model/lease.js';
import { isStoreAway, whileStoreIsAway } from '../lease/session/store-retry.js';
import type { ShardEvent, StartShard } from './holding.js';
import { ShardMember } from './member.js';
import { ensureMap } from './shard-map.js';
import { checkCount, type ShardKey, shardOf } from './shard-of.js';

/** How to take part in the ownership of shards. */
export interface OwnShardsOptions {
  /** Number of shards, 1 … 4096. The first task fixes it for the cluster. */
  readonly count: number;
  /** Called for each shard that this node gets. */
  readonly start: StartShard;
  /** How long a stop may take before the shard's signal aborts, in milliseconds. @default 30000 */
  readonly stopTimeoutMs?: number;
  /** Where this node is reached, `HOST:PORT`, for `shardRouter`. @default none */
  readonly address?: string;
  /** Receives the events of this node's shards. If it throws, the error becomes an uncaught one. */
  readonly onEvent?: (event: ShardEvent) => void;
}

/** A shard that this node runs. */
export interface OwnedShard {
  readonly shard: number;
  readonly token: number;
}

/** The shards of this node. Dispose of it, or release the lease, to stop all and hand them on. */
export interface OwnedShards extends AsyncDisposable {
  readonly count: number;
  /** The version of the map that this node follows; 0 before it has read one. */
  readonly epoch: number;
  /** The shards whose `start` has resolved and whose stop has not begun. */
  readonly owned: readonly OwnedShard[];
  /** The shards whose work is ending. */
  readonly stopping: readonly OwnedShard[];
  /** The shard of a key: see {@link shardOf}. */
  shardOf(key: ShardKey): number;
  /** Whether this node runs the key's shard, and can prove that it holds its lease. Compares clocks. */
  owns(key: ShardKey): boolean;
}

/**
 * Takes part in the ownership of shards. Each shard runs on at most one node at a time; shards move when nodes
 * come and go, and each waits until its work has ended on the node before.
 *
 * ```ts
 * await using shards = await ownShards(lease, {
 *   count: 64,
 *   start: async (shard, { token, signal }) => {
 *     const consumer = await consume(shard, { token, signal });
 *     return () => consumer.close();
 *   },
 * });
 * ```
 *
 * Not guaranteed: that work which ignores its `signal` ends with the lease. A receiver that refuses smaller
 * tokens refuses it.
 *
 * @throws {ConfigError} when an option is out of range, the cluster has another number of shards, or the lease
 * is a static id or one from ZooKeeper
 * @throws {StoreUnusableError}, {StoreError} when the store cannot be used
 * @throws {LeaseLostError} when the lease ends first
 */
export async function ownShards(lease: Lease, options: OwnShardsOptions): Promise<OwnedShards> {
  const { count, start, stopTimeoutMs = 30_000, address, onEvent } = options;
  checkCount(count);
  if (!(stopTimeoutMs >= 0))
    throw new ConfigError('stopTimeoutMs', stopTimeoutMs, 'milliseconds, at least 0');
  const home = homeOf(lease);
  if (home === undefined || home.leave !== undefined) {
    const given = home === undefined ? 'a static id, or one from ZooKeeper' : 'one that takes part already';
    throw new ConfigError('lease', given, 'the lease of a node id in a store, once');
  }
  const session = await home.session();
  const { clock, random } = home;
  const retry = whileStoreIsAway(
    { clock, random, signal: lease.tenureTime?.signal },
    (error) => isStoreAway(error) || error instanceof Overtaken,
  );
  const config = await retry((call) => ensureMap(session, count, call));
  const member = new ShardMember({
    ...{ lease, home, session, config, count, start, stopTimeoutMs, address },
    emit: (event) => onEvent && notify(onEvent, event),
  });
  const shardsThat = (isWanted: 'isRunning' | 'isStopping') =>
    member.holdings.filter((holding) => holding[isWanted]).map(({ shard, token }) => ({ shard, token }));
  return {
    count,
    get epoch() {
      return member.epoch;
    },
    get owned() {
      return shardsThat('isRunning');
    },
    get stopping() {
      return shardsThat('isStopping');
    },
    shardOf: (key) => shardOf(key, count),
    owns: (key) => member.owns(key),
    [Symbol.asyncDispose]: () => member.leave(),
  };
}
