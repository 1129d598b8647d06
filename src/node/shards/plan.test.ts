import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { plan } from './plan.js';
import { encodeMap, type MapMember, type Shard, type ShardMap } from './shard-map.js';

const member = (id: number, version = 1): MapMember => ({ id, version });
const members = (count: number) => Array.from({ length: count }, (_, id) => member(id));
const empty = (count: number): ShardMap => ({
  epoch: 1,
  members: [],
  shards: Array.from({ length: count }, () => ({ owner: undefined, token: 0, next: undefined })),
});
const planned = (...args: Parameters<typeof plan>) => {
  const next = plan(...args);
  if (next === undefined) throw new Error('nothing changes');
  return next;
};
/** How many shards each member has, or is to get. */
const loads = ({ members: all, shards }: ShardMap) =>
  all.map((one) => shards.filter(({ owner, next }) => (next ?? owner) === one).length);
const spread = (map: ShardMap) => Math.max(...loads(map)) - Math.min(...loads(map));
/** The map after every owner has handed on what is to move. */
const moved = (map: ShardMap): ShardMap => {
  const given = new Set(map.shards.flatMap(({ next }, at) => (next ? [at] : [])));
  return given.size === 0 ? map : planned(map, { members: map.members, given });
};

describe('the plan', () => {
  it('gives all shards of a new map to the members at once, with the epoch of the write as their token', () => {
    const map = planned(empty(10), { members: members(3) });
    expect(loads(map)).toEqual([4, 3, 3]);
    expect(map.epoch).toBe(2);
    expect(map.shards.every(({ token, next }) => token === 2 && next === undefined)).toBe(true);
  });

  it('changes nothing where nothing is to do', () => {
    const map = planned(empty(10), { members: members(3) });
    expect(plan(map, { members: map.members, settled: true })).toBeUndefined();
    expect(plan(empty(10), { members: [] })).toBeUndefined();
  });

  it('asks for ⌊P / (n + 1)⌋ shards for a new member, once the map has settled, and takes none away', () => {
    const map = planned(empty(64), { members: members(4) });
    const joined = planned(map, { members: [...map.members, member(9)] });
    expect(joined.shards.every(({ owner, next }) => owner !== undefined && next === undefined)).toBe(true);
    const wished = planned(joined, { members: joined.members, settled: true });
    expect(wished.shards.map(({ owner, token }) => ({ owner, token }))).toEqual(
      joined.shards.map(({ owner, token }) => ({ owner, token })),
    );
    expect(wished.shards.filter(({ next }) => next !== undefined)).toHaveLength(12);
    expect(loads(wished)).toEqual([13, 13, 13, 13, 12]);
  });

  it('gives the shards of a tenure that is over to the next tenure of its node id, with new tokens', () => {
    const map = planned(empty(12), { members: members(3) });
    const again = planned(map, { members: [...map.members.slice(1), member(0, 2)] });
    for (const [at, { owner, token }] of again.shards.entries()) {
      const before = map.shards[at];
      if (before?.owner?.id !== 0) expect({ owner, token }).toEqual({ owner: before?.owner, token: 2 });
      else expect({ owner, token }).toEqual({ owner: member(0, 2), token: 3 });
    }
  });

  it('moves what a leaver hands on, to `next` where that is a member, and leaves it what it still runs', () => {
    const map = planned(empty(6), { members: members(3) });
    const [a, b, c] = map.members as [MapMember, MapMember, MapMember];
    const wish = {
      ...map,
      shards: map.shards.map((shard, at) => (at === 0 ? { ...shard, next: c } : shard)),
    };
    const mine = map.shards.flatMap(({ owner }, at) => (owner === a ? [at] : []));
    const half = planned(wish, { members: map.members, given: new Set([mine[0] as number]), leaver: a });
    expect(half.shards[0]).toEqual({ owner: c, token: 3, next: undefined });
    expect(half.shards[mine[1] as number]).toEqual(map.shards[mine[1] as number]);
    const rest = planned(half, { members: [b, c], given: new Set([mine[1] as number]) });
    expect(loads(rest)).toEqual([3, 3]);
  });

  it('leaves a shard without an owner where no member is left, and its `next` only to members', () => {
    const map = planned(empty(4), { members: members(2) });
    const wished = planned(
      { ...map, members: [...map.members, member(9)] },
      { members: [...map.members, member(9)], settled: true },
    );
    const without = planned(wished, { members: map.members });
    expect(without.shards.every(({ next }) => next === undefined)).toBe(true);
    const none = planned(map, { members: [] });
    expect(none.shards.every(({ owner, token }) => owner === undefined && token === 3)).toBe(true);
  });

  it('turns a move round that is no longer wanted', () => {
    const map = planned(empty(4), { members: members(1) });
    const two = planned(map, { members: [...map.members, member(7)], settled: true });
    const wished = two.shards.filter(({ next }) => next !== undefined);
    expect(wished).toHaveLength(2);
    const three = planned(two, { members: [...two.members, member(8)], settled: true });
    expect(loads(three)).toEqual([2, 1, 1]);
    expect(three.shards.filter(({ next }) => next?.id === 7)).toHaveLength(1);
  });

  it('differs by at most one between members and moves the fewest shards, in 10,000 random memberships', () => {
    const random = seededRandom(35);
    const below = (limit: number) => Math.floor(random.next() * limit);
    let map = empty(64);
    let version = 1;
    for (let step = 0; step < 10_000; step += 1) {
      if (step % 100 === 0) map = empty(1 + below(97));
      const stay = map.members.filter(() => random.next() < 0.8);
      version += 1;
      const come = Array.from({ length: below(4) }, (_, at) => member(below(30), version * 4 + at));
      const all = [...stay, ...come];
      const change = plan(map, { members: all }) ?? map;
      const again = plan(map, { members: all }) ?? map;
      const isSame = encodeMap(again) === encodeMap(change);
      // Only what had no owner, or one that is gone, has changed hands.
      const isLeft = change.shards.every((shard, at) => {
        const before = map.shards[at];
        if (before?.owner && stay.includes(before.owner)) return shard.owner === before.owner;
        return all.length === 0 || shard.token === change.epoch;
      });
      expect({ step, isSame, isLeft }).toEqual({ step, isSame: true, isLeft: true });
      if (all.length > 0) {
        const balanced = plan(change, { members: all, settled: true }) ?? change;
        expect(spread(balanced)).toBeLessThanOrEqual(1);
        const larger = change.shards.length % all.length;
        const floor = Math.floor(change.shards.length / all.length);
        const least = loads(change)
          .sort((a, b) => b - a)
          .reduce((sum, load, at) => sum + Math.max(0, load - floor - (at < larger ? 1 : 0)), 0);
        expect(balanced.shards.filter(({ next }) => next !== undefined)).toHaveLength(least);
        map = moved(balanced);
        expect(spread(map)).toBeLessThanOrEqual(1);
      } else map = change;
    }
  });
});

describe('the plan after failed starts (T9)', () => {
  const failing = (map: ShardMap, at: number, count = 1) => ({
    members: map.members,
    given: new Set([at]),
    failed: new Map([[at, count]]),
  });

  it('gives a shard to another member, also if its owner has the fewest, and to the owner again where it is alone', () => {
    const [a, b] = members(2) as [MapMember, MapMember];
    const alone = planned(empty(6), { members: [a] });
    const joined = planned(alone, { members: [a, b] });
    const map = { ...joined, shards: joined.shards.map((shard) => ({ ...shard, owner: b })) };
    const few = { ...map, shards: map.shards.with(0, { owner: a, token: 2, next: undefined }) };
    expect(planned(few, failing(few, 0)).shards[0]).toEqual({
      owner: b,
      token: 4,
      next: undefined,
      failed: 1,
    });
    expect(planned(alone, failing(alone, 0, 3)).shards[0]).toMatchObject({ owner: a, token: 3, failed: 3 });
  });

  it('gives nothing to a member at its limit while another one has room, and keeps a failing shard where none has', () => {
    const [a, b, c] = members(3) as [MapMember, MapMember, MapMember];
    const map = planned(empty(6), { members: [a, b, c] });
    const limits = new Map([[c, 2]]);
    const after = planned(map, { members: [a, c], limits });
    expect(loads(after)).toEqual([4, 2]);
    expect(after.limits).toEqual(limits);
    const full = { ...map, limits: new Map([a, b, c].map((one) => [one, 2])) };
    expect(planned(full, failing(full, 3)).shards[3]).toMatchObject({
      owner: map.shards[3]?.owner,
      token: 3,
    });
    // A shard that works is not left without an owner.
    expect(loads(planned(full, { members: [a, b] }))).toEqual([3, 3]);
  });

  it('moves no shard to a member at its limit, what does not start there away from it, and the rest in fair shares', () => {
    const [a, b, c] = members(3) as [MapMember, MapMember, MapMember];
    const limits = new Map([[a, 1]]);
    const map = planned(empty(12), { members: [a] });
    const shards = map.shards.map((shard, at) => (at === 7 ? shard : { ...shard, failed: 1 }));
    const change = { members: [a, b, c], limits, settled: true };
    expect(loads(planned({ ...map, shards }, change))).toEqual([1, 6, 5]);
    expect(planned({ ...map, shards }, change).shards[7]?.next).toBeUndefined();
    // A wish from before the limit is dropped.
    const wish = {
      ...map,
      members: [a, b],
      shards: map.shards.map((shard) => ({ ...shard, owner: b, next: a })),
    };
    expect(loads(planned(wish, { members: [a, b], limits }))).toEqual([1, 11]);
    expect(plan({ ...map, limits }, { members: [a], limits })).toBeUndefined();
    expect(planned({ ...map, limits }, { members: [a], limits: new Map() }).limits).toBeUndefined();
  });
});

describe('the plan, shard by shard', () => {
  const [a, b, c] = [member(0), member(1), member(2)];
  /** A map of these owners, with what else it says of some shards. */
  const mapOf = (owners: readonly MapMember[], over: Record<number, Partial<Shard>> = {}): ShardMap => ({
    ...{ epoch: 2, members: [...new Set(owners)] },
    shards: owners.map((owner, at) => ({ owner, token: 2, next: undefined, ...over[at] })),
  });
  const owners = ({ shards }: ShardMap) => shards.map(({ owner }) => owner?.id);
  const nexts = ({ shards }: ShardMap) => shards.map(({ next }) => next?.id);

  it.each<[string, Map<MapMember, number> | undefined, number[]]>([
    ['up to its share', undefined, [0, 0, 0, 5]],
    ['up to its limit', new Map([[member(0, 2), 1]]), [0, 5, 5, 5]],
  ])('gives the next tenure of a node id its former shards before any other, %s', (_, limits, expected) => {
    const again = [...(limits?.keys() ?? [member(0, 2)])];
    const map = mapOf([a, a, a, a, b, b, b, b, c, c, c, c]);
    const next = planned(map, { members: [b, c, member(5), ...again], ...(limits && { limits }) });
    expect(owners(next).slice(0, 4)).toEqual(expected);
  });

  it('gives nothing to a member that leaves, although it has the fewest', () => {
    const map = mapOf([a, b, b, c]);
    expect(owners(planned(map, { members: [a, b], leaver: a }))).toEqual([0, 1, 1, 1]);
  });

  it('gives what its owner has stopped to the member with the fewest, which may be the owner', () => {
    expect(owners(planned(mapOf([a, b, b, b]), { members: [a, b], given: new Set([0]) }))).toEqual([
      0, 1, 1, 1,
    ]);
  });

  it('leaves what does not start to its owner rather than to one at its limit', () => {
    const map = mapOf([a, a], { 0: { failed: 1 } });
    const next = planned(map, { members: [a, b], given: new Set([0]), limits: new Map([[b, 0]]) });
    expect(owners(next)).toEqual([0, 0]);
  });

  it('drops the move of a shard to its owner, and the limits of those that are no members', () => {
    const next = planned(mapOf([a, b], { 0: { next: a } }), { members: [a, b], limits: new Map([[c, 1]]) });
    expect([nexts(next), next.limits]).toEqual([[undefined, undefined], undefined]);
  });

  it.each<[string, Partial<Parameters<typeof plan>[1]>, (number | undefined)[]]>([
    ['the first ones of a member with too many', {}, [1, 1, undefined, undefined]],
    [
      'first what does not start on a member at its limit',
      { limits: new Map([[a, 3]]) },
      [1, undefined, undefined, 1],
    ],
  ])('moves %s', (_, change, expected) => {
    const map = mapOf([a, a, a, a], { 3: { failed: 1 } });
    expect(nexts(planned(map, { members: [a, b], settled: true, ...change }))).toEqual(expected);
  });

  it('moves nothing of a member that leaves, and nothing beyond the limits', () => {
    const leaves = mapOf([a, a, a, a, b], { 3: { failed: 1 } });
    expect(plan(leaves, { members: [a, b], settled: true, leaver: a })).toBeUndefined();
    const limits = new Map([
      [a, 2],
      [b, 1],
    ]);
    expect(nexts(planned(leaves, { members: [a, b], settled: true, limits }))).toEqual(
      Array(5).fill(undefined),
    );
  });
});
