import { describe, expect, it } from 'vitest';
import { shardFleet } from '../../../test/support/shard-fleet.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { initializeCluster } from '../../core/lease/operate/initialize.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { ClusterFollower } from '../monitor/cluster-follower.js';
import { shardsReport } from './read-shards.js';
import { SHARDS_KEY } from './shard-map.js';

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
