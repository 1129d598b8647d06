import type { RandomSource } from '../../core/base/clock.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { Overtaken } from '../../core/lease/hold/holder.js';
import { type ClusterConfig, MAX_SHARDS } from '../../core/lease/model/cluster-config.js';
import {
  LeaseUnreadableError,
  parseObject,
  readAs,
  readInteger,
} from '../../core/lease/model/lease-codec.js';
import { MAX_NODE_IDS } from '../../core/lease/model/lease-state.js';
import {
  changeCluster,
  nextFloor,
  readExistingCluster,
  recordEpoch,
} from '../../core/lease/session/cluster-store.js';
import type { SessionCall, StoreSession } from '../../core/lease/session/store-session.js';
import type { StoredObject } from '../../core/store/lease-store.js';

/** After how many attempts a task no longer waits for the map of another one. */
const WAITING_ATTEMPTS = 8;

/** The key of the map. */
export const SHARDS_KEY = 'shards.json';

/** A tenure that takes part in the ownership of shards. */
export interface MapMember {
  readonly id: number;
  readonly version: number;
  readonly address?: string | undefined;
}

/** The most failed starts of a shard in a row that are counted. The pauses between them grow no more by then. */
export const MAX_FAILED = 9;

/** What the map says of one shard (T3). Owner and next are members of the map. */
export interface Shard {
  /** The tenure that may run it; undefined for none. */
  readonly owner: MapMember | undefined;
  /** The epoch of the write that made it the owner; 0 for a shard that never had one. */
  readonly token: number;
  /** The tenure to hand it on to: a wish. */
  readonly next: MapMember | undefined;
  /** How many starts in a row have failed, up to {@link MAX_FAILED} (T9). @default 0 */
  readonly failed?: number | undefined;
}

/**
 * `shards.json`: who owns which shard. Each write is the next epoch (T1), and the object is never deleted.
 *
 * ```json
 * {"epoch":41, "count":4, "members":[[3,17,"10.0.0.7:8080"],[5,2]],
 *  "owner":[0,0,1,-1], "token":[12,12,41,0], "next":{"1":1}}
 * ```
 *
 * A member is its node id, its version, and its address if it has one. `owner` has an index of `members` for
 * each shard, or -1. `token` is written less `before`, if tokens are long. `next` has an index for the
 * shards that are to move. If these are more than a third, it is a list like `owner`: the shorter one keeps a
 * map of {@link MAX_SHARDS} shards within a record of a `file:` store, 64 KiB.
 *
 * After failed starts there are `"failed":{"2":1}`, how many in a row by shard, written like `next`; and
 * `"limit":{"0":2}`, by index of `members` the most shards that the member takes (T9).
 */
export interface ShardMap {
  readonly epoch: number;
  /** During a repair: no shard has an owner, or gets one (T10). */
  readonly frozen?: boolean;
  readonly members: readonly MapMember[];
  readonly shards: readonly Shard[];
  /** The most shards that a member takes. Members without a limit are left out (T9). @default none */
  readonly limits?: Limits | undefined;
}

export type Limits = ReadonlyMap<MapMember, number>;

/** The shards of a member, with their numbers; none without one. */
export function ownedBy({ shards }: ShardMap, member: MapMember | undefined): [number, Shard][] {
  return member === undefined ? [] : [...shards.entries()].filter(([, { owner }]) => owner === member);
}

/** The greatest token that is written as it is. */
const MOST_SHORT = 2 ** 20;

/** The body of the map. */
export function encodeMap({ epoch, frozen, members, shards, limits }: ShardMap): string {
  const index = new Map<MapMember | undefined, number>(members.map((member, at) => [member, at]));
  const failed = shards.map((shard) => shard.failed ?? 0);
  const least = Math.min(...shards.flatMap(({ token }) => token || []));
  const before = least > MOST_SHORT && least <= epoch ? least - 1 : 0;
  return JSON.stringify({
    epoch,
    ...(frozen && { frozen }),
    count: shards.length,
    members: members.map(({ id, version, address }) => [id, version, ...(address ? [address] : [])]),
    owner: shards.map(({ owner }) => index.get(owner) ?? -1),
    before: before || undefined,
    token: shards.map(({ token }) => token && token - before),
    next: shortest(
      shards.map(({ next }) => (next && index.get(next)) ?? -1),
      -1,
    ),
    ...(failed.some((count) => count > 0) && { failed: shortest(failed, 0) }),
    ...(limits?.size && {
      limit: Object.fromEntries([...limits].map(([of, most]) => [index.get(of), most])),
    }),
  });
}

/** What differs from `usual`, by index; the whole list where that is shorter. */
function shortest(list: readonly number[], usual: number) {
  const unusual = [...list.entries()].filter(([, value]) => value !== usual);
  return unusual.length > list.length / 3 ? list : Object.fromEntries(unusual);
}

/** @throws {LeaseUnreadableError} when the object is no map, or contradicts itself */
export function decodeMap(body: string): ShardMap {
  return readAs(SHARDS_KEY, () => decoded(body));
}

function decoded(body: string): ShardMap {
  const fields = parseObject(body);
  const epoch = readInteger(fields, 'epoch', 1);
  const count = readInteger(fields, 'count', 1, MAX_SHARDS);
  const members = Object.values(readList(fields, 'members')).map(readMember);
  if (new Set(members.map(({ id, version }) => `${id}/${version}`)).size < members.length)
    unusable('members');
  const frozen = fields.frozen === true;
  if (frozen && members.length > 0) unusable('frozen');
  const [owners, tokens] = [readList(fields, 'owner', count), readList(fields, 'token', count)];
  const nexts = readSome(fields, 'next', count);
  const failed = readSome(fields, 'failed', count);
  const limit = readSome(fields, 'limit', members.length);
  const memberOf = (list: Fields, shard: number) =>
    members[readInteger(list, String(shard), -1, members.length - 1)];
  const before = fields.before === undefined ? 0 : readInteger(fields, 'before', 0, epoch);
  const shards = Array.from({ length: count }, (_, shard) => {
    const owner = memberOf(owners, shard);
    const token = readInteger(tokens, String(shard), 0, epoch - before);
    const next = shard in nexts ? memberOf(nexts, shard) : undefined;
    return {
      owner,
      token: token && before + token,
      // The owner itself is no move.
      next: next === owner ? undefined : next,
      ...(shard in failed && { failed: readInteger(failed, String(shard), 0, MAX_FAILED) || undefined }),
    };
  });
  const limits = new Map(
    members.flatMap((member, at) =>
      at in limit ? [[member, readInteger(limit, String(at), 0, count)]] : [],
    ),
  );
  return { epoch, ...(frozen && { frozen }), members, shards, ...(limits.size > 0 && { limits }) };
}

/**
 * The map, or why it cannot be followed: it has an epoch from this one on, and that many shards (T2).
 */
export function usableMap(
  object: StoredObject | undefined,
  from: number,
  count: number,
): ShardMap | { readonly problem: string } {
  if (object === undefined) return { problem: 'is gone' };
  try {
    const map = decodeMap(object.body);
    if (map.epoch >= from && map.shards.length === count) return map;
    return { problem: `has epoch ${map.epoch} after ${from}, and ${map.shards.length} shards` };
  } catch (error) {
    return { problem: error instanceof LeaseUnreadableError ? error.problem : explain(error) };
  }
}

/** The first map of a series, or one that follows it: no shard has an owner. */
export function ownerless(epoch: number, count: number, frozen = false): ShardMap {
  const shards = Array.from({ length: count }, () => ({ owner: undefined, token: 0, next: undefined }));
  return { epoch, frozen, members: [], shards };
}

type Fields = Record<string, unknown>;

function readMember(entry: unknown): MapMember {
  const { 0: id, 1: version, 2: address } = Object(entry) as Fields;
  if (address !== undefined && typeof address !== 'string') return unusable('members');
  const fields = { id, version };
  return {
    id: readInteger(fields, 'id', 0, MAX_NODE_IDS - 1),
    version: readInteger(fields, 'version', 1),
    address,
  };
}

/** An array, by index. */
function readList(fields: Fields, name: string, length?: number): Fields {
  const value = fields[name];
  if (!Array.isArray(value) || (length ?? value.length) !== value.length) return unusable(name);
  return value as unknown as Fields;
}

/** An array, or an object by index: of some of `length` things. */
function readSome(fields: Fields, name: string, length: number): Fields {
  const some = Object(fields[name]) as Fields;
  return Object.keys(some).some((index) => !(Number(index) < length)) ? unusable(name) : some;
}

function unusable(name: string): never {
  throw new LeaseUnreadableError(`has no usable "${name}"`);
}

/** The epoch that the present series is above: a map that is not is damaged, or makes no beginning. */
export function floorOf({ shards }: ClusterConfig): number {
  return shards?.floor ?? 0;
}

/**
 * Makes the map of a cluster that has none yet (T10). A task first draws a series of epochs in the settings,
 * and only that task writes the first map of the series, once. So no map that arrives late begins again with
 * tokens that were given. The settings then say that there is a map, and from then on an absent one is damage.
 *
 * @param attempt counts from 1: another task that has drawn gets time for its map, with 0 always
 * @throws {ConfigError} when the cluster has another number of shards
 * @throws {Overtaken} when another task is at it
 * @throws {StoreUnusableError}, {StoreError}
 */
export async function ensureMap(
  session: StoreSession,
  random: RandomSource,
  count: number,
  call: SessionCall,
  attempt: number,
): Promise<ClusterConfig> {
  const again = () => ensureMap(session, random, count, call, attempt);
  const cluster = await readExistingCluster(session, call);
  const { shards, epoch } = cluster.config;
  if (shards !== undefined && shards.count !== count) {
    const reason = 'keys belong to shards by that number, so it never changes';
    throw new ConfigError('count', count, `${shards.count}, the cluster's number of shards (${reason})`);
  }
  const store = await session.epoch(call);
  if (store !== epoch?.store) {
    await recordEpoch(session, cluster, { store, random }, call);
    return again();
  }
  if (shards?.created) return cluster.config;
  const change = async (to: NonNullable<ClusterConfig['shards']>) => {
    const changed = await changeCluster(session, cluster, { shards: to }, call);
    if (changed === undefined) throw new Overtaken('another task has changed cluster.json');
    return changed.config;
  };
  // T11: a map may be lost by which tasks run shards. A repair waits for them, and makes the next one.
  if (epoch?.mark !== undefined)
    return change({ count, floor: nextFloor(cluster.config, session), created: true });
  const object = shards && (await session.read(SHARDS_KEY, call));
  const isMade = !('problem' in usableMap(object, floorOf(cluster.config) + 1, count));
  if (shards !== undefined && !isMade && attempt < WAITING_ATTEMPTS)
    throw new Overtaken('another task makes the map');
  // Tokens are small until a map may have been lost.
  const drawn = { count, ...(shards && { floor: nextFloor(cluster.config, session) }), created: false };
  const config = await change(isMade && shards ? { ...shards, created: true } : drawn);
  if (!isMade) {
    const body = encodeMap(ownerless(floorOf(config) + 1, count));
    const { status } = await session.write(SHARDS_KEY, { body, metadata: {} }, object?.etag, call);
    if (status === 'conflict') throw new Overtaken('another task makes the map');
  }
  return again();
}
