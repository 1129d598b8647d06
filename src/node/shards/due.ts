import type { Holdings } from './holdings.js';
import type { MapMember, ShardMap } from './shard-map.js';

/** What a tenure has to write in the map: what it hands on, and of failed starts (T5, T9). */
export function dueChanges(
  map: ShardMap,
  me: MapMember | undefined,
  holdings: Pick<Holdings, 'given' | 'failed' | 'limit'>,
) {
  const given = holdings.given(map, me);
  const failed = holdings.failed(map, me);
  const limits = new Map(map.limits);
  const before = me && limits.get(me);
  const limit = me && holdings.limit(map);
  if (me && limit !== undefined) limits.set(me, limit);
  else if (me) limits.delete(me);
  const isNews = [...failed].some(([shard, count]) => count === 0 || !map.shards[shard]?.failed);
  const isUrgent = given.size > 0 || isNews || limit !== before;
  // What gets better has time until the next round: starts that end one by one are no storm of writes.
  const takesFewer = (limit ?? Number.POSITIVE_INFINITY) < (before ?? Number.POSITIVE_INFINITY);
  const isWorse = takesFewer || [...failed.values()].some((count) => count > 0);
  return { given, failed, limits, isUrgent, isNow: given.size > 0 || (isUrgent && isWorse) };
}
