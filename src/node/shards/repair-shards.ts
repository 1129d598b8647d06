import type { Clock, RandomSource } from '../../core/base/clock.js';
import { StoreUnusableError } from '../../core/base/errors.js';
import { settleEpoch } from '../../core/lease/acquire/settled-epoch.js';
import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import { takenAfterMs, versionOf } from '../../core/lease/model/lease-state.js';
import { changeCluster, nextFloor, readExistingCluster } from '../../core/lease/session/cluster-store.js';
import { whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import { isOver, readLeases, type ShownLease } from './find-members.js';
import { readShards } from './read-shards.js';
import { encodeMap, floorOf, ownerless, SHARDS_KEY, type ShardMap, usableMap } from './shard-map.js';

interface RepairShardsOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Receives the node ids whose leases are waited for, whenever there are fewer of them. Must not throw. */
  readonly onWait?: (nodeIds: readonly number[]) => void;
}

/** What {@link repairShards} has mended. */
interface ShardsRepair {
  readonly problem: string;
  /** The first epoch of the mended map. */
  readonly epoch: number;
}

/**
 * Mends the map of shards where that is due (T10): a frozen map of a new series stops all shards, and once each
 * lease shows that, or is over, the map is opened. Repair damaged lease objects first: it waits for them.
 *
 * @returns undefined where nothing is to be mended
 * @throws {StoreUnusableError} when another repair has come in between
 * @throws {StoreError} the map may be frozen then: the next call draws another series
 */
export function repairShards(options: RepairShardsOptions): Promise<ShardsRepair | undefined> {
  // Each attempt draws its own series, so after an unknown outcome no frozen map is sent again.
  return whileStoreIsAway(options)(() => attempt(options));
}

async function attempt(options: RepairShardsOptions): Promise<ShardsRepair | undefined> {
  const { session, clock, random, onWait } = options;
  const retry = whileStoreIsAway(options);
  const cluster = await readExistingCluster(session);
  const { shards } = cluster.config;
  if (shards === undefined) return undefined;
  // T11: until then a task may run shards whose lease says nothing of that.
  const epoch = await settleEpoch({ session, clock, random, retry }, cluster);
  if (epoch.kind === 'settling') await clock.sleep(epoch.until + 1 - clock.monotonic());
  if (epoch.kind !== 'settled') return attempt(options);
  if (!shards.created) return undefined;
  const { count } = shards;
  let waiting: readonly number[] = Array.from({ length: cluster.config.peak }, (_, id) => id);
  // The map is read after the leases: it is never lower than what they show, unless it is damaged.
  const shown = (await readLeases(session, waiting)).map(({ lease }) =>
    lease.kind === 'held' ? (lease.shards?.epoch ?? 0) : 0,
  );
  const { problem } = (await readShards(session, cluster.config, {}, Math.max(...shown))) ?? {};
  if (problem === undefined) return undefined;

  const drawn = await changeCluster(session, cluster, {
    shards: { ...shards, floor: nextFloor(cluster.config, session) },
  });
  // Another task has changed cluster.json.
  if (drawn === undefined) return attempt(options);
  const first = floorOf(drawn.config) + 1;
  const superseded = () =>
    new StoreUnusableError(
      'CLUSTER_CHANGED',
      `${session.store.url}: another repair has replaced ${SHARDS_KEY}`,
    );
  const replace = (map: ShardMap, etag: string | undefined) =>
    session.write(SHARDS_KEY, { body: encodeMap(map), metadata: {} }, etag);
  const freeze = async (): Promise<string> => {
    const object = await session.read(SHARDS_KEY);
    if (!('problem' in usableMap(object, first, count))) throw superseded();
    const result = await replace(ownerless(first, count, true), object?.etag);
    return result.status === 'written' ? result.etag : freeze();
  };
  const frozen = await freeze();

  for (let before = Number.POSITIVE_INFINITY; ; before = waiting.length) {
    const found = await retry(() => readLeases(session, waiting));
    waiting = found.filter((lease) => !hasStopped(lease, first, drawn.config)).map(({ id }) => id);
    if ((await retry(() => session.read(SHARDS_KEY)))?.etag !== frozen) throw superseded();
    if (waiting.length === 0) break;
    if (waiting.length < before) onWait?.(waiting);
    await clock.sleep(session.pollMs);
  }
  await retry(async (_, number) => {
    if ((await replace(ownerless(first + 1, count), frozen)).status === 'written') return;
    // The attempt before may have opened it, and tasks may have gone on from there.
    const map = usableMap(await session.read(SHARDS_KEY), first + 1, count);
    if (number === 1 || 'problem' in map || map.frozen) throw superseded();
  });
  return { problem, epoch: first + 1 };
}

/** T10, 7: whether no task runs a shard by an earlier map on this lease, or ever will. */
function hasStopped({ id, kind, lease, age }: ShownLease, epoch: number, config: ClusterConfig): boolean {
  // Before the bootstrap is complete, an absent one was never held.
  if (kind !== 'lease') return kind === 'absent' && !config.bootstrapped;
  const version = versionOf(lease);
  // One that was emptied by force may still have a holder, which trusts it until then.
  if (version === 0) return age.min > takenAfterMs(config.longestMs, config.graceMs);
  if (isOver({ id, version }, lease, age, config.graceMs)) return true;
  return lease.kind === 'held' && (lease.shards === undefined || lease.shards.epoch === epoch);
}
