import { orAborted } from '../../core/base/abort.js';
import { checkArguments, checkKnown, FUNCTION, maybe, NAME } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { Overtaken } from '../../core/lease/hold/holder.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { readExistingCluster } from '../../core/lease/session/cluster-store.js';
import { isStoreAway, whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import { ShardMember, type ShardMemberOptions } from './member.js';
import type { OwnedShards, OwnShardsOptions } from './owned-shards.js';
import { ensureMap } from './shard-map.js';
import { checkCount } from './shard-of.js';

const NAMES = [
  'count',
  'start',
  'startTimeoutMs',
  'stopTimeoutMs',
  'address',
  'onEvent',
] satisfies (keyof OwnShardsOptions)[];

/**
 * Takes part in the ownership of shards. Each shard runs on at most one node at a time. Shards move when
 * nodes come and go, and each waits until its work has ended on the node before.
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
 * While the store is away it waits, as long as the lease is held. Not guaranteed: that work which ignores its
 * `signal` ends with the lease. A receiver that refuses smaller tokens refuses it.
 *
 * @throws {ConfigError} when an option is out of range, the cluster has another number of shards, or the
 * lease is a static id or one from ZooKeeper
 * @throws {StoreUnusableError}, {StoreError} when the store cannot be used
 * @throws what ended the lease, if that comes first
 */
export async function ownShards(lease: Lease, options: OwnShardsOptions): Promise<OwnedShards> {
  checkKnown(options, NAMES);
  const { count, start, startTimeoutMs = 60_000, stopTimeoutMs = 30_000, address } = options;
  checkCount(count);
  checkArguments(
    { start, startTimeoutMs, stopTimeoutMs, address },
    { start: FUNCTION, address: maybe(NAME) },
  );
  const { home, tenureTime } = Object(lease) as Partial<Lease>;
  if (home === undefined || tenureTime === undefined || home.work !== undefined) {
    const given = home === undefined ? 'a static id, or one from ZooKeeper' : 'one that takes part already';
    throw new ConfigError('lease', given, 'the lease of a node id in a store, once');
  }
  // Before anything is awaited: two members of one tenure would each start every shard.
  home.attach({ end: async () => true });
  try {
    return await takePart({
      ...options,
      startTimeoutMs,
      stopTimeoutMs,
      lease,
      home,
      signal: tenureTime.signal,
    });
  } catch (error) {
    home.attach(undefined);
    throw error;
  }
}

async function takePart(options: Omit<ShardMemberOptions, 'session' | 'cluster'>): Promise<ShardMember> {
  const { count, home, signal, address } = options;
  const { clock, random } = home;
  const session = await home.session();
  const retry = whileStoreIsAway(
    { clock, random, signal, until: Number.POSITIVE_INFINITY },
    (error) => isStoreAway(error) || error instanceof Overtaken,
  );
  await retry((call, attempt) => ensureMap(session, random, count, call, attempt));
  // T10, 5: a repair waits for each lease with the mark. So the mark comes first, and nothing that was read
  // before is used.
  await orAborted(home.mark({ shards: { epoch: 0 }, address }), signal);
  const cluster = await retry((call) => readExistingCluster(session, call)).catch((error) => {
    void home.mark({});
    throw error;
  });
  return new ShardMember({ ...options, session, cluster });
}
