import { expect, it } from 'vitest';
import { shardFleet } from '../../../../test/support/shard-fleet.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { shardRouter } from '../../../node/shards/shard-router.js';
import { newInstance } from '../instance/new-instance.js';
import { fixedInstances } from '../service-cache.js';
import { ServiceProvider } from '../service-provider.js';
import { noInstance, ownerOf, pickTarget } from './instance-target.js';

it("sends a key's requests to the node that owns its shard, to the next owner after a refresh, and to no other instance", async () => {
  const fleet = shardFleet({ count: 4 });
  const { clock, bucket } = fleet;
  const first = await fleet.task();
  await fleet.untilAllRun();
  const random = seededRandom(1);
  const instances = ['task-2', 'task-1', 'task-0'].map((address) =>
    newInstance({ name: 'orders', address, port: 80 }, { clock, random }),
  );
  const provider = new ServiceProvider({ source: fixedInstances('orders', instances), clock, random });
  const store = new MemoryLeaseStore({ clock }, bucket);
  await using router = await shardRouter({ store, clock, random, refreshMs: 600_000 });
  const picker = ownerOf(provider, router, 3n);
  const origin = () => pickTarget(picker, new Set())?.target.origin;
  expect(origin()).toBe('http://task-0:80');

  await fleet.task();
  await inVirtualTime(clock, (async () => first.shards[Symbol.asyncDispose]())());
  await clock.advance(20_000);
  expect(origin()).toBe('http://task-0:80');
  await router.refresh();
  expect(origin()).toBe('http://task-1:80');
  const owner = picker.pick();
  expect(pickTarget(picker, new Set(owner && [owner]))).toBeUndefined();
  expect(noInstance(picker, new Set()).message).toBe('no instance of orders can be picked');
});

it.each([
  ['fd00::7', '[fd00::7]:8080'],
  ['fd00::8', 'fd00::8:8080'],
  ['Task-7', 'Task-7:8080'],
])('knows the owner at the address %s, and no instance where the owner has none', (address, given) => {
  const clock = new VirtualClock();
  const random = seededRandom(1);
  const instance = newInstance({ name: 'orders', address, port: 8080 }, { clock, random });
  const instances = [{ ...instance, address: undefined, uriSpec: undefined }, instance];
  const provider = new ServiceProvider({ source: fixedInstances('orders', instances), clock, random });
  expect(ownerOf(provider, { nodeFor: () => ({ address: given }) }, 1n).pick()).toBe(instance);
  expect(ownerOf(provider, { nodeFor: () => ({ address: undefined }) }, 1n).pick()).toBeUndefined();
});
