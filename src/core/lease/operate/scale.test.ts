import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  DURATION,
  died,
  endingAt,
  GRACE,
  keyOf,
  NARROW,
  scaleScene as scene,
  WIDE,
  writes,
} from '../../../../test/support/scale-scene.js';
import { seededRandom, settled } from '../../../../test/support/virtual-clock.js';
import { ConfigError, StoreUnusableError } from '../../base/errors.js';
import { type Listing, StoreError } from '../../store/lease-store.js';
import type { MemoryIntercept } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import { decodeCluster } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { StoreSession } from '../session/store-session.js';
import { evictHolder } from './evict.js';
import { scaleCluster } from './scale.js';
import type { ScaleOutcome } from './scaling.js';

/** The fields of an outcome that are empty after a growth. */
const untouched = { reopened: 0, retired: 0, forced: [], damaged: [] };

describe('a cluster that grows within the width that it has', () => {
  it('never gets settings that no task can read, where a number in them is at its limit', async () => {
    const { scale, bucket } = await scene();
    const { body, etag } = bucket.read('cluster.json') ?? { body: '', etag: '' };
    const generation = 2 ** 52;
    bucket.replace('cluster.json', JSON.stringify({ ...JSON.parse(body), generation }), {}, etag);
    await expect(scale(5).end()).rejects.toThrow(
      `cluster.json has no usable "generation": expected a whole number from 0 to ${generation}, got ${generation + 1}`,
    );
    expect(JSON.parse(bucket.read('cluster.json')?.body ?? '')).toMatchObject({ size: 4, generation });
  });

  it('gets the new objects, and then the size, without any wait', async () => {
    const { scale, hold, bucket, cluster, read } = await scene();
    hold(0);
    const before = bucket.read('0.json')?.etag;
    const growth = scale(100);
    expect(await growth.end()).toEqual({
      kind: 'scaled',
      from: 4,
      to: 100,
      idWidth: 8,
      widened: false,
      created: 96,
      ...untouched,
    });
    expect(growth.events).toEqual([]);
    expect(cluster()).toMatchObject({ size: 100, idWidth: 8, idFloor: 0, bootstrapped: true });
    expect(Array.from({ length: 101 }, (_, id) => read(id)?.kind ?? 'absent')).toEqual([
      'held',
      ...Array(99).fill('vacant'),
      'absent',
    ]);
    expect(bucket.read('0.json')?.etag).toBe(before);
  });

  it('never has a size with an object missing below it', async () => {
    const { scale, bucket, cluster } = await scene();
    const missing: number[] = [];
    const growth = scale(40, {
      intercept: async (call, apply) => {
        const reply = apply();
        const { size } = cluster();
        missing.push(
          Array.from({ length: size }, (_, id) => bucket.read(`${id}.json`)).filter(
            (object) => object === undefined,
          ).length,
        );
        expect(writes(call) && keyOf(call) === 'cluster.json' ? size : 40).toBe(40);
        return reply;
      },
    });
    await growth.end();
    expect(new Set(missing)).toEqual(new Set([0]));
  });

  it('does nothing when it has the size', async () => {
    const { scale, bucket } = await scene();
    const before = bucket.list().objects.map(({ key, etag }) => [key, etag]);
    expect(await scale(NARROW).end()).toMatchObject({ from: 4, to: 4, widened: false, created: 0 });
    expect(bucket.list().objects.map(({ key, etag }) => [key, etag])).toEqual(before);
  });

  it('is not given a size that no cluster can have, and nothing is written', async () => {
    const { scale, bucket } = await scene({ nodes: 10 });
    const before = bucket.list().objects.map(({ key, etag }) => [key, etag]);
    for (const size of [0, -1, 1.5, 65_529, Number.NaN])
      await expect(scale(size).end()).rejects.toBeInstanceOf(ConfigError);
    expect(bucket.list().objects.map(({ key, etag }) => [key, etag])).toEqual(before);
  });

  it('is not created if there is none', async () => {
    const { scale, bucket } = await scene({ initialize: false });
    expect(await scale(8).end()).toEqual({ kind: 'no-cluster' });
    expect(bucket.list().objects).toEqual([]);
  });

  it('leaves absent objects below its size to a repair: their versions would restart', async () => {
    const { scale, bucket, cluster } = await scene();
    bucket.remove('2.json');
    expect(await scale(6).end()).toMatchObject({ created: 2 });
    expect(bucket.read('2.json')).toBeUndefined();
    expect(cluster().size).toBe(6);
  });

  it('gets missing objects below its size, too, while bootstrap is not complete, and leaves the mark to other tasks', async () => {
    const { scale, bucket, cluster, change } = await scene();
    change({ bootstrapped: false });
    bucket.remove('2.json');
    expect(await scale(6).end()).toMatchObject({ created: 3 });
    expect(cluster()).toMatchObject({ size: 6, bootstrapped: false });
    expect(await scale(6).end()).toMatchObject({ from: 6, created: 0 });
    bucket.remove('3.json');
    expect(await scale(6).end()).toMatchObject({ from: 6, created: 1 });
  });
});

describe('a cluster that grows beyond its width', () => {
  it('publishes the width first, waits until every live holder uses it, and begins new ids after all narrow ones', async () => {
    const { scale, hold, put, clock, cluster, bucket } = await scene();
    hold(0, { timestamp: clock.now() + 40_000 });
    put(1, { kind: 'released', version: 3, timestamp: clock.now() + 70_000, durationMs: 0, stampedUntil: 5 });
    hold(2, { idWidth: 9, timestamp: clock.now() + 60_000 });
    const growth = scale(WIDE);
    await clock.advance(3_000);
    expect(cluster()).toMatchObject({ size: NARROW, idWidth: 9 });
    expect(growth.events).toEqual([
      { type: 'waiting', idWidth: 9, holders: [{ id: 0, taskId: 'task-0', idWidth: 8 }] },
    ]);
    expect(bucket.read('4.json')).toBeUndefined();
    const last = hold(0, { idWidth: 9, renewal: 1, timestamp: clock.now() + 90_000 });
    expect(await growth.end()).toEqual({
      kind: 'scaled',
      from: 4,
      to: WIDE,
      idWidth: 9,
      widened: true,
      created: 296,
      ...untouched,
    });
    expect(growth.events.at(-1)).toMatchObject({ type: 'adopted', idWidth: 9 });
    expect(cluster()).toMatchObject({ size: WIDE, idWidth: 9, idFloor: last.timestamp - 1 });
  });

  it('reads the settings once: it knows what it has written', async () => {
    const { scale, cluster } = await scene();
    let reads = 0;
    const growth = scale(WIDE, {
      intercept: async (call, apply) => {
        if (call.operation === 'read' && keyOf(call) === 'cluster.json') reads += 1;
        return apply();
      },
    });
    expect(await growth.end()).toMatchObject({ kind: 'scaled', widened: true });
    expect(cluster()).toMatchObject({ size: WIDE, idWidth: 9 });
    expect(reads).toBe(1);
  });

  it('lets new ids begin right after the last narrow ones, if their holders record those', async () => {
    const { scale, hold, put, clock, cluster } = await scene();
    const now = clock.now();
    hold(0, { timestamp: now + 40_000, narrowIdsUntil: now + 30_000 });
    put(1, { kind: 'released', version: 3, timestamp: now + 70_000, durationMs: 0, stampedUntil: now + 800 });
    hold(2, { idWidth: 9, timestamp: now + 60_000, narrowIdsUntil: now + 900 });
    const growth = scale(WIDE);
    await clock.advance(3_000);
    // Its record from the time when it was narrow does not cover its later ids.
    hold(0, { idWidth: 9, renewal: 1, timestamp: now + 90_000, narrowIdsUntil: now + 1_700 });
    await growth.end();
    expect(cluster().idFloor).toBe(now + 1_700);
  });

  it('reads only the remaining holders again, a few times in a lease', async () => {
    const { scale, hold, clock } = await scene();
    for (const id of [0, 1, 2]) hold(id, { idWidth: id === 1 ? 8 : 9 });
    const calls: string[] = [];
    const growth = scale(WIDE, {
      waitTimeoutMs: 10_000,
      intercept: async (call, apply) => {
        calls.push(`${call.operation} ${keyOf(call)}`);
        return apply();
      },
    });
    await clock.advance(1_000);
    calls.length = 0;
    await clock.advance(9_500);
    expect(growth.state.outcome).toMatchObject({ kind: 'not-adopted' });
    expect(calls).toEqual(Array(5).fill('read 1.json'));
  });

  it('does not grow where a lease records no right width: it is damaged', async () => {
    const { scale, hold, bucket, cluster } = await scene();
    hold(1);
    const { body = '', metadata = {}, etag = '' } = bucket.read('1.json') ?? {};
    bucket.replace('1.json', body.replace('"idWidth":8,', '"idWidth":0,'), metadata, etag);
    await expect(scale(WIDE).end()).rejects.toThrow(/1\.json is damaged.*"idWidth"/);
    expect(cluster()).toMatchObject({ size: NARROW, idWidth: 9, idFloor: 0 });
  });

  it('continues where it stopped waiting, with the published width', async () => {
    const { scale, hold, clock, cluster } = await scene();
    hold(1);
    expect(await scale(WIDE, { waitTimeoutMs: 0 }).end()).toMatchObject({ kind: 'not-adopted' });
    const again = scale(WIDE);
    await clock.advance(2_500);
    expect(again.events).toMatchObject([{ type: 'waiting' }]);
    expect(cluster().size).toBe(NARROW);
    hold(1, { idWidth: 9, renewal: 1 });
    expect(await again.end()).toMatchObject({ kind: 'scaled', from: 4, to: WIDE, widened: true });
  });

  it('does not wait for an evicted holder, whose ids carry times before the timestamp in the tombstone', async () => {
    const { scale, hold, store, clock, cluster } = await scene();
    const { timestamp } = hold(3);
    await evictHolder(new StoreSession(store, clock, 1_000), 3);
    const growth = scale(WIDE);
    await settled();
    expect(growth.state.outcome).toMatchObject({ kind: 'scaled' });
    expect(cluster().idFloor).toBe(timestamp - 1);
  });

  it('keeps an expired lease from being revived by a renewal that comes late', async () => {
    const { scale, hold, bucket, clock, read, cluster } = await scene();
    const held = hold(3);
    const etag = bucket.read('3.json')?.etag ?? '';
    await clock.advance(DURATION + GRACE + 10);
    expect(await scale(WIDE).end()).toMatchObject({ kind: 'scaled' });
    const late = nativeCodec.encode({ ...held, renewal: 1, timestamp: clock.now() + DURATION });
    expect(bucket.replace('3.json', late.body, late.metadata, etag).status).toBe('conflict');
    expect(read(3)).toMatchObject({ kind: 'released', version: 2, timestamp: held.timestamp, durationMs: 0 });
    expect(cluster().idFloor).toBe(held.timestamp - 1);
  });

  it('counts all ids of an expired lease as narrow, whatever it recorded when it began', async () => {
    const { scale, hold, clock, cluster } = await scene();
    const { timestamp } = hold(3, { narrowIdsUntil: clock.now() - 1 });
    await clock.advance(DURATION + GRACE + 10);
    expect(await scale(WIDE).end()).toMatchObject({ kind: 'scaled' });
    expect(cluster().idFloor).toBe(timestamp - 1);
  });

  it('leaves a lease alone that no task may take yet, since its grace has not passed', async () => {
    const { scale, hold, clock, read } = await scene();
    hold(3);
    await clock.advance(DURATION + GRACE - 50);
    expect(await scale(WIDE, { waitTimeoutMs: 0 }).end()).toMatchObject({ kind: 'not-adopted' });
    expect(read(3)).toMatchObject({ kind: 'held' });
  });

  it('never narrows ids again that were widened for a greater size', async () => {
    const { scale, cluster, change } = await scene();
    change({ idWidth: 12 });
    expect(await scale(WIDE).end()).toMatchObject({ kind: 'scaled', idWidth: 12 });
    expect(cluster().idWidth).toBe(12);
  });

  it('waits for a lease that was revived just before', async () => {
    const { scale, hold, clock, read, cluster } = await scene();
    hold(3);
    await clock.advance(DURATION + GRACE + 10);
    let revived = false;
    const growth = scale(WIDE, {
      intercept: async (call, apply) => {
        if (call.operation === 'replace' && call.key === '3.json' && !revived) {
          revived = true;
          hold(3, { renewal: 1 });
        }
        return apply();
      },
    });
    await clock.advance(5_000);
    expect(read(3)).toMatchObject({ kind: 'held', renewal: 1 });
    expect(growth.events).toMatchObject([{ type: 'waiting', holders: [{ id: 3 }] }]);
    const { timestamp } = hold(3, { idWidth: 9, renewal: 2 });
    expect(await growth.end()).toMatchObject({ kind: 'scaled' });
    expect(cluster().idFloor).toBe(timestamp - 1);
  });

  it('finds a narrow holder that took its id before the width was published, however late the read', async () => {
    const { scale, hold, clock, cluster } = await scene();
    const growth = scale(WIDE, {
      intercept: async (call, apply) => {
        // Just before the width is published, a task that has read the older settings takes an id.
        if (writes(call) && keyOf(call) === 'cluster.json' && cluster().idWidth === 8) hold(2);
        return apply();
      },
    });
    await clock.advance(3_000);
    expect(growth.events).toMatchObject([{ type: 'waiting', holders: [{ id: 2 }] }]);
    hold(2, { idWidth: 9, renewal: 1 });
    expect(await growth.end()).toMatchObject({ kind: 'scaled' });
  });

  it('does not use a read that is older than a change by another task', async () => {
    const { scale, hold, clock, cluster, change, bucket } = await scene();
    let changed = false;
    const growth = scale(600, {
      intercept: async (call, apply) => {
        if (writes(call) && keyOf(call) === '599.json' && !changed) {
          changed = true;
          // A smaller growth was faster, and one of its ids is held already, by a task that has not seen 10
          // bits.
          for (let id = NARROW; id < WIDE; id += 1)
            if (bucket.read(`${id}.json`) === undefined) bucket.create(`${id}.json`, '', {});
          change({ size: WIDE, idFloor: 77 });
          hold(250, { idWidth: 9 });
        }
        return apply();
      },
    });
    await clock.advance(5_000);
    expect(cluster().size).toBe(WIDE);
    expect(growth.events).toMatchObject([
      { type: 'waiting', idWidth: 10, holders: [{ id: 250, idWidth: 9 }] },
    ]);
    const { timestamp } = hold(250, { idWidth: 10, renewal: 1 });
    expect(await growth.end()).toMatchObject({ kind: 'scaled', to: 600, idWidth: 10 });
    expect(cluster().idFloor).toBe(timestamp - 1);
  });

  it('names a damaged object, whose holder may be making narrow ids, and changes only the width', async () => {
    const { scale, bucket, put, cluster } = await scene();
    bucket.replace('1.json', 'garbage', {}, bucket.read('1.json')?.etag ?? '');
    await expect(scale(WIDE).end()).rejects.toThrow(/memory:: 1\.json is damaged.*init --repair/);
    expect(cluster()).toMatchObject({ size: NARROW, idWidth: 9 });
    put(1, { kind: 'vacant' });
    bucket.remove('2.json');
    await expect(scale(WIDE).end()).rejects.toThrow(/2\.json is damaged.*absent/);
    await expect(scale(WIDE).end()).rejects.toBeInstanceOf(StoreUnusableError);
  });

  it('keeps the objects beyond its size, and respects their holders', async () => {
    const { scale, bucket, hold, put, cluster, clock } = await scene();
    bucket.create('5.json', 'garbage', {});
    put(6, {
      kind: 'retired',
      version: 4,
      timestamp: 99,
      durationMs: 0,
      stampedUntil: undefined,
      generation: 1,
    });
    hold(7, { timestamp: clock.now() + 500_000 });
    const growth = scale(WIDE);
    await clock.advance(3_000);
    expect(growth.events).toMatchObject([{ holders: [{ id: 7 }] }]);
    put(7, {
      kind: 'released',
      version: 1,
      timestamp: clock.now() + 500_000,
      durationMs: 0,
      stampedUntil: undefined,
    });
    expect(await growth.end()).toMatchObject({ created: 293 });
    expect(bucket.read('5.json')?.body).toBe('garbage');
    expect(cluster().idFloor).toBeGreaterThan(clock.now() + 400_000);
  });

  it('assumes the latest possible id timestamp for a tenure of which nothing is known', async () => {
    const { scale, put, cluster, clock } = await scene();
    put(1, { kind: 'released', version: 9, timestamp: 0, durationMs: 20_000, stampedUntil: undefined });
    await scale(WIDE).end();
    expect(cluster().idFloor).toBeGreaterThanOrEqual(clock.now() - 1_000 + 20_000);
  });
});

describe('a growth with interruptions and failures', () => {
  /** The final state: everything but the etags. */
  async function ended(fail?: { at: number; applied: boolean }) {
    const it = await scene({ nodes: 246 });
    const { hold, put, clock, bucket, scale, cluster, read } = it;
    hold(0, { idWidth: 9 });
    put(1, {
      kind: 'released',
      version: 3,
      timestamp: clock.now() + 3,
      durationMs: 0,
      stampedUntil: undefined,
    });
    hold(2, { timestamp: clock.now() - 100, durationMs: 100 });
    await clock.advance(DURATION);
    hold(0, { idWidth: 9, renewal: 1, timestamp: 1_800_000_000_000 });
    const { calls, intercept } = endingAt(fail);
    const failed = await scale(260, { intercept })
      .end()
      .then(
        () => false,
        (error: unknown) => error === died,
      );
    if (fail !== undefined) {
      expect(failed).toBe(true);
      // The intermediate state is safe: no task may see ids that do not exist yet, or too wide ones.
      const { size, idWidth } = cluster();
      expect(size === 246 || (size === 260 && idWidth === 9)).toBe(true);
      for (let id = 0; id < size; id += 1) expect(read(id)).toBeDefined();
      await scale(260).end();
    }
    return {
      calls,
      cluster: cluster(),
      objects: bucket.list().objects.map(({ key }) => [key, bucket.read(key)?.body]),
    };
  }

  it('ends in the same state after any interruption and another call', async () => {
    const whole = await ended();
    expect(whole.cluster).toMatchObject({ size: 260, idWidth: 9, idFloor: 1_799_999_999_999 });
    expect(whole.objects).toHaveLength(261);
    for (let at = 1; at <= whole.calls.length; at += 1) {
      const call = whole.calls[at - 1];
      // Reads of leases that are not held are equivalent.
      if (call?.operation === 'read' && /^\d{2,}\.json$/.test(call.key) && call.key !== '100.json') continue;
      for (const applied of [true, false]) {
        const { cluster, objects } = await ended({ at, applied });
        expect({ at, applied, cluster, objects }).toEqual({
          at,
          applied,
          cluster: whole.cluster,
          objects: whole.objects,
        });
      }
    }
  });

  it('continues when the store is away for a moment, and when replies are lost', async () => {
    for (const applied of [true, false]) {
      const { scale, cluster, hold } = await scene();
      hold(0, { idWidth: 9 });
      const lost = new StoreError('the connection broke', { fault: 'unreachable', outcome: 'unknown' });
      const seen = new Set<string>();
      const growth = scale(WIDE, {
        intercept: async (call, apply) => {
          // The first attempt at everything fails.
          const what = JSON.stringify(call);
          if (seen.has(what)) return apply();
          seen.add(what);
          if (applied) apply();
          throw lost;
        },
      });
      expect(await growth.end()).toMatchObject({ kind: 'scaled', to: WIDE, widened: true });
      expect(cluster()).toMatchObject({ size: WIDE, idWidth: 9 });
    }
  });

  it('trusts a listing more than a refused write, which may have met an own write that seemed to fail', async () => {
    const { scale, bucket } = await scene();
    let refused = false;
    const growth = scale(6, {
      intercept: async (call, apply) => {
        if (call.operation !== 'create' || call.key !== '5.json' || refused) return apply();
        refused = true;
        return { status: 'conflict' } as never;
      },
    });
    expect(await growth.end()).toMatchObject({ kind: 'scaled', created: 2 });
    expect(bucket.read('5.json')).toBeDefined();
  });

  it('does not let the cluster grow on a store that does not list what was written', async () => {
    const { scale, cluster } = await scene();
    const growth = scale(6, {
      intercept: async (call, apply) => {
        const reply = apply();
        if (call.operation !== 'list') return reply;
        return { ...reply, objects: (reply as Listing).objects.filter(({ key }) => key !== '5.json') };
      },
    });
    await expect(growth.end()).rejects.toThrow(/does not list/);
    expect(cluster().size).toBe(NARROW);
  });

  it('ends with an error when the store refuses, or stays away', async () => {
    const refusal = new StoreError('403', { fault: 'denied', outcome: 'not-applied' });
    const away = new StoreError('503', { fault: 'unavailable', outcome: 'unknown' });
    for (const error of [refusal, away]) {
      const { scale, cluster } = await scene();
      const growth = scale(WIDE, {
        intercept: async (call, apply) => {
          if (writes(call)) throw error;
          return apply();
        },
      });
      await expect(growth.end()).rejects.toBe(error);
      expect(cluster()).toMatchObject({ size: NARROW, idWidth: 8 });
    }
  });

  it('ends correctly next to other calls, whatever their sizes', async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const { scale, cluster, clock, bucket, hold } = await scene();
      hold(0, { idWidth: 16, timestamp: clock.now() + 12_345 });
      const random = seededRandom(seed);
      const slow: MemoryIntercept = async (_, apply) => {
        await clock.sleep(random.next() * 20);
        const reply = apply();
        await clock.sleep(random.next() * 20);
        return reply;
      };
      const growths = [20, WIDE, 280, WIDE].map((size) => ({
        size,
        growth: scale(size, { intercept: slow }),
      }));
      for (const { size, growth } of growths) {
        const end = await growth.end().catch((error: unknown) => error);
        if (size === WIDE) expect(end).toMatchObject({ kind: 'scaled', to: WIDE });
        else expect(['scaled', 'superseded']).toContain((end as ScaleOutcome).kind);
      }
      expect(cluster()).toMatchObject({ size: WIDE, idWidth: 9, idFloor: clock.wallOffset + 12_344 });
      expect(bucket.list().objects).toHaveLength(WIDE + 1);
    }
  });

  it('survives constant changes of the settings, keeps them, and gives up in the end', async () => {
    const { scale, cluster, change } = await scene();
    let storm = 6;
    const stormy: MemoryIntercept = async (call, apply) => {
      if (writes(call) && keyOf(call) === 'cluster.json' && storm > 0) {
        storm -= 1;
        change({ idFloor: storm + 1 });
      }
      return apply();
    };
    expect(await scale(WIDE, { intercept: stormy }).end()).toMatchObject({ kind: 'scaled' });
    expect(cluster()).toMatchObject({ size: WIDE, idFloor: 1 });
    storm = 1_000_000;
    await expect(scale(WIDE + 1, { intercept: stormy }).end()).rejects.toThrow(
      /cluster\.json changes too often/,
    );
  });

  it.each([
    ['reads the leases', '3.json'],
    ['creates the objects', '250.json'],
  ])('ends at once when its signal aborts while it %s, and begins nothing more', async (_, key) => {
    const { scale, clock, bucket } = await scene();
    const giveUp = new AbortController();
    const reason = new Error('enough');
    let after = 0;
    const growth = scale(WIDE, {
      signal: giveUp.signal,
      intercept: async (call, apply) => {
        if (giveUp.signal.aborted) after += 1;
        if (keyOf(call) !== key) return apply();
        giveUp.abort(reason);
        return new Promise(() => undefined);
      },
    });
    await settled();
    expect(growth.state.error).toBe(reason);
    expect({ after, sleepers: clock.sleepers }).toEqual({ after: 0, sleepers: 0 });
    expect(getEventListeners(giveUp.signal, 'abort')).toEqual([]);
    expect(decodeCluster(bucket.read('cluster.json')?.body ?? '')).toMatchObject({
      size: NARROW,
      idWidth: 9,
    });
  });

  it('ends at once when its signal aborts, and leaves no listener and no timer', async () => {
    const { scale, hold, clock, cluster } = await scene();
    hold(0);
    const giveUp = new AbortController();
    const growth = scale(WIDE, { signal: giveUp.signal });
    await clock.advance(3_000);
    const reason = new Error('enough');
    giveUp.abort(reason);
    await settled();
    expect(growth.state.error).toBe(reason);
    expect(clock.sleepers).toBe(0);
    expect(getEventListeners(giveUp.signal, 'abort')).toEqual([]);
    expect(cluster()).toMatchObject({ size: NARROW, idWidth: 9 });
  });
});

describe('tasks on a cluster that grows', () => {
  const start = (
    { store, clock }: Awaited<ReturnType<typeof scene>>,
    seed: number,
    more: { intercept?: MemoryIntercept } = {},
  ) =>
    acquireLease({
      store: store.connect(more.intercept),
      clock,
      random: seededRandom(seed),
      taskId: `real-${seed}`,
    });

  it('adopt the width at their next renewals, and a waiting task gets an id soon after', async () => {
    const it = await scene();
    const leases = await Promise.all([1, 2, 3, 4].map((seed) => start(it, seed)));
    const waiting = start(it, 5);
    await it.clock.advance(3_000);
    const growth = it.scale(WIDE);
    const last = it.clock.now() + 2_000;
    leases[2]?.tenureTime?.stamp(last);
    await it.clock.advance(9_000);
    expect(growth.state.outcome).toMatchObject({ kind: 'scaled', to: WIDE, idWidth: 9 });
    const fifth = await waiting;
    expect(fifth.id).toBeGreaterThanOrEqual(NARROW);
    expect(fifth.tenureTime?.idWidth).toBe(9);
    expect(it.cluster().idFloor).toBe(last);
    expect(fifth.tenureTime?.after).toBe(last);
    expect(leases.map(({ tenureTime }) => tenureTime?.idWidth)).toEqual([9, 9, 9, 9]);
    for (const lease of [...leases, fifth]) await lease.release();
  });

  it('make no additional requests while they wait and the cluster has not grown', async () => {
    const it = await scene({ nodes: 1 });
    const holder = await start(it, 1);
    const calls: string[] = [];
    const giveUp = new AbortController();
    const waiting = acquireLease({
      store: it.store.connect(async (call, apply) => {
        calls.push(call.operation === 'read' ? `read ${call.key}` : call.operation);
        return apply();
      }),
      ...{ clock: it.clock, random: seededRandom(2), taskId: 'waiting', signal: giveUp.signal },
    });
    waiting.catch(() => undefined);
    await it.clock.advance(60_000);
    expect(calls.filter((call) => call === 'read cluster.json')).toHaveLength(1);
    expect(await it.scale(2).end()).toMatchObject({ kind: 'scaled' });
    const lease = await waiting;
    expect(lease.id).toBe(1);
    expect(calls.filter((call) => call === 'read cluster.json').length).toBeLessThanOrEqual(3);
    await lease.release();
    await holder.release();
  });

  it('do not report as damaged what a listing did not show yet when the settings included it', async () => {
    const it = await scene({ nodes: 1 });
    const holder = await start(it, 1);
    const damaged: string[] = [];
    let grown = false;
    const waiting = acquireLease({
      store: it.store.connect(async (call, apply) => {
        const reply = apply();
        if (call.operation !== 'list' || grown) return reply;
        grown = true;
        // A listing of several pages: the first page is older than the growth, the last one shows the
        // settings after it.
        await scaleCluster({
          session: new StoreSession(it.store, it.clock, 1_000),
          ...{ clock: it.clock, random: seededRandom(1), size: 3 },
        });
        const { objects } = apply() as Listing;
        const old = (reply as Listing).objects.filter(({ key }) => key !== 'cluster.json');
        return { ...reply, objects: [...old, ...objects.filter(({ key }) => key === 'cluster.json')] };
      }),
      ...{ clock: it.clock, random: seededRandom(2), taskId: 'waiting' },
      onEvent: (event) => event.type === 'damaged' && damaged.push(event.key),
    });
    await it.clock.advance(2_000);
    const lease = await waiting;
    expect(lease.id).toBe(1);
    expect(damaged).toEqual([]);
    await lease.release();
    await holder.release();
  });
});
