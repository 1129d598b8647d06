import { describe, expect, it } from 'vitest';
import { type ShardTask, shardFleet } from '../../../test/support/shard-fleet.js';
import { inVirtualTime } from '../../../test/support/virtual-clock.js';
import type { StartShard } from './holding.js';
import { SHARDS_KEY } from './shard-map.js';

const RENEW_MS = 5_000;
const isMapWrite = (call: ShardTask['calls'][number]) =>
  call.operation === 'replace' && call.key === SHARDS_KEY;

/** A fleet whose starts fail where `fails` says so. */
function failingFleet(count: number, fails: (task: number, shard: number) => boolean, watches = false) {
  const fleet = shardFleet({ count, watches });
  const { clock } = fleet;
  const running = new Map<number, { task: number; token: number }>();
  /** By task: the failed starts, and when they were. */
  const failures: { task: number; shard: number; at: number }[] = [];
  const startOf =
    (task: number): StartShard =>
    async (shard, { token }) => {
      await clock.sleep(20);
      if (fails(task, shard)) {
        failures.push({ task, shard, at: clock.monotonic() });
        throw new Error('no such partition');
      }
      expect(running.get(shard), `shard ${shard} runs`).toBeUndefined();
      running.set(shard, { task, token });
      return () => void running.delete(shard);
    };
  const join = () => fleet.task({ start: startOf(fleet.tasks.length) });
  /** The share of the shards' time in which they do not run. */
  const idle = async (ms: number) => {
    let sum = 0;
    for (let at = 0; at < ms; at += 100) {
      await clock.advance(100);
      sum += count - running.size;
    }
    return sum / count / (ms / 100);
  };
  const runningOn = (task: number) => [...running.values()].filter((one) => one.task === task).length;
  const mapWrites = () => fleet.tasks.flatMap(({ calls }) => calls).filter(isMapWrite).length;
  return { ...fleet, running, failures, join, idle, runningOn, mapWrites };
}

describe('shards whose start fails', () => {
  it.each([false, true])(
    'on one node only, which came first, run on the others, and that node is asked again ever less often; watches: %s',
    async (watches) => {
      const fleet = failingFleet(12, (task) => task === 0, watches);
      await fleet.join();
      await fleet.clock.advance(20_000);
      await fleet.join();
      await fleet.join();
      await fleet.clock.advance(90_000);
      const before = [fleet.mapWrites(), fleet.failures.length] as const;
      expect(await fleet.idle(240_000)).toBeLessThan(0.01);
      expect(Math.abs(fleet.runningOn(1) - fleet.runningOn(2))).toBeLessThanOrEqual(1);
      // One shard on trial, after pauses of up to five minutes.
      expect(fleet.failures.length - before[1]).toBeLessThan(7);
      expect(fleet.mapWrites() - before[0]).toBeLessThan(40);
    },
  );

  it('on a node that joins do not stay there, and come back to it in fair shares once it has recovered', async () => {
    let isSick = true;
    const fleet = failingFleet(12, (task) => isSick && task === 2);
    for (let task = 0; task < 3; task += 1) await fleet.join();
    await fleet.clock.advance(30_000);
    expect(await fleet.idle(120_000)).toBeLessThan(0.03);
    expect(fleet.runningOn(2)).toBe(0);
    isSick = false;
    await fleet.clock.advance(240_000);
    expect([0, 1, 2].map(fleet.runningOn)).toEqual([4, 4, 4]);
    expect(fleet.map().limits).toBeUndefined();
    expect(fleet.map().shards.some(({ failed }) => failed)).toBe(false);
  });

  it('everywhere, one of them: the others run in fair shares, and it is tried on every node, ever less often', async () => {
    const fleet = failingFleet(8, (_, shard) => shard === 3);
    for (let task = 0; task < 3; task += 1) await fleet.join();
    await fleet.clock.advance(120_000);
    expect(new Set(fleet.failures.map(({ task }) => task)).size).toBeGreaterThan(2);
    const before = [fleet.mapWrites(), fleet.failures.length] as const;
    expect(await fleet.idle(240_000)).toBeCloseTo(1 / 8, 2);
    expect(fleet.map().shards[3]?.failed).toBe(9);
    // A pause is half a minute to a minute.
    expect(fleet.failures.length - before[1]).toBeLessThanOrEqual(10);
    expect(fleet.mapWrites() - before[0]).toBeLessThan(30);
    const counts = [0, 1, 2].map(fleet.runningOn);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });

  it.each([1, 4])(
    'everywhere, all of them, on %i nodes: few writes, and all run once they can',
    async (nodes) => {
      let isDown = true;
      const fleet = failingFleet(32, () => isDown);
      for (let task = 0; task < nodes; task += 1) await fleet.join();
      await fleet.clock.advance(120_000);
      expect(fleet.mapWrites()).toBeLessThan(30 + 12 * nodes);
      const before = fleet.mapWrites();
      await fleet.clock.advance(240_000);
      // Each node starts all of its shards again in one write, for each pause of half a minute to a minute.
      expect((fleet.mapWrites() - before) / nodes / 4).toBeLessThan(3);
      isDown = false;
      await fleet.clock.advance(70_000);
      expect(fleet.running.size).toBe(32);
      await fleet.clock.advance(330_000);
      expect(fleet.map().limits).toBeUndefined();
      const counts = Array.from({ length: nodes }, (_, task) => fleet.runningOn(task));
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    },
  );

  it('cost few writes of the map while the starts of the others end one by one', async () => {
    const fleet = shardFleet({ count: 300 });
    const { clock } = fleet;
    let begun = 0;
    await fleet.task({
      start: async () => {
        begun += 1;
        if (begun === 1) throw new Error('no such partition');
        await clock.sleep(begun * 100);
        return () => undefined;
      },
    });
    await clock.advance(45_000);
    // One for each start without the pause.
    const writes = fleet.tasks.flatMap(({ calls }) => calls).filter(isMapWrite).length;
    expect([begun > 300, writes < 30]).toEqual([true, true]);
  });

  it('get a new token for each start', async () => {
    const tokens: number[] = [];
    const fleet = shardFleet({ count: 1 });
    await fleet.task({
      start: (_shard, { token }) => {
        tokens.push(token);
        throw new Error('not yet');
      },
    });
    await fleet.clock.advance(120_000);
    expect(tokens.length).toBeGreaterThan(4);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });
});

describe('a start that hangs', () => {
  const hanging = (settles: boolean): StartShard => {
    return (_, { signal }) =>
      new Promise((_resolve, reject) => {
        if (settles) signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
  };

  it('is reported, and its signal aborts, after startTimeoutMs; the shard runs elsewhere once it has settled', async () => {
    const fleet = shardFleet({ count: 4 });
    const first = await fleet.task({ start: hanging(true), startTimeoutMs: 10_000 });
    await fleet.clock.advance(8_000);
    const second = await fleet.task();
    expect(first.events.filter(({ type }) => type === 'failed')).toEqual([]);
    await fleet.clock.advance(40_000);
    expect(first.events.find(({ type }) => type === 'failed')).toMatchObject({
      step: 'start',
      error: expect.objectContaining({ message: 'shard 0 has not started within 10000 ms' }),
    });
    expect(second.shards.owned).toHaveLength(4);
  });

  it('for ever keeps its shard, since its work may yet begin, and gets no other one', async () => {
    const fleet = shardFleet({ count: 4 });
    const first = await fleet.task({ start: hanging(false), startTimeoutMs: 10_000 });
    await fleet.clock.advance(8_000);
    const second = await fleet.task({ stopMs: 0 });
    await fleet.clock.advance(120_000);
    expect(second.shards.owned).toEqual([]);
    expect(first.shards.stopping).toHaveLength(4);
    expect(fleet.map().shards.map(({ failed }) => failed)).toEqual([1, 1, 1, 1]);
    // Until its lease is over.
    first.network.fault = () => new Promise(() => undefined);
    await fleet.clock.advance(60_000);
    expect(second.shards.owned).toHaveLength(4);
    expect(fleet.violations).toEqual([]);
  });

  it('and begins its work late is stopped then, before the shard moves', async () => {
    const fleet = shardFleet({ count: 1 });
    const acts: string[] = [];
    await fleet.task({
      startTimeoutMs: 15_000,
      start: async () => {
        await fleet.clock.sleep(20_000);
        acts.push('begun');
        return () => void acts.push('stopped');
      },
    });
    await fleet.clock.advance(4_000);
    await fleet.task({ start: () => void acts.push('moved') });
    await fleet.clock.advance(14_000);
    expect(acts).toEqual([]);
    await fleet.clock.advance(20_000);
    expect(acts).toEqual(['begun', 'stopped', 'moved']);
  });
});

describe('work that fails by itself', () => {
  it('is stopped, moves at once to another node, and waits longer each time where it fails again', async () => {
    const fleet = shardFleet({ count: 1 });
    const fails: (() => void)[] = [];
    const stopped: number[] = [];
    const join = (task: number) =>
      fleet.task({
        start: (_, { fail }) => {
          fails.push(() => fail(new Error('the connection is gone')));
          return () => void stopped.push(task);
        },
      });
    const first = await join(0);
    const second = await join(1);
    await fleet.clock.advance(30_000);
    const run = fails.length;
    fails.at(-1)?.();
    await fleet.clock.advance(RENEW_MS * 1.2);
    expect(fails).toHaveLength(run + 1);
    expect(stopped).toHaveLength(1);
    expect(first.shards.owned.length + second.shards.owned.length).toBe(1);
    expect(fleet.map().shards[0]?.failed).toBe(1);
    fails.at(-1)?.();
    await fleet.clock.advance(RENEW_MS / 2 - 1);
    expect(fails).toHaveLength(run + 1);
    await fleet.clock.advance(RENEW_MS * 3);
    expect(fails).toHaveLength(run + 2);
    await fleet.clock.advance(60_000);
    expect(fleet.map().shards[0]?.failed).toBeUndefined();
  });

  it('may say so before its start has ended', async () => {
    const fleet = shardFleet({ count: 1 });
    const task = await fleet.task({
      start: (_, { fail }) => {
        fail(new Error('no'));
        return undefined;
      },
    });
    await fleet.clock.advance(5_000);
    expect(task.events.map(({ type }) => type)).toContain('failed');
    await inVirtualTime(fleet.clock, task.lease.release());
    expect(fleet.map().members).toEqual([]);
  });
});
