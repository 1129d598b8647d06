import { checkArguments, checked } from '../../core/base/arguments.js';
import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { SessionCall, StoreSession } from '../../core/lease/session/store-session.js';
import type { StoredObject } from '../../core/store/lease-store.js';
import type { ShardsReport } from '../wire/cluster-snapshot.js';
import { floorOf, type MapMember, ownerless, SHARDS_KEY, type ShardMap, usableMap } from './shard-map.js';

/** The map of a cluster with shards, as its operators see it. */
interface ShardsReading {
  /** Without owners, and of epoch 0, while it cannot be used, or no task has made it yet. */
  readonly map: ShardMap;
  readonly object: StoredObject | undefined;
  /** Why a repair is due, as a sentence without its subject and full stop (T10). */
  readonly problem: string | undefined;
}

/**
 * Reads the map.
 *
 * @param shown the highest epoch that a lease is known to show
 * @returns undefined for a cluster without shards
 * @throws {StoreError}
 */
export async function readShards(
  session: StoreSession,
  config: ClusterConfig,
  call: SessionCall = {},
  shown = 0,
): Promise<ShardsReading | undefined> {
  const { shards } = config;
  if (shards === undefined) return undefined;
  const object = await session.read(SHARDS_KEY, call);
  const found = usableMap(object, Math.max(floorOf(config) + 1, shown), shards.count);
  if (!('problem' in found))
    return { map: found, object, problem: found.frozen ? 'is frozen by a repair' : undefined };
  // Until then an absent map is no damage.
  return { map: ownerless(0, shards.count), object, problem: shards.created ? found.problem : undefined };
}

/**
 * Reads who owns which shard, for a console. One GET; no request for a cluster without shards.
 *
 * @throws {StoreError}
 */
export async function shardsReport(
  session: StoreSession,
  config: ClusterConfig,
  signal: AbortSignal,
): Promise<ShardsReport | undefined> {
  checkArguments({ session, config });
  const found = await readShards(session, config, checked({ signal }));
  if (found === undefined) return undefined;
  const { map, problem = null } = found;
  const index = new Map<MapMember | undefined, number>(map.members.map((member, at) => [member, at]));
  const at = (member: MapMember | undefined) => index.get(member) ?? -1;
  return {
    epoch: map.epoch,
    problem,
    members: map.members,
    shards: map.shards.map(({ owner, token, next }) => [at(owner), token, at(next)]),
    failed: [...map.shards.entries()].flatMap(([shard, { failed }]) => (failed ? [[shard, failed]] : [])),
    limits: [...(map.limits ?? [])].map(([member, limit]) => [at(member), limit]),
  };
}

/** How many shards have an owner, are to move to another one, have no owner, and have failed to start. */
export function shardCounts({ shards }: Pick<ShardMap, 'shards'>) {
  const owned = shards.filter(({ owner }) => owner !== undefined).length;
  const moving = shards.filter(({ next }) => next !== undefined).length;
  const failing = shards.filter(({ failed }) => failed).length;
  return { owned, moving, orphaned: shards.length - owned, failing };
}

/** The shards in one line, with what is wrong with their map. */
export function shardsText({ map, problem }: ShardsReading): string {
  const { owned, moving, orphaned, failing } = shardCounts(map);
  const counts = `owned ${owned}, moving ${moving}, orphaned ${orphaned}${failing > 0 ? `, failing ${failing}` : ''}`;
  const advice = problem === undefined ? '' : `; ${SHARDS_KEY} ${problem}: nodelease init --repair mends it`;
  return `shards: ${counts}${advice}`;
}
