import { describe, expect, it } from 'vitest';
import { shardFleet } from '../../../test/support/shard-fleet.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { type ClusterConfig, newCluster } from '../../core/lease/model/cluster-config.js';
import { initializeCluster } from '../../core/lease/operate/initialize.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { ClusterFollower } from '../monitor/cluster-follower.js';
import { readShards, shardsReport, shardsText } from './read-shards.js';
import { encodeMap, type MapMember, ownerless, SHARDS_KEY, type ShardMap } from './shard-map.js';

/** A console that looks at this bucket, and its requests for the map. */
function consoleOf(clock: VirtualClock, bucket: MemoryBucket) {
  const calls: MemoryCall[] = [];
  const store = new MemoryLeaseStore({ clock }, bucket).connect(async (call, apply) => {
    calls.push(call);
    return apply();
  });
  const follower = new ClusterFollower({
    ...{ clock, random: seededRandom(1), session: new StoreSession(store, clock, 1_000) },
    shards: shardsReport,
  });
  const count = (fits: (call: MemoryCall) => boolean) => calls.filter(fits).length;
  return {
    shards: () => follower.current().shards,
    follow: () => follower.follow(() => undefined),
    lists: () => count(({ operation }) => operation === 'list'),
    reads: () => count((call) => call.operation === 'read' && call.key === SHARDS_KEY),
  };
}

describe('a console of a cluster with shards', () => {
  it('has each owner, token and move, for one GET with each listing, and another object only for another map', async () => {
    const fleet = shardFleet({ count: 4 });
    const { lease } = await fleet.task();
    await fleet.untilAllRun();
    const { shards, follow, lists, reads } = consoleOf(fleet.clock, fleet.bucket);
    const end = follow();
    await fleet.clock.advance(5_000);
    const before = shards();
    const { id, version } = lease;
    expect(before).toEqual({
      epoch: 2,
      problem: null,
      members: [{ id, version, address: 'task-0:80' }],
      shards: Array(4).fill([0, 2, -1]),
      failed: [],
      limits: [],
    });
    await fleet.clock.advance(5_000);
    expect(shards()).toBe(before);
    expect(reads()).toBe(lists());
    const second = await fleet.task();
    const moves: unknown[] = [];
    for (let step = 0; step < 300 && second.shards.owned.length < 2; step += 1) {
      await fleet.clock.advance(100);
      const moving = shards()?.shards.filter(([, , next]) => next >= 0) ?? [];
      if (moving.length > 0) moves.push(moving);
    }
    expect(moves).toContainEqual([
      [0, 2, 1],
      [0, 2, 1],
    ]);
    await fleet.clock.advance(2_000);
    expect(shards()?.shards.filter(([owner]) => owner === 1)).toHaveLength(2);
    fleet.bucket.remove(SHARDS_KEY);
    await fleet.clock.advance(2_000);
    expect(shards()).toMatchObject({ epoch: 0, problem: 'is gone', shards: Array(4).fill([-1, 0, -1]) });
    end();
  });

  it('asks for none where the cluster has none', async () => {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1);
    const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 2 } });
    const { shards, follow, lists, reads } = consoleOf(clock, bucket);
    const end = follow();
    await clock.advance(5_000);
    expect([shards(), reads()]).toEqual([undefined, 0]);
    expect(lists()).toBeGreaterThan(3);
    end();
  });
});

describe('the map as its operators see it', () => {
  const [a, b] = [0, 1].map((id) => ({ id, version: 1, address: undefined }));
  const found: ShardMap = {
    ...{ epoch: 7, members: [a, b] as MapMember[], limits: new Map([[b as MapMember, 2]]) },
    shards: [
      { owner: a, token: 3, next: b, failed: 2 },
      { owner: b, token: 4, next: undefined },
      { owner: undefined, token: 0, next: undefined },
    ],
  };

  async function scene(shards: ClusterConfig['shards'], map?: ShardMap) {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1);
    if (map !== undefined) bucket.create(SHARDS_KEY, encodeMap(map), {});
    const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
    const config = { ...newCluster({ nodes: 2 }), ...(shards && { shards }) };
    const read = (shown?: number) => readShards(session, config, {}, shown);
    const report = (signal = new AbortController().signal) => shardsReport(session, config, signal);
    return { read, report };
  }

  const created = { count: 3, created: true };
  it.each<[string, ClusterConfig['shards'], ShardMap | undefined, number, string | undefined, number]>([
    ['sound', created, found, 7, undefined, 7],
    ['below the epoch that a lease shows', created, found, 8, 'has epoch 7 after 8, and 3 shards', 0],
    ['the first one of its series', { ...created, floor: 6 }, found, 0, undefined, 7],
    ['of an earlier series', { ...created, floor: 7 }, found, 0, 'has epoch 7 after 8, and 3 shards', 0],
    [
      'of another number of shards',
      { count: 4, created: true },
      found,
      0,
      'has epoch 7 after 1, and 3 shards',
      0,
    ],
    ['frozen', created, ownerless(7, 3, true), 0, 'is frozen by a repair', 7],
    ['gone', created, undefined, 0, 'is gone', 0],
    ['not made yet', { count: 3, created: false }, undefined, 0, undefined, 0],
  ])('is known to be %s', async (_, shards, map, shown, problem, epoch) => {
    const reading = await (await scene(shards, map)).read(shown);
    expect([reading?.problem, reading?.map.epoch, reading?.map.shards.length]).toEqual([
      problem,
      epoch,
      shards?.count,
    ]);
  });

  it('is told in one line', () => {
    const text = (map: ShardMap, problem?: string) => shardsText({ map, object: undefined, problem });
    expect(text(found)).toBe('shards: owned 2, moving 1, orphaned 1, failing 1');
    expect(text(ownerless(1, 3), 'is gone')).toBe(
      'shards: owned 0, moving 0, orphaned 3; shards.json is gone: nodelease init --repair mends it',
    );
  });

  it('is reported by the places of its members', async () => {
    const { report } = await scene(created, found);
    expect(await report()).toEqual({
      ...{ epoch: 7, problem: null, members: [a, b] },
      shards: [
        [0, 3, 1],
        [1, 4, -1],
        [-1, 0, -1],
      ],
      failed: [[0, 2]],
      limits: [[1, 2]],
    });
    await expect(report(AbortSignal.abort(new Error('left')))).rejects.toThrow();
  });
});
