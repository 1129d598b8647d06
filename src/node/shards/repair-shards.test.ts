import { describe, expect, it } from 'vitest';
import {
  type ShardFault,
  type ShardFleetOptions,
  type ShardTask,
  shardFleet,
} from '../../../test/support/shard-fleet.js';
import { inVirtualTime, seededRandom } from '../../../test/support/virtual-clock.js';
import { decodeCluster, encodeCluster } from '../../core/lease/model/cluster-config.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { repairShards } from './repair-shards.js';
import { decodeMap, encodeMap, ownerless, SHARDS_KEY } from './shard-map.js';

const cutOff = (task: ShardTask) => {
  task.network.fault = () => new Promise(() => undefined);
};

/** A fleet whose shards all run, and an operator. */
async function scene(tasks: number, options: Partial<ShardFleetOptions> = {}, stopMs = 200) {
  const fleet = shardFleet({ count: 4, ...options });
  for (let at = 0; at < tasks; at += 1) await fleet.task({ stopMs });
  await fleet.clock.advance(40_000);
  const { clock, bucket } = fleet;
  const waits: (readonly number[])[] = [];
  const repair = (intercept?: MemoryIntercept) =>
    repairShards({
      session: new StoreSession(
        new MemoryLeaseStore({ clock, ...(intercept && { intercept }) }, bucket),
        clock,
        1_000,
      ),
      clock,
      random: seededRandom(7),
      onWait: (ids) => waits.push(ids),
    });
  /** Puts other content in the place of the map. */
  const damage = (body?: string) => {
    bucket.remove(SHARDS_KEY);
    if (body !== undefined) bucket.create(SHARDS_KEY, body, {});
  };
  const object = (key: string) => bucket.read(key)?.body ?? '';
  const shown = (task: ShardTask): number => JSON.parse(object(`${task.lease.id}.json`)).shards?.epoch;
  const floor = () => decodeCluster(object('cluster.json')).shards?.floor ?? 0;
  return { ...fleet, fleet, waits, repair, damage, shown, floor, object };
}

describe('the repair of a map of shards (T10)', () => {
  it('is not due while the map is sound, and changes nothing then', async () => {
    const { repair, object } = await scene(2);
    const before = [object(SHARDS_KEY), object('cluster.json')];
    expect(await repair()).toBeUndefined();
    expect([object(SHARDS_KEY), object('cluster.json')]).toEqual(before);
  });

  it.each<[string, string, (body: string) => string | undefined]>([
    ['is gone', 'is gone', () => undefined],
    ['is garbage', 'is not JSON', () => '{"epoch":'],
    [
      'is lower than an epoch that a lease shows',
      'after',
      (body) => {
        const { epoch, ...map } = decodeMap(body);
        const shards = map.shards.map((shard) => ({ ...shard, token: 1 }));
        return encodeMap({ ...map, shards, epoch: epoch - 1 });
      },
    ],
    ['is frozen', 'is frozen', () => encodeMap(ownerless(99, 4, true))],
  ])(
    'mends a map that %s: all shards stop, and run again with greater tokens',
    async (_, problem, damaged) => {
      const { repair, damage, object, clock, fleet, violations, floor } = await scene(2);
      damage(damaged(object(SHARDS_KEY)));
      const done = await inVirtualTime(clock, repair());
      expect(done).toMatchObject({ problem: expect.stringContaining(problem), epoch: floor() + 2 });
      expect(floor()).toBeGreaterThan(2 ** 20);
      await fleet.untilAllRun();
      expect(fleet.counts()).toEqual([2, 2]);
      const newest = fleet.runs.slice(-4).map(({ token }) => token);
      expect(Math.min(...newest)).toBeGreaterThan(floor() + 2);
      expect(violations).toEqual([]);
    },
  );

  it('stops no shard before it is called, and starts none before every one has stopped', async () => {
    const { repair, damage, clock, fleet, runs, waits, tasks, shown, floor } = await scene(1, {}, 20_000);
    damage();
    await clock.advance(30_000);
    expect(fleet.counts()).toEqual([4]);
    const begun = clock.monotonic();
    const repairing = repair();
    await clock.advance(15_000);
    // The work has to end at once, and has not: no lease shows the frozen epoch.
    expect(runs.every(({ signal }) => signal.aborted)).toBe(true);
    expect(fleet.map()).toMatchObject({ epoch: floor() + 1, frozen: true });
    expect(tasks.map(shown)).not.toContain(floor() + 1);
    expect(waits).toHaveLength(1);
    await inVirtualTime(clock, repairing);
    expect(clock.monotonic() - begun).toBeGreaterThan(20_000);
    expect(clock.monotonic() - begun).toBeLessThan(20_000 + 5_000 + 5_000 + 1_000);
    await fleet.untilAllRun();
    expect(runs.slice(4).every(({ from }) => from > begun + 20_000)).toBe(true);
  });

  it('waits for a node that has crashed until its lease is over, and names it', async () => {
    const { repair, damage, clock, fleet, waits, tasks, violations } = await scene(2);
    const [first] = tasks as [ShardTask, ShardTask];
    damage();
    cutOff(first);
    const begun = clock.monotonic();
    await inVirtualTime(clock, repair());
    expect(waits.at(-1)).toEqual([first.lease.id]);
    expect(clock.monotonic() - begun).toBeGreaterThan(11_000);
    await fleet.untilAllRun();
    expect(fleet.counts()).toEqual([0, 4]);
    expect(violations).toEqual([]);
  });

  it('waits for a node that hangs and is still renewed until `release --force` has taken its lease, and that is over', async () => {
    const { repair, damage, clock, fleet, waits, tasks, session } = await scene(1, {}, 10 ** 9);
    const [first] = tasks as [ShardTask];
    damage();
    const repairing = repair();
    await clock.advance(120_000);
    expect(waits).toEqual([[first.lease.id]]);
    await evictHolder(session(), first.lease.id);
    const evictedAt = clock.monotonic();
    await inVirtualTime(clock, repairing);
    expect(clock.monotonic() - evictedAt).toBeGreaterThan(16_000);
    expect(clock.monotonic() - evictedAt).toBeLessThan(20_000);
    expect(fleet.map().frozen).toBeUndefined();
  });

  it('does not wait for nodes that take no part, that have left, or that were never held', async () => {
    const { repair, damage, clock, fleet, waits, tasks, plainTask } = await scene(2);
    const [first, second] = tasks as [ShardTask, ShardTask];
    await plainTask();
    await inVirtualTime(clock, first.lease.release());
    damage();
    await inVirtualTime(clock, repair());
    expect(waits.flat()).toEqual([second.lease.id]);
    await fleet.untilAllRun();
  });

  it('waits for a lease that was emptied by force, until its holder cannot trust it any more', async () => {
    const { repair, damage, clock, bucket, waits, tasks, runs } = await scene(1);
    const [first] = tasks as [ShardTask];
    cutOff(first);
    const key = `${first.lease.id}.json`;
    bucket.replace(key, '', {}, bucket.read(key)?.etag ?? '');
    damage();
    const begun = clock.monotonic();
    await inVirtualTime(clock, repair());
    expect(waits).toEqual([[first.lease.id]]);
    expect(clock.monotonic() - begun).toBeGreaterThan(16_000);
    expect(Math.max(...runs.slice(0, 4).map(({ to }) => to))).toBeLessThan(clock.monotonic());
  });

  it.each([
    ['damaged', 'damaged'],
    ['absent', undefined],
  ])('waits for a lease object that is %s until that is repaired', async (_, body) => {
    const { repair, damage, clock, bucket, waits } = await scene(1);
    bucket.remove('5.json');
    if (body !== undefined) bucket.create('5.json', body, {});
    damage();
    const repairing = repair();
    await clock.advance(120_000);
    expect(waits.at(-1)).toEqual([5]);
    bucket.remove('5.json');
    bucket.create('5.json', '', {});
    expect(await inVirtualTime(clock, repairing)).toBeDefined();
  });

  it('does not wait for a lease object that is absent before the bootstrap is complete', async () => {
    const { repair, damage, clock, bucket, waits, object } = await scene(1);
    const settings = { ...decodeCluster(object('cluster.json')), bootstrapped: false };
    bucket.replace('cluster.json', encodeCluster(settings), {}, bucket.read('cluster.json')?.etag ?? '');
    bucket.remove('5.json');
    damage();
    await inVirtualTime(clock, repair());
    expect(waits.flat()).not.toContain(5);
  });

  it('waits for a task that leaves while its work still ends', async () => {
    const { repair, damage, clock, waits, tasks, violations } = await scene(1, {}, 30_000);
    const [first] = tasks as [ShardTask];
    const left = first.shards[Symbol.asyncDispose]();
    await clock.advance(10_000);
    damage();
    const begun = clock.monotonic();
    const repairing = repair();
    await inVirtualTime(clock, Promise.all([repairing, left]));
    expect(waits).toEqual([[first.lease.id]]);
    expect(clock.monotonic() - begun).toBeGreaterThan(20_000 - 1_000);
    expect(violations).toEqual([]);
  });

  it.each(['not applied', 'applied'])(
    'opens the map, and says so, although the reply to that is lost after a long wait, and the write was %s',
    async (how) => {
      const { repair, damage, clock, fleet, tasks, violations } = await scene(2);
      damage();
      cutOff(tasks[0] as ShardTask);
      let isLost = false;
      const intercept: MemoryIntercept = async (call, apply) => {
        const opens = call.operation === 'replace' && call.key === SHARDS_KEY && !decodeMap(call.body).frozen;
        if (!opens || isLost) return apply();
        isLost = true;
        if (how === 'applied') apply();
        throw new StoreError('lost', { fault: 'unavailable', outcome: 'unknown' });
      };
      expect(await inVirtualTime(clock, repair(intercept))).toMatchObject({ problem: 'is gone' });
      expect(isLost).toBe(true);
      await fleet.untilAllRun();
      expect(violations).toEqual([]);
    },
  );

  it('draws its own series where it finds a frozen map, and the repair that it overtakes ends and says so', async () => {
    const { repair, damage, clock, fleet, tasks, floor, violations } = await scene(2);
    cutOff(tasks[0] as ShardTask);
    damage();
    const first = expect(repair()).rejects.toThrow('another repair has replaced shards.json');
    await clock.advance(500);
    expect(fleet.map()).toMatchObject({ epoch: floor() + 1, frozen: true });
    const second = repair();
    await clock.advance(2_000);
    await first;
    const before = floor();
    expect(await inVirtualTime(clock, second)).toMatchObject({ epoch: floor() + 2 });
    expect(floor()).toBe(before);
    await fleet.untilAllRun();
    expect(violations).toEqual([]);
  });

  it('ends where another map has replaced its map before it opens that', async () => {
    const { repair, damage, clock, tasks } = await scene(1);
    cutOff(tasks[0] as ShardTask);
    damage();
    const repairing = expect(repair()).rejects.toThrow('another repair has replaced shards.json');
    await clock.advance(2_000);
    damage();
    await clock.advance(5_000);
    await repairing;
  });

  it.each(['first map', 'opened map'])('goes on after a lost reply to the write of its %s', async (which) => {
    const { repair, damage, clock, fleet, floor, violations } = await scene(1);
    damage();
    let writes = 0;
    const lossy: MemoryIntercept = async (call, apply) => {
      const reply = apply();
      if ('key' in call && call.key === SHARDS_KEY && /create|replace/.test(call.operation)) {
        writes += 1;
        if (writes === (which === 'first map' ? 1 : 2))
          throw new StoreError('lost', { fault: 'unreachable', outcome: 'unknown' });
      }
      return reply;
    };
    const done = await inVirtualTime(clock, repair(lossy));
    expect(done?.epoch).toEqual(floor() + 2);
    await fleet.untilAllRun();
    expect(violations).toEqual([]);
  });
});

describe('a task that takes part (T10, 5)', () => {
  const isMark: ShardFault = async (call) => {
    if (call.operation === 'replace' && call.body.includes('"shards"') && call.key !== SHARDS_KEY)
      await new Promise(() => undefined);
  };

  it('writes its mark into its lease before it reads the map, and waits for the reply', async () => {
    const { clock, bucket, object, task, tasks } = await scene(1);
    const asked: string[] = [];
    const fault: ShardFault = (call, apply) => {
      if ('key' in call) asked.push(call.key);
      return isMark(call, apply);
    };
    const owning = expect(task({ fault })).rejects.toThrow('is lost');
    // Its lease, and the mark that gets no reply.
    await clock.advance(9_000);
    expect(asked.filter((key) => /^\d/.test(key)).length).toBeGreaterThan(1);
    expect(asked).not.toContain(SHARDS_KEY);
    expect(tasks).toHaveLength(1);
    expect(bucket.read(SHARDS_KEY)).toBeDefined();
    expect(object('cluster.json')).toContain('"created":true');
    await clock.advance(10_000);
    await owning;
  });

  it('reads cluster.json again after the reply, and then the map', async () => {
    const { task, clock } = await scene(1);
    const { calls } = await task();
    await clock.advance(5_000);
    const mark = calls.findIndex((call) => 'body' in call && call.body.includes('"shards":{"epoch":0}'));
    const reads = calls.slice(mark).flatMap((call) => (call.operation === 'read' ? [call.key] : []));
    const map = reads.indexOf(SHARDS_KEY);
    expect(reads.slice(0, map)).toContain('cluster.json');
    expect(calls.slice(0, mark).flatMap((call) => ('key' in call ? [call.key] : []))).not.toContain(
      SHARDS_KEY,
    );
  });

  it('shows that within a second, not only at its next renewal', async () => {
    const { task, clock, shown } = await scene(1);
    const begun = clock.monotonic();
    const joiner = await task();
    expect(clock.monotonic() - begun).toBeLessThan(2_000);
    expect(shown(joiner)).toBe(0);
  });

  it('takes its mark back where it cannot take part after all', async () => {
    const { task, clock, fleet, bucket } = await scene(1);
    let isMarked = false;
    const fault: ShardFault = (call) => {
      if ('body' in call && call.body.includes('"shards":{"epoch":0}')) isMarked = true;
      if (isMarked && call.operation === 'read' && call.key === 'cluster.json')
        throw new StoreError('403', { fault: 'denied', outcome: 'not-applied' });
    };
    await expect(task({ fault })).rejects.toThrow('403');
    await clock.advance(10_000);
    const marked = bucket
      .list()
      .objects.filter(({ key }) => bucket.read(key)?.body.includes('"shards":{"epoch"'));
    expect(marked).toHaveLength(1);
    expect(fleet.counts()).toEqual([4]);
  });
});
