import { expect, it } from 'vitest';
import { shardFleet } from '../../../test/support/shard-fleet.js';
import { inVirtualTime } from '../../../test/support/virtual-clock.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import {
  type MemoryCall,
  type MemoryIntercept,
  MemoryLeaseStore,
} from '../../core/store/memory/memory-lease-store.js';
import { storeView } from './store-view.js';
import type { Facts } from './zone.js';

/** A view of a fleet with shards, and how many requests it has sent. */
function viewOf(fleet: ReturnType<typeof shardFleet>, maxStaleMs = 60_000) {
  const { clock, bucket } = fleet;
  const calls: MemoryCall[] = [];
  const network = { isAway: false, replyMs: 20 };
  const intercept: MemoryIntercept = async (call, apply) => {
    calls.push(call);
    await clock.sleep(network.replyMs);
    if (network.isAway)
      throw new StoreError('the store is away', { fault: 'unreachable', outcome: 'unknown' });
    return apply();
  };
  const store = new MemoryLeaseStore({ clock, intercept }, bucket);
  const view = storeView({ session: new StoreSession(store, clock, 5_000), clock, maxStaleMs });
  /** As a question that waits for what is being read. */
  const known = async <T>(ask: () => Facts<T>) => {
    let facts = ask();
    while (facts.kind === 'pending') {
      await inVirtualTime(clock, facts.again);
      facts = ask();
    }
    return facts.kind === 'known' ? facts.value : facts.kind;
  };
  return { view, calls, network, known };
}

it('has the holders of node ids and the owners of shards, with their addresses, until they are gone', async () => {
  const fleet = shardFleet({ count: 4, nodes: 3 });
  await fleet.task({ address: '10.0.0.1:8080' });
  await fleet.task({ address: '[2001:db8::1]:8080' });
  await fleet.untilAllRun();
  // A lease says the address from its next renewal on.
  await fleet.clock.advance(15_000);
  const { view, known } = viewOf(fleet);
  const holders = await Promise.all([0, 1, 2].map((id) => known(() => view.node(id))));
  expect(holders.filter((each) => each !== 'absent')).toEqual(
    expect.arrayContaining([
      { version: 1, taskId: 'task-0', host: '10.0.0.1', port: 8_080 },
      { version: 1, taskId: 'task-1', host: '2001:db8::1', port: 8_080 },
    ]),
  );
  const owner = await known(() => view.shard(2));
  const { shards, members } = fleet.map();
  expect(owner).toMatchObject({ token: shards[2]?.token, nodeId: shards[2]?.owner?.id, port: 8_080 });
  expect(members).toHaveLength(2);
  expect(await known(() => view.shard(4))).toBe('absent');

  const [gone] = fleet.tasks;
  if (gone) gone.network.fault = () => new Promise(() => {});
  await fleet.clock.advance(60_000);
  expect(await known(() => view.node(gone?.lease.id ?? -1))).toBe('absent');
  for (const shard of [0, 1, 2, 3])
    expect(await known(() => view.shard(shard))).toMatchObject({ host: '2001:db8::1' });
  view.close();
});

it('reads at most once in 5 seconds, and nothing while there are no questions', async () => {
  const fleet = shardFleet({ count: 4, nodes: 3 });
  await fleet.task();
  await fleet.untilAllRun();
  const { view, known, calls } = viewOf(fleet);
  for (let second = 0; second < 20; second += 1) {
    for (let question = 0; question < 100; question += 1) await known(() => view.shard(question % 4));
    await fleet.clock.advance(1_000);
  }
  expect(calls.length).toBeGreaterThan(2);
  expect(calls.length).toBeLessThanOrEqual(5);
  const before = calls.length;
  await fleet.clock.advance(600_000);
  expect(calls.length).toBe(before);
  view.close();
});

it('answers from the last read while the store is away, and says for how long, until that is too old', async () => {
  const fleet = shardFleet({ count: 4, nodes: 3 });
  await fleet.task({ address: '10.0.0.1:8080' });
  await fleet.untilAllRun();
  const { view, known, network } = viewOf(fleet);
  expect(await known(() => view.shard(1))).toMatchObject({ host: '10.0.0.1' });
  expect(view.staleMs()).toBe(0);
  network.isAway = true;
  await fleet.clock.advance(30_000);
  expect(await known(() => view.shard(1))).toMatchObject({ host: '10.0.0.1' });
  expect(view.staleMs()).toBeGreaterThan(30_000);
  await fleet.clock.advance(30_000);
  expect(await known(() => view.shard(1))).toBe('unknown');
  network.isAway = false;
  await fleet.clock.advance(6_000);
  expect(await known(() => view.shard(1))).toMatchObject({ host: '10.0.0.1' });
  expect(view.staleMs()).toBe(0);
  view.close();
});

it('answers from the last read while the store answers, however short the time for old data is', async () => {
  const fleet = shardFleet({ count: 4, nodes: 3 });
  await fleet.task({ address: '10.0.0.1:8080' });
  await fleet.untilAllRun();
  const { view, known, network } = viewOf(fleet, 0);
  for (let second = 0; second < 12; second += 1) {
    expect(await known(() => view.shard(1))).toMatchObject({ host: '10.0.0.1' });
    await fleet.clock.advance(1_000);
  }
  network.isAway = true;
  await fleet.clock.advance(5_000);
  expect(await known(() => view.shard(1))).toBe('unknown');
  view.close();
});

it('answers from the last read while the store is slow', async () => {
  const fleet = shardFleet({ count: 4, nodes: 3 });
  await fleet.task();
  await fleet.untilAllRun();
  const { view, network } = viewOf(fleet, 3_000);
  network.replyMs = 2_000;
  view.shard(1);
  for (let second = 0; second < 20; second += 1) {
    await fleet.clock.advance(second === 0 ? 2_000 : 500);
    expect(view.shard(1).kind).not.toBe('unknown');
  }
  view.close();
});
