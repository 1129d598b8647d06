import { describe, expect, it } from 'vitest';
import { type ShardFault, type ShardTask, shardFleet } from '../../../test/support/shard-fleet.js';
import { inVirtualTime, seededRandom, type VirtualClock } from '../../../test/support/virtual-clock.js';
import { StoreError } from '../../core/store/lease-store.js';
import { SHARDS_KEY } from './shard-map.js';

const isOfMap = (call: Parameters<ShardFault>[0], operation: string) =>
  call.operation === operation && 'key' in call && call.key === SHARDS_KEY;

describe('a task that takes part', () => {
  const leave = async ({ clock }: { clock: VirtualClock }, { shards }: ShardTask) => {
    const begun = clock.monotonic();
    await inVirtualTime(clock, (async () => shards[Symbol.asyncDispose]())());
    return clock.monotonic() - begun;
  };

  it('reads the map once a renewal period while the store fails', async () => {
    const error = new StoreError('no', { fault: 'unavailable', outcome: 'not-applied' });
    const fleet = shardFleet({ count: 4 });
    const { events, network } = await fleet.task();
    await fleet.clock.advance(30_000);
    const times: number[] = [];
    network.fault = (call) => {
      if (!isOfMap(call, 'read') || times.length === 4) return;
      times.push(fleet.clock.monotonic());
      throw error;
    };
    await fleet.clock.advance(25_000);
    expect(times.slice(1).map((at, index) => at - (times[index] ?? 0))).toEqual([5_020, 5_020, 5_020]);
    const failed = { type: 'store-failed', error, sleepMs: 5_000 };
    expect(events.filter(({ type }) => type === 'store-failed')).toEqual([failed, failed, failed, failed]);
  });

  it('leaves at once where it has not joined yet, and reports no failure', async () => {
    const fleet = shardFleet({ count: 4 });
    const task = await fleet.task();
    expect(await leave(fleet, task)).toBeLessThan(1_000);
    await inVirtualTime(fleet.clock, task.lease.release());
    await fleet.clock.advance(10_000);
    expect([task.events, fleet.map().members]).toEqual([[{ type: 'epoch', epoch: 1 }], []]);
  });

  it.each([
    ['with shards', 0],
    ['without shards', 1],
  ])('leaves %s at once, and tries again with growing pauses', async (_, which) => {
    const fleet = shardFleet({ count: 4 });
    const tasks = [await fleet.task({ stopMs: 0 })];
    await fleet.untilAllRun();
    tasks.push(await fleet.task());
    await fleet.clock.advance(8_000);
    expect(fleet.map().members).toHaveLength(2);
    const leaver = tasks[which] as ShardTask;
    const times: number[] = [];
    const begun = fleet.clock.monotonic();
    leaver.network.fault = (call) => {
      if (!isOfMap(call, 'replace')) return;
      times.push(fleet.clock.monotonic() - begun);
      if (times.length < 6) throw new StoreError('away', { fault: 'unavailable', outcome: 'not-applied' });
    };
    expect(await leave(fleet, leaver)).toBeLessThan(1_800);
    expect(times[0]).toBeLessThan(150);
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect((gaps[4] ?? 0) - (gaps[0] ?? 0)).toBeGreaterThan(200);
    expect(fleet.map().members).toHaveLength(1);
  });

  it('looks for members where it is no member yet, and as a member where it is drawn', async () => {
    const fleet = shardFleet({ count: 4 });
    for (const [seed, next] of [0.1, 0.9, 0.9, 0.9].entries())
      await fleet.task({ random: { ...seededRandom(seed), next: () => next } });
    await fleet.clock.advance(60_000);
    expect(fleet.map().members).toHaveLength(4);
    for (const { calls } of fleet.tasks) calls.length = 0;
    await fleet.clock.advance(60_000);
    const looks = fleet.tasks.map(
      ({ calls }) => calls.filter(({ operation }) => operation === 'list').length,
    );
    expect(looks).toEqual([12, 0, 0, 0]);
  });

  it('begins more than 256 shards in rounds without pauses', async () => {
    const fleet = shardFleet({ count: 600 });
    await fleet.task();
    expect(await fleet.untilAllRun()).toBeLessThan(4_000);
  });

  it('is woken by changes of the map only', async () => {
    const fleet = shardFleet({ count: 4, watches: true });
    const { calls } = await fleet.task();
    await fleet.clock.advance(20_000);
    calls.length = 0;
    await fleet.clock.advance(60_000);
    expect(calls.filter((call) => isOfMap(call, 'read')).length).toBeLessThanOrEqual(12);
  });

  it('hands on what has stopped, and is given nothing back, while the rest stops', async () => {
    const fleet = shardFleet({ count: 6 });
    const { clock } = fleet;
    const first = await fleet.task({ start: (shard) => () => clock.sleep(shard === 0 ? 8_000 : 0) });
    await clock.advance(10_000);
    const second = await fleet.task();
    await clock.advance(10_000);
    const owners = () => fleet.map().shards.map(({ owner }) => owner?.id);
    const { id } = first.lease;
    expect(owners()).toEqual([id, id, id, id, id, id]);
    const leaving = leave(fleet, first);
    await clock.advance(1_000);
    const other = second.lease.id;
    expect(owners()).toEqual([id, other, other, other, other, other]);
    await leaving;
    expect(owners()).toEqual([other, other, other, other, other, other]);
    expect(fleet.map().members).toHaveLength(1);
  });

  it('keeps the mark of a lease under which work may still run (T10, 7)', async () => {
    const fleet = shardFleet({ count: 2 });
    const task = await fleet.task({ start: () => () => Promise.reject(new Error('cannot close')) });
    await fleet.clock.advance(10_000);
    await leave(fleet, task);
    await fleet.clock.advance(6_000);
    const body = fleet.bucket.read(`${task.lease.id}.json`)?.body ?? '';
    expect(JSON.parse(body)).toMatchObject({ shards: { epoch: 2 } });
  });

  it('has gauges of its own shards', async () => {
    const fleet = shardFleet({ count: 4 });
    const { clock } = fleet;
    const first = await fleet.task({
      start: (shard) => {
        if (shard === 3) throw new Error('cannot start');
        return () => clock.sleep(2_000);
      },
    });
    const gauges = (task = first) => {
      const found = task.lease.home?.work?.gauges?.() as unknown as Record<string, number>;
      return Object.fromEntries(Object.entries(found).map(([name, value]) => [name.slice(17), value]));
    };
    await clock.advance(12_000);
    expect(gauges()).toMatchObject({ owned: 3, moving: 0, orphaned: 0, failing: 1 });
    expect(gauges().failed_starts).toBeGreaterThan(1);
    const second = await fleet.task();
    const isMoving = () => fleet.map().shards.some(({ next }) => next !== undefined);
    for (let step = 0; step < 600 && !isMoving(); step += 1) await clock.advance(100);
    await clock.advance(100);
    const moving = fleet.map().shards.filter(({ next }) => next !== undefined).length;
    expect(moving).toBeGreaterThan(0);
    expect(moving).toBeLessThan(4);
    expect(gauges()).toMatchObject({ moving, failing: 0 });
    expect(gauges(second)).toMatchObject({ moving: 0, failing: 1, failed_starts: 0 });
    await clock.advance(60_000);
    const { epoch } = second.shards;
    const ageMs = () => (gauges(second).epoch_age_seconds ?? Number.NaN) * 1_000;
    const since = clock.monotonic() - ageMs();
    await clock.advance(1_000);
    expect(second.shards.epoch).toBe(epoch);
    expect(since).toBeGreaterThan(12_000);
    expect(clock.monotonic() - ageMs()).toBeCloseTo(since);
  });

  it('reports each epoch that it follows once, and owns the keys of the shards that it runs', async () => {
    const fleet = shardFleet({ count: 4 });
    const tasks = [await fleet.task(), await fleet.task()];
    await fleet.clock.advance(60_000);
    for (const { events, shards } of tasks) {
      const epochs = events.flatMap((event) => (event.type === 'epoch' ? [event.epoch] : []));
      expect(epochs.at(-1)).toBe(fleet.map().epoch);
      expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
      const owned = [0n, 1n, 2n, 3n].filter((key) => shards.owns(key)).map(Number);
      expect(owned).toEqual(shards.owned.map(({ shard }) => shard));
      expect(owned).toHaveLength(2);
    }
  });

  it('goes on after a failure of the store, which it reports', async () => {
    const error = new StoreError('no', { fault: 'denied', outcome: 'not-applied' });
    let failures = 0;
    const fleet = shardFleet({ count: 4 });
    const { events, network } = await fleet.task();
    network.fault = (call) => {
      if (!isOfMap(call, 'read') || failures === 2) return;
      failures += 1;
      throw error;
    };
    await fleet.clock.advance(20_000);
    await fleet.untilAllRun();
    const reports = events.filter(({ type }) => type === 'store-failed');
    expect(reports.length).toBeGreaterThan(0);
    expect(reports[0]).toEqual({ type: 'store-failed', error, sleepMs: expect.any(Number) });
  });

  it('tries again in silence where another task has written the map first', async () => {
    let losses = 0;
    const fleet = shardFleet({ count: 4 });
    const { events, calls } = await fleet.task({
      fault: (call) => {
        if (!isOfMap(call, 'replace') || losses === 1) return;
        losses += 1;
        const { body = '', etag = '' } = fleet.bucket.read(SHARDS_KEY) ?? {};
        fleet.bucket.replace(SHARDS_KEY, `${body} `, {}, etag);
      },
    });
    expect(await fleet.untilAllRun()).toBeLessThan(30_000);
    expect([losses, calls.filter((call) => isOfMap(call, 'replace')).length]).toEqual([1, 2]);
    expect(events.filter(({ type }) => type === 'store-failed')).toEqual([]);
  });

  it.each(['away', 'taken'])('makes the map again where its first write is lost: %s', async (how) => {
    let losses = 0;
    const fleet = shardFleet({ count: 4 });
    await fleet.task({
      fault: (call) => {
        if (!isOfMap(call, 'create') || losses === 1) return;
        losses += 1;
        if (how === 'away') throw new StoreError('away', { fault: 'unavailable', outcome: 'not-applied' });
        fleet.bucket.create(SHARDS_KEY, 'body' in call ? call.body : '', {});
      },
    });
    await fleet.untilAllRun();
    expect([losses, fleet.running()]).toEqual([1, 4]);
  });
});
