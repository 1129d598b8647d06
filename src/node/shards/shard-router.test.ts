import { expect, it } from 'vitest';
import { shardFleet } from '../../../test/support/shard-fleet.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { encodeMap } from './shard-map.js';
import { shardRouter } from './shard-router.js';

it('finds the owner of a key with its token and address, without a lease, and follows it', async () => {
  const fleet = shardFleet({ count: 8 });
  const { clock } = fleet;
  const first = await fleet.task();
  await fleet.untilAllRun();
  let isAway = false;
  const store = new MemoryLeaseStore(
    {
      clock,
      intercept: async (_, apply) => {
        if (isAway) throw new StoreError('away', { fault: 'unreachable', outcome: 'not-applied' });
        return apply();
      },
    },
    fleet.bucket,
  );
  await using router = await shardRouter({ store, clock, random: seededRandom(9) });
  const { id: nodeId, version } = first.lease;
  const route = { token: 2, nodeId, version, address: 'task-0:80' };
  expect([router.count, router.nodeFor(3n)]).toEqual([8, { ...route, shard: 3 }]);
  expect(router.nodeFor('customer-17')).toMatchObject(route);
  const second = await fleet.task();
  await clock.advance(60_000);
  const owners = Array.from({ length: 8 }, (_, shard) => router.nodeFor(BigInt(shard))?.nodeId);
  expect(owners.filter((id) => id === second.lease.id)).toHaveLength(4);

  // The owners that are known stay while the store is away.
  isAway = true;
  await inVirtualTime(clock, (async () => first.shards[Symbol.asyncDispose]())());
  await clock.advance(20_000);
  expect(Array.from({ length: 8 }, (_, shard) => router.nodeFor(BigInt(shard))?.nodeId)).toEqual(owners);
  await expect(router.refresh()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
  isAway = false;
  await router.refresh();
  expect(Array.from({ length: 8 }, (_, shard) => router.nodeFor(BigInt(shard))?.nodeId)).toEqual(
    Array(8).fill(second.lease.id),
  );
});

it.each<[string, object]>([
  ['store', {}],
  ['options', { store: 'memory:', refresh: 5 }],
])('names the option that is wrong: %s in %j', async (setting, options) => {
  await expect(shardRouter(options as never)).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting });
});

it('is refused where a store has no shards yet', async () => {
  const { clock, bucket } = shardFleet({ count: 8 });
  const store = new MemoryLeaseStore({ clock }, bucket);
  await expect(shardRouter({ store, clock, random: seededRandom(1) })).rejects.toMatchObject({
    code: 'CLUSTER_MISSING',
    message: 'memory:: there is no shards.json',
  });
});

it.each([
  ['not json', 'shards.json is not JSON: "not json"'],
  ['[]', 'shards.json is not a JSON object'],
  ['{"epoch":1}', 'shards.json has no usable "count"'],
  ['{"epoch":1,"count":1,"members":7}', 'shards.json has no usable "members"'],
])('names the map where it cannot be read, and no lease: %j', async (body, message) => {
  const { clock, bucket } = shardFleet({ count: 8 });
  const store = new MemoryLeaseStore({ clock }, bucket);
  await store.create('shards.json', body, {});
  await expect(shardRouter({ store, clock, random: seededRandom(1) })).rejects.toMatchObject({
    code: 'LEASE_UNREADABLE',
    message: expect.stringContaining(message),
  });
});

/** A router of one shard, on a store whose map a test writes. */
async function routed(refreshMs?: number) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const reads: number[] = [];
  let closed = 0;
  const intercept: MemoryIntercept = async (_, apply) => {
    reads.push(clock.monotonic());
    return apply();
  };
  const close = async () => {
    closed += 1;
  };
  const store = Object.assign(new MemoryLeaseStore({ clock, intercept }, bucket), { close });
  const members = [0, 1].map((id) => ({ id, version: 1 }));
  const write = (epoch: number, owner: number) => {
    bucket.remove('shards.json');
    const shard = { owner: members[owner], token: 1, next: undefined };
    bucket.create('shards.json', encodeMap({ epoch, members, shards: [shard] }), {});
  };
  write(5, 0);
  const router = await shardRouter({ store, clock, random: seededRandom(1), refreshMs });
  return { clock, reads, router, write, closed: () => closed };
}

it('follows no map but a later one, and finds no node for a shard without an owner', async () => {
  const { router, write } = await routed();
  const found: unknown[] = [router.nodeFor('key')?.nodeId];
  for (const [epoch, owner] of [
    [4, 1],
    [5, 1],
    [6, 1],
    [7, 2],
  ] as const) {
    write(epoch, owner);
    await router.refresh();
    found.push(router.nodeFor('key')?.nodeId);
  }
  expect(found).toEqual([0, 0, 0, 1, undefined]);
  await router[Symbol.asyncDispose]();
});

it.each([
  [undefined, 5_000],
  [2_000, 2_000],
])('reads the map as often as it says, until its end: %s → %i ms', async (refreshMs, everyMs) => {
  const { clock, reads, router, closed } = await routed(refreshMs);
  await clock.advance(3 * everyMs);
  expect(reads).toEqual([0, everyMs, 2 * everyMs, 3 * everyMs]);
  await router[Symbol.asyncDispose]();
  await clock.advance(3 * everyMs);
  expect([reads.length, clock.sleepers, closed()]).toEqual([4, 0, 0]);
  await expect(router.refresh()).rejects.toThrow('not begun');
});
