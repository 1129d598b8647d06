import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  DURATION,
  died,
  endingAt,
  GRACE,
  keyOf,
  scaleScene,
  writes,
} from '../../../../test/support/scale-scene.js';
import { seededRandom, settled } from '../../../../test/support/virtual-clock.js';
import { type Listing, StoreError } from '../../store/lease-store.js';
import type { MemoryCall, MemoryIntercept } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import type { Lease } from '../model/lease.js';
import type { LeaseState } from '../model/lease-state.js';
import { StoreSession } from '../session/store-session.js';
import { evictHolder } from './evict.js';
import { initializeCluster, repairCluster } from './initialize.js';
import { inspectCluster } from './inspect.js';
import { scaleCluster } from './scale.js';
import type { ScaleOutcome } from './scaling.js';

/** A cluster that shrinks from ten node ids to four. */
const MANY = 10;
const FEW = 4;
const scene = () => scaleScene({ nodes: MANY });
type Scene = Awaited<ReturnType<typeof scene>>;

const released = (version: number, timestamp = 77): LeaseState => ({
  ...{ kind: 'released', version, timestamp, durationMs: 0, stampedUntil: 70 },
});
const start = (
  { store, clock }: Scene,
  seed: number,
  more: Partial<Parameters<typeof acquireLease>[0]> = {},
) =>
  acquireLease({
    store: store.connect(),
    clock,
    random: seededRandom(seed),
    taskId: `task-${seed}`,
    ...more,
  });
/** Acquires `count` leases, each with the lowest free id. */
async function inTurn(it: Scene, count: number): Promise<Lease[]> {
  const leases: Lease[] = [];
  for (let seed = 1; seed <= count; seed += 1) leases.push(await start(it, seed));
  return leases;
}
const kinds = ({ read, bucket }: Scene) =>
  Array.from({ length: bucket.list().objects.length - 1 }, (_, id) => {
    const state = read(id);
    return state?.kind === 'retired'
      ? `retired ${state.version} in ${state.generation}`
      : (state?.kind ?? 'absent');
  });
const etags = ({ bucket }: Scene, ids: readonly number[]) => ids.map((id) => bucket.read(`${id}.json`)?.etag);

describe('a cluster that shrinks', () => {
  it('gets the smaller size first, and then tombstones beyond it that keep every version', async () => {
    const it = await scene();
    it.put(5, released(7));
    it.put(6, {
      kind: 'held',
      taskId: 'old',
      version: 3,
      timestamp: 9,
      durationMs: 100,
      knownNodes: {},
      nonce: 'x',
      renewal: 0,
      acquiredAt: 1,
      idWidth: 8,
      narrowIdsUntil: 0,
    });
    await it.clock.advance(DURATION + GRACE);
    const written: string[] = [];
    const shrinking = it.scale(FEW, {
      intercept: async (call, apply) => {
        if (writes(call)) written.push(keyOf(call));
        return apply();
      },
    });
    expect(await shrinking.end()).toEqual({
      ...{ kind: 'scaled', from: MANY, to: FEW, idWidth: 8, widened: false, created: 0 },
      ...{ reopened: 0, retired: 6, forced: [], damaged: [] },
    });
    expect(written[0]).toBe('cluster.json');
    expect([...written].sort()).toEqual([
      '4.json',
      '5.json',
      '6.json',
      '7.json',
      '8.json',
      '9.json',
      'cluster.json',
    ]);
    expect(it.cluster()).toMatchObject({
      size: FEW,
      peak: MANY,
      generation: 1,
      idWidth: 8,
      idFloor: 0,
      bootstrapped: true,
    });
    expect(it.read(4)).toEqual({
      kind: 'retired',
      version: 0,
      timestamp: 0,
      durationMs: 0,
      stampedUntil: undefined,
      generation: 1,
    });
    expect(it.read(5)).toEqual({ ...released(7), kind: 'retired', generation: 1 });
    expect(it.read(6)).toEqual({
      kind: 'retired',
      version: 4,
      timestamp: 9,
      durationMs: 0,
      stampedUntil: undefined,
      generation: 1,
      history: '3/1/9/x/old',
    });
    expect(shrinking.events).toEqual([
      { type: 'shrunk', from: MANY, to: FEW },
      { type: 'retired', retired: 6, total: 6 },
    ]);
  });

  it('does nothing more when it has shrunk already', async () => {
    const it = await scene();
    await it.scale(FEW).end();
    const before = etags(it, [4, 5, 6, 7, 8, 9]);
    const again = it.scale(FEW);
    expect(await again.end()).toMatchObject({ kind: 'scaled', from: FEW, to: FEW, retired: 0 });
    expect(etags(it, [4, 5, 6, 7, 8, 9])).toEqual(before);
    expect(it.cluster()).toMatchObject({ size: FEW, generation: 1 });
  });

  it('changes nothing without permission to write the settings', async () => {
    const it = await scene();
    const denied = new StoreError('403', { fault: 'denied', outcome: 'not-applied' });
    const before = it.bucket.list().objects.map(({ key, etag }) => [key, etag]);
    const shrinking = it.scale(FEW, {
      intercept: async (call, apply) => {
        if (writes(call)) throw denied;
        return apply();
      },
    });
    await expect(shrinking.end()).rejects.toBe(denied);
    expect(it.bucket.list().objects.map(({ key, etag }) => [key, etag])).toEqual(before);
  });

  it('never writes the leases that it keeps, nor objects that are no leases', async () => {
    const it = await scene();
    for (const id of [0, 1, 2, 3]) it.hold(id);
    it.bucket.create('65528.json', 'no lease', {});
    it.bucket.create('notes.txt', 'no lease', {});
    const before = [
      ...etags(it, [0, 1, 2, 3]),
      it.bucket.read('65528.json')?.etag,
      it.bucket.read('notes.txt')?.etag,
    ];
    await it.scale(FEW).end();
    expect([
      ...etags(it, [0, 1, 2, 3]),
      it.bucket.read('65528.json')?.etag,
      it.bucket.read('notes.txt')?.etag,
    ]).toEqual(before);
  });

  it('leaves damaged objects, and reports them', async () => {
    const it = await scene();
    it.bucket.remove('5.json');
    it.bucket.replace('7.json', 'garbage', {}, it.bucket.read('7.json')?.etag ?? '');
    const shrinking = it.scale(FEW);
    const end = await shrinking.end();
    expect(end).toMatchObject({ kind: 'scaled', retired: 4, damaged: [{ id: 5 }, { id: 7 }] });
    expect(shrinking.events.filter(({ type }) => type === 'damaged')).toHaveLength(2);
    expect(it.bucket.read('5.json')).toBeUndefined();
    expect(it.bucket.read('7.json')?.body).toBe('garbage');
  });

  it('records that bootstrap is complete, so that a later missing object is known to be damage', async () => {
    const it = await scene();
    it.change({ bootstrapped: false });
    it.bucket.remove('2.json');
    it.bucket.remove('6.json');
    expect(await it.scale(FEW).end()).toMatchObject({ created: 2, retired: 6, damaged: [] });
    expect(it.cluster()).toMatchObject({ size: FEW, peak: MANY, bootstrapped: true });
    it.bucket.remove('6.json');
    expect(await it.scale(MANY).end()).toMatchObject({ created: 0, damaged: [{ id: 6 }] });
    expect(it.bucket.read('6.json')).toBeUndefined();
  });
});

describe('holders of ids that the cluster retires', () => {
  it('learn of it at their renewals, and get time to end, while the other holders are not disturbed', async () => {
    const it = await scene();
    const leases = await inTurn(it, 6);
    const [staying, leaving] = [leases.filter(({ id }) => id < FEW), leases.filter(({ id }) => id >= FEW)];
    expect(leaving.map(({ id }) => id)).toHaveLength(2);
    const shrinking = it.scale(FEW);
    await it.clock.advance(DURATION);
    expect(leaving.map(({ retiring, signal }) => [retiring.aborted, signal.aborted])).toEqual(
      Array(2).fill([true, false]),
    );
    expect(leaving[0]?.retiring.reason).toMatchObject({
      code: 'LEASE_RETIRING',
      size: FEW,
      nodeId: leaving[0]?.id,
    });
    expect(shrinking.state.outcome).toBeUndefined();
    const draining = shrinking.events.filter(({ type }) => type === 'draining');
    expect(draining).toMatchObject([
      { holders: leaving.map(({ id, taskId, version }) => ({ id, taskId, version })), leftMs: 600_000 },
    ]);
    await leaving[0]?.release();
    await it.clock.advance(5_000);
    expect(shrinking.state.outcome).toBeUndefined();
    await leaving[1]?.release();
    expect(await shrinking.end()).toMatchObject({ kind: 'scaled', retired: 6, forced: [] });
    expect(staying.map(({ retiring, signal }) => [retiring.aborted, signal.aborted])).toEqual(
      Array(4).fill([false, false]),
    );
    expect(kinds(it).slice(FEW).sort()).toEqual([
      ...Array(4).fill('retired 0 in 1'),
      ...Array(2).fill('retired 1 in 1'),
    ]);
    for (const lease of staying) await lease.release();
  });

  it('cost one listing a scan, however often they renew', async () => {
    const it = await scene();
    const leases = await inTurn(it, 6);
    const calls: string[] = [];
    const shrinking = it.scale(FEW, {
      intercept: async (call, apply) => {
        calls.push(call.operation === 'list' ? 'list' : `${call.operation} ${keyOf(call)}`);
        return apply();
      },
    });
    await it.clock.advance(3_000);
    calls.length = 0;
    await it.clock.advance(30_000);
    expect(calls).toEqual(Array(15).fill('list'));
    for (const lease of leases) await lease.release();
    await shrinking.end();
  });

  it('lose the ids when time is up, with the next version; no task gets one before its old holder stops, even if the cluster grows at once', async () => {
    const it = await scene();
    const leases = await Promise.all(Array.from({ length: MANY }, (_, index) => start(it, index + 1)));
    const old = leases.find(({ id }) => id === 9) as Lease;
    const taken: number[] = [];
    // Renewed just before it is taken: its holder may trust it for that long.
    const shrinking = it.scale(FEW, { drainTimeoutMs: 4_000 });
    await it.clock.advance(4_500);
    expect(shrinking.state.outcome).toMatchObject({ kind: 'scaled', forced: { length: 6 } });
    expect((shrinking.state.outcome as Extract<ScaleOutcome, { kind: 'scaled' }>).forced.at(-1)).toEqual({
      ...{ id: 9, taskId: old.taskId, version: 1 },
    });
    expect(shrinking.events.filter(({ type }) => type === 'forced')).toHaveLength(6);
    expect(it.read(9)).toMatchObject({ kind: 'retired', version: 2, durationMs: DURATION, generation: 1 });
    const deadline = old.deadline;
    expect(await it.scale(MANY).end()).toMatchObject({ kind: 'scaled', to: MANY });
    for (const lease of leases.filter(({ id }) => id < FEW)) await lease.release();
    const starters = Array.from({ length: MANY }, (_, index) => start(it, 50 + index));
    for (const starter of starters)
      void starter.then(({ id, version }) =>
        taken.push(id >= FEW && it.clock.monotonic() < deadline ? id : version),
      );
    await it.clock.advance(1_000);
    expect(taken).toEqual([2, 2, 2, 2]);
    await it.clock.advance(60_000);
    const again = await Promise.all(starters);
    expect(again.map(({ id, version }) => `${id} ${version}`).sort()).toEqual([
      ...Array.from({ length: FEW }, (_, id) => `${id} 2`),
      ...Array.from({ length: MANY - FEW }, (_, index) => `${FEW + index} 3`),
    ]);
    expect(old.signal.aborted).toBe(true);
    for (const lease of again) await lease.release();
  });

  it('get no time to end if the timeout is 0', async () => {
    const it = await scene();
    it.hold(8);
    const shrinking = it.scale(FEW, { drainTimeoutMs: 0 });
    expect(await shrinking.end()).toMatchObject({
      retired: 6,
      forced: [{ id: 8, taskId: 'task-8', version: 1 }],
    });
    expect(shrinking.events.filter(({ type }) => type === 'draining')).toEqual([]);
  });

  it('end the wait when their leases have expired, and a late renewal is refused', async () => {
    const it = await scene();
    const held = it.hold(8);
    const etag = it.bucket.read('8.json')?.etag ?? '';
    const shrinking = it.scale(FEW);
    await it.clock.advance(DURATION + GRACE - 100);
    expect(shrinking.state.outcome).toBeUndefined();
    expect(await shrinking.end()).toMatchObject({ retired: 6, forced: [] });
    expect(it.read(8)).toEqual({
      kind: 'retired',
      version: 2,
      timestamp: held.timestamp,
      durationMs: 0,
      stampedUntil: undefined,
      generation: 1,
      history: expect.stringMatching(/^1\/\w+\/\w+\/x\/task-8$/),
    });
    expect(it.bucket.replace('8.json', 'late', {}, etag).status).toBe('conflict');
  });

  it('keep the id when they renew it at the very moment at which it looks expired', async () => {
    const it = await scene();
    it.hold(8);
    await it.clock.advance(DURATION + GRACE + 10);
    let renewed = false;
    const shrinking = it.scale(FEW, {
      intercept: async (call, apply) => {
        if (call.operation === 'replace' && call.key === '8.json' && !renewed) {
          renewed = true;
          it.hold(8, { renewal: 1 });
        }
        return apply();
      },
    });
    await it.clock.advance(5_000);
    expect(it.read(8)).toMatchObject({ kind: 'held', version: 1 });
    expect(shrinking.events.at(-1)).toMatchObject({ type: 'draining', holders: [{ id: 8 }] });
    it.put(8, released(1));
    expect(await shrinking.end()).toMatchObject({ forced: [] });
  });

  it('may be evicted by an operator meanwhile', async () => {
    const it = await scene();
    it.hold(8);
    const shrinking = it.scale(FEW);
    await it.clock.advance(3_000);
    expect(await evictHolder(new StoreSession(it.store, it.clock, 1_000), 8)).toMatchObject({
      kind: 'evicted',
      version: 2,
    });
    expect(await shrinking.end()).toMatchObject({ retired: 6, forced: [] });
    expect(it.read(8)).toMatchObject({ kind: 'retired', version: 2, durationMs: DURATION });
    await expect(evictHolder(new StoreSession(it.store, it.clock, 1_000), MANY)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
  });
});

describe('a starter that has read older settings', () => {
  it('may still take an id that is being retired; it learns of that, and gets time to end', async () => {
    const it = await scene();
    for (const id of [0, 1, 2, 3]) it.hold(id);
    const shrinking = it.scale(FEW, {
      intercept: async (call, apply) => {
        // Just after the read of the object, and before it is retired.
        if (call.operation === 'replace' && call.key === '4.json' && it.read(4)?.kind === 'vacant') {
          it.hold(4, { taskId: 'straggler' });
        }
        return apply();
      },
    });
    await it.clock.advance(3_000);
    expect(it.read(4)).toMatchObject({ kind: 'held', taskId: 'straggler' });
    expect(shrinking.events.at(-1)).toMatchObject({
      type: 'draining',
      holders: [{ id: 4, taskId: 'straggler' }],
    });
    it.put(4, released(1));
    expect(await shrinking.end()).toMatchObject({ forced: [] });
  });

  it('is found by the next call if the first one had ended', async () => {
    const it = await scene();
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    for (const id of [0, 1, 2, 3]) it.hold(id);
    // It has read the settings, and reads the object of the id afterwards.
    const stale = start(it, 1, {
      store: it.store.connect(async (call, apply) => {
        if (/^\d/.test(keyOf(call))) await gate;
        return apply();
      }),
    });
    await settled();
    await it
      .scale(FEW, { intercept: died4 })
      .end()
      .catch((error: unknown) => expect(error).toBe(died));
    expect(it.cluster().size).toBe(FEW);
    go();
    await it.clock.advance(100);
    const lease = await stale;
    expect(lease.id).toBeGreaterThanOrEqual(FEW);
    const again = it.scale(FEW);
    await it.clock.advance(DURATION);
    expect(lease.retiring.aborted).toBe(true);
    expect(again.events.at(-1)).toMatchObject({ type: 'draining', holders: [{ id: lease.id }] });
    await lease.release();
    expect(await again.end()).toMatchObject({ kind: 'scaled' });
    expect(
      kinds(it)
        .slice(FEW)
        .every((kind) => kind.startsWith('retired')),
    ).toBe(true);
  });

  /** Kills the call right after the size has shrunk. */
  const died4: MemoryIntercept = async (call, apply) => {
    if (writes(call) && keyOf(call) !== 'cluster.json') throw died;
    return apply();
  };

  it('does not take a retired id that was just released, once it has waited', async () => {
    const it = await scaleScene({ nodes: 2 });
    const leases = [await start(it, 1), await start(it, 2)];
    const giveUp = new AbortController();
    const waiting = start(it, 3, { signal: giveUp.signal });
    waiting.catch(() => undefined);
    await it.clock.advance(3_000);
    const shrinking = it.scale(1, {
      intercept: async (call, apply) => {
        if (keyOf(call) !== 'cluster.json') await it.clock.sleep(50);
        const reply = apply();
        // The next scan of the waiting task shows both: changed settings, and a free id.
        if (writes(call) && keyOf(call) === 'cluster.json') it.put(1, released(1));
        return reply;
      },
    });
    expect(await shrinking.end()).toMatchObject({ kind: 'scaled', forced: [] });
    expect(it.read(1)).toMatchObject({ kind: 'retired', version: 1 });
    giveUp.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await leases.find(({ id }) => id === 0)?.release();
  });
});

describe('a cluster that grows again', () => {
  it('has the former ids, with versions above the old ones, and writes no lease of them', async () => {
    const it = await scene();
    it.put(5, released(7));
    await it.scale(FEW).end();
    const before = etags(it, [4, 5, 6, 7, 8, 9]);
    expect(await it.scale(12).end()).toMatchObject({
      kind: 'scaled',
      from: FEW,
      to: 12,
      created: 2,
      retired: 0,
      damaged: [],
    });
    expect(etags(it, [4, 5, 6, 7, 8, 9])).toEqual(before);
    expect(it.cluster()).toMatchObject({ size: 12, peak: 12, generation: 2 });
    const leases = await Promise.all(Array.from({ length: 12 }, (_, index) => start(it, index + 1)));
    expect(leases.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, id) => id),
    );
    expect(leases.find(({ id }) => id === 5)?.version).toBe(8);
    for (const lease of leases) await lease.release();
  });

  it('is seen correctly by tasks that only read', async () => {
    const it = await scene();
    it.put(5, released(7));
    await it.scale(FEW).end();
    const session = new StoreSession(it.store, it.clock, 1_000);
    expect((await inspectCluster(session))?.nodes).toHaveLength(FEW);
    await it.scale(8).end();
    expect((await inspectCluster(session))?.nodes.map(({ state, version }) => `${state} ${version}`)).toEqual(
      [...[...Array(5).fill('vacant 0'), 'released 7', ...Array(2).fill('vacant 0')]],
    );
    expect(await evictHolder(session, 5)).toEqual({ kind: 'not-held', state: 'released' });
    expect(await evictHolder(session, 9)).toEqual({ kind: 'not-held', state: 'retired' });
  });

  it('gives an id to a task that has waited all the time and had seen its tombstone, though its object is not written', async () => {
    const it = await scaleScene({ nodes: 2 });
    const holder = await start(it, 1);
    const session = new StoreSession(it.store, it.clock, 1_000);
    const small = { session, clock: it.clock, random: seededRandom(3), size: 1, drainTimeoutMs: 0 };
    let raced = false;
    const waiting = start(it, 2, {
      store: it.store.connect(async (call, apply) => {
        if (call.operation !== 'replace' || call.key !== '1.json' || raced) return apply();
        // Another task is faster, and loses the id again at once: the next listing shows a tombstone without
        // the reason.
        raced = true;
        it.hold(1);
        const reply = apply();
        await scaleCluster(small);
        return reply;
      }),
    });
    await it.clock.advance(5_000);
    expect(it.read(1)).toMatchObject({ kind: 'retired', version: 2 });
    const before = it.bucket.read('1.json')?.etag;
    await it.scale(2).end();
    expect(it.bucket.read('1.json')?.etag).toBe(before);
    await it.clock.advance(2 * DURATION);
    expect(await waiting).toMatchObject({ id: 1, version: 3 });
    await (await waiting).release();
    await holder.release();
  });

  it('never creates an absent object of an earlier size, but reports it, and a repair restores it', async () => {
    const it = await scene();
    it.put(5, released(7));
    await it.scale(FEW).end();
    it.bucket.remove('5.json');
    const session = new StoreSession(it.store, it.clock, 1_000);
    const options = { session, clock: it.clock, random: seededRandom(1), wanted: {} };
    expect((await initializeCluster(options)).damaged).toEqual([5]);
    expect(await repairCluster({ ...options, aboveVersion: 7 })).toMatchObject([{ id: 5, version: 8 }]);
    expect(it.read(5)).toMatchObject({ kind: 'retired', version: 8, generation: 1 });
    it.bucket.remove('5.json');
    const growth = it.scale(8);
    expect(await growth.end()).toMatchObject({ created: 0, damaged: [{ id: 5 }] });
    expect(it.bucket.read('5.json')).toBeUndefined();
    expect((await initializeCluster(options)).damaged).toEqual([5]);
    expect(await repairCluster({ ...options, aboveVersion: 8 })).toMatchObject([{ id: 5, version: 9 }]);
    expect(it.read(5)).toMatchObject({ kind: 'released', version: 9 });
  });

  it('opens tombstones of later generations', async () => {
    const it = await scene();
    await it.scale(FEW).end();
    for (const [id, generation] of [
      [6, 3],
      [7, 40],
    ] as const) {
      it.put(id, {
        kind: 'retired',
        version: 5,
        timestamp: 99,
        durationMs: 0,
        stampedUntil: undefined,
        generation,
      });
    }
    expect(await it.scale(MANY).end()).toMatchObject({ kind: 'scaled' });
    const session = new StoreSession(it.store, it.clock, 1_000);
    expect((await inspectCluster(session))?.nodes.map(({ state }) => state)).toEqual([
      ...Array(6).fill('vacant'),
      'released',
      'released',
      'vacant',
      'vacant',
    ]);
  });

  it('retires again what an earlier generation had retired: a task that read the settings in between would take it', async () => {
    const it = await scene();
    await it.scale(FEW).end();
    await it.scale(MANY).end();
    const between = it.cluster();
    await it.scale(FEW).end();
    expect(between.generation).toBe(2);
    expect(kinds(it).slice(FEW)).toEqual(Array(6).fill('retired 0 in 3'));
  });
});

describe('changes of the size at once', () => {
  it('end with the size of the last one, whatever they are', async () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const it = await scene();
      it.hold(1);
      const random = seededRandom(seed);
      /** By their generations. */
      const sizes = new Map<number, number>();
      const slow: MemoryIntercept = async (_, apply) => {
        await it.clock.sleep(random.next() * 20);
        const reply = apply();
        sizes.set(it.cluster().generation, it.cluster().size);
        await it.clock.sleep(random.next() * 20);
        return reply;
      };
      const before = it.bucket.read('1.json')?.etag;
      const calls = [FEW, 20, 6, 14, FEW].map((size) => ({
        size,
        call: it.scale(size, { intercept: slow }),
      }));
      const ends: ScaleOutcome[] = [];
      for (const { call } of calls) ends.push(await call.end());
      const { size, peak, generation } = it.cluster();
      expect(calls.some((call) => call.size === size)).toBe(true);
      for (const [index, end] of ends.entries()) {
        if (end.kind === 'superseded') continue;
        expect(end).toMatchObject({ kind: 'scaled', to: calls[index]?.size });
      }
      // The task that came last has ended as it should.
      expect(ends.some((end) => end.kind === 'scaled' && end.to === size)).toBe(true);
      for (let id = 0; id < peak; id += 1)
        expect({ seed, id, there: it.read(id) !== undefined }).toEqual({ seed, id, there: true });
      for (let id = size; it.read(id) !== undefined; id += 1) {
        const state = it.read(id);
        // A growth that was overtaken may have left objects that were never held.
        if (id >= peak) continue;
        expect({ seed, id, state }).toMatchObject({ seed, id, state: { kind: 'retired' } });
        const since = state?.kind === 'retired' ? (state.generation ?? 0) : 0;
        const had = [...sizes].filter(([later, had]) => later > since && had > id);
        expect({ seed, id, since, had }).toEqual({ seed, id, since, had: [] });
      }
      expect(generation).toBeGreaterThan(0);
      expect(it.bucket.read('1.json')?.etag).toBe(before);
    }
  });

  it('let a growth win over a shrinkage that still waits: no task loses an id that the cluster has again', async () => {
    const it = await scene();
    const leases = await Promise.all(Array.from({ length: MANY }, (_, index) => start(it, index + 1)));
    const shrinking = it.scale(FEW, { drainTimeoutMs: 10_000 });
    await it.clock.advance(6_000);
    await leases.find(({ id }) => id === 7)?.release();
    await it.clock.advance(2_500);
    expect(it.read(7)).toMatchObject({ kind: 'retired', generation: 1 });
    expect(await it.scale(MANY).end()).toMatchObject({ kind: 'scaled' });
    expect(await shrinking.end()).toEqual({ kind: 'superseded', size: MANY });
    await it.clock.advance(20_000);
    expect(leases.filter(({ signal }) => signal.aborted)).toEqual([]);
    const next = await start(it, 99);
    expect(next).toMatchObject({ id: 7, version: 2 });
    // A report is final: a task may end its work because of it.
    expect(leases.find(({ id }) => id === 8)?.retiring.aborted).toBe(true);
    for (const lease of [...leases, next]) await lease.release();
  });

  it('take no id away by outdated settings', async () => {
    const it = await scene();
    it.hold(8);
    let grown = false;
    const shrinking = it.scale(FEW, {
      drainTimeoutMs: 4_000,
      intercept: async (call, apply) => {
        // Time is up, and before the listing that comes first the cluster grows.
        if (call.operation === 'list' && it.clock.monotonic() >= 4_000 && !grown) {
          grown = true;
          await scaleCluster({
            session: new StoreSession(it.store, it.clock, 1_000),
            clock: it.clock,
            random: seededRandom(5),
            size: MANY,
          });
        }
        return apply();
      },
    });
    expect(await shrinking.end()).toEqual({ kind: 'superseded', size: MANY });
    expect(it.read(8)).toMatchObject({ kind: 'held', version: 1 });
  });

  it('do not undo a retirement by newer settings, however late they are', async () => {
    const it = await scene();
    let isHeldUp = true;
    const late = it.scale(8, {
      intercept: async (call, apply) => {
        if (isHeldUp && keyOf(call) === '9.json')
          throw new StoreError('the connection broke', { fault: 'unreachable', outcome: 'unknown' });
        return apply();
      },
    });
    await it.clock.advance(200);
    expect(it.cluster()).toMatchObject({ size: 8, generation: 1 });
    for (const size of [MANY, FEW]) await it.scale(size).end();
    expect(it.read(9)).toMatchObject({ kind: 'retired', generation: 3 });
    const before = etags(it, [8, 9]);
    isHeldUp = false;
    expect(await late.end()).toEqual({ kind: 'superseded', size: FEW });
    // With generation 1, it would be free for a task that knows the ten ids of generation 2, and nothing
    // newer.
    expect(etags(it, [8, 9])).toEqual(before);
  });

  it('do not open an id that another call has retired again, however late a growth is that knows of neither', async () => {
    const it = await scene();
    await it.scale(FEW).end();
    let isHeldUp = true;
    const late = it.scale(MANY, {
      intercept: async (call, apply) => {
        if (isHeldUp && keyOf(call) === '9.json')
          throw new StoreError('the connection broke', { fault: 'unreachable', outcome: 'unknown' });
        return apply();
      },
    });
    await it.clock.advance(200);
    for (const size of [MANY, FEW]) await it.scale(size).end();
    expect(it.read(9)).toMatchObject({ kind: 'retired', generation: 3 });
    const before = etags(it, [4, 9]);
    isHeldUp = false;
    expect(await late.end()).toMatchObject({ kind: 'scaled', to: MANY });
    // With generation 1, it would have been free for a task that knows the ten ids of generation 2, and
    // nothing newer.
    expect(etags(it, [4, 9])).toEqual(before);
    expect(it.cluster()).toMatchObject({ size: MANY, generation: 4 });
  });

  it('let a growth continue that waits for a wider width, and respect the holders that drain', async () => {
    const it = await scene();
    it.hold(1);
    it.hold(8);
    const growth = it.scale(300);
    await it.clock.advance(3_000);
    expect(it.cluster()).toMatchObject({ size: MANY, idWidth: 9 });
    const shrinking = it.scale(FEW);
    await it.clock.advance(3_000);
    expect(it.cluster()).toMatchObject({ size: FEW, idWidth: 9, generation: 1 });
    it.hold(1, { idWidth: 9, renewal: 1 });
    await it.clock.advance(5_000);
    // Its ids are narrow as long as it has not ended.
    expect(growth.state.outcome).toBeUndefined();
    const { timestamp } = it.hold(8, { idWidth: 8, renewal: 1, timestamp: it.clock.now() + 33_000 });
    await it.clock.advance(2_500);
    expect(growth.state.outcome).toBeUndefined();
    it.put(8, { kind: 'released', version: 1, timestamp, durationMs: 0, stampedUntil: undefined });
    expect(await growth.end()).toMatchObject({ kind: 'scaled', to: 300, idWidth: 9 });
    expect(it.cluster()).toMatchObject({ size: 300, idFloor: timestamp - 1 });
    expect(await shrinking.end()).toMatchObject({ kind: 'superseded' });
  });

  it('consider the last id timestamp of a retired id when the width grows', async () => {
    const it = await scene();
    const late = it.clock.now() + 40_000;
    it.put(5, { kind: 'released', version: 2, timestamp: late + 9, durationMs: 0, stampedUntil: late });
    await it.scale(FEW).end();
    await it.scale(300).end();
    expect(it.cluster()).toMatchObject({ size: 300, idWidth: 9, idFloor: late });
  });

  it('need no width twice: a cluster that was as large once waits for no holder', async () => {
    const it = await scene();
    await it.scale(300).end();
    await it.scale(8).end();
    it.hold(1, { idWidth: 9 });
    const { idFloor } = it.cluster();
    const calls: MemoryCall[] = [];
    const growth = it.scale(300, {
      intercept: async (call, apply) => {
        calls.push(call);
        return apply();
      },
    });
    expect(await growth.end()).toMatchObject({ kind: 'scaled', idWidth: 9, widened: false });
    expect(calls.filter((call) => call.operation === 'read' && Number.parseInt(call.key, 10) < 8)).toEqual(
      [],
    );
    expect(it.cluster()).toMatchObject({ idWidth: 9, idFloor });
  });
});

describe('a shrinkage with interruptions and failures', () => {
  const NODES = 12;

  /** The final state, and all versions that were ever seen. */
  async function ended(fail?: { at: number; applied: boolean }) {
    const it = await scaleScene({ nodes: NODES });
    it.hold(0);
    it.put(1, released(4));
    it.put(5, released(9));
    it.hold(6, { durationMs: 100, timestamp: it.clock.now() });
    await it.clock.advance(DURATION);
    it.hold(7, { version: 3 });
    const { calls, intercept } = endingAt(fail);
    const keys = it.bucket.list().objects.length;
    const first = it.scale(FEW, { drainTimeoutMs: 5_000, intercept });
    const failed = await first.end().then(
      () => false,
      (error: unknown) => error === died,
    );
    if (fail !== undefined) {
      expect(failed).toBe(true);
      expect(await it.scale(FEW, { drainTimeoutMs: 5_000 }).end()).toMatchObject({ kind: 'scaled', to: FEW });
    }
    expect(it.bucket.list().objects).toHaveLength(keys);
    const { wallOffset } = it.clock;
    // Only the times differ, by more and more.
    const objects = Array.from({ length: NODES }, (_, id) => ({
      ...it.read(id),
      // The times depend on the interruption.
      ...{ timestamp: undefined, history: undefined },
    }));
    expect(it.cluster().idFloor).toBeLessThan(wallOffset * 2);
    return { calls, cluster: it.cluster(), objects };
  }

  it('ends in the same state after any interruption and another call, and no version falls or rises twice', async () => {
    const whole = await ended();
    expect(whole.cluster).toMatchObject({ size: FEW, peak: NODES, generation: 1 });
    expect(whole.objects.slice(FEW)).toMatchObject([
      ...[
        { version: 0 },
        { version: 9, durationMs: 0 },
        { version: 2, durationMs: 0 },
        { version: 4, durationMs: DURATION },
      ],
      ...Array(4).fill({ kind: 'retired', version: 0, generation: 1 }),
    ]);
    expect(whole.calls.length).toBeGreaterThan(20);
    for (let at = 1; at <= whole.calls.length; at += 1) {
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

  it('continues when the store is away for a moment, and when replies are lost, and reports what it did', async () => {
    for (const applied of [true, false]) {
      const it = await scene();
      it.hold(8);
      const lost = new StoreError('the connection broke', { fault: 'unreachable', outcome: 'unknown' });
      const seen = new Set<string>();
      const shrinking = it.scale(FEW, {
        drainTimeoutMs: 3_000,
        intercept: async (call, apply) => {
          const what = JSON.stringify(call);
          if (seen.has(what)) return apply();
          seen.add(what);
          if (applied) apply();
          throw lost;
        },
      });
      expect(await shrinking.end()).toMatchObject({
        from: MANY,
        to: FEW,
        retired: 6,
        forced: [{ id: 8, taskId: 'task-8', version: 1 }],
      });
      expect(it.cluster()).toMatchObject({ size: FEW, generation: 1 });
      expect(it.read(8)).toMatchObject({ kind: 'retired', version: 2, durationMs: DURATION });
    }
  });

  it('gives up on a store that does not list what was written', async () => {
    const it = await scene();
    const before = it.bucket.list();
    const shrinking = it.scale(FEW, {
      intercept: async (call, apply) => {
        const reply = apply();
        if (call.operation !== 'list') return reply;
        const objects = (reply as Listing).objects.map((row) =>
          row.key === 'cluster.json' ? row : (before.objects.find(({ key }) => key === row.key) ?? row),
        );
        return { ...reply, objects };
      },
    });
    await expect(shrinking.end()).rejects.toThrow(/does not list/);
    const stale = it.scale(FEW, {
      intercept: async (call, apply) => {
        const reply = apply();
        return call.operation === 'list' ? { ...reply, objects: before.objects } : reply;
      },
    });
    await expect(stale.end()).rejects.toThrow(/does not list/);
  });

  it('ends at once when its signal aborts, and leaves no listener and no timer', async () => {
    const it = await scene();
    it.hold(8);
    const giveUp = new AbortController();
    const shrinking = it.scale(FEW, { signal: giveUp.signal });
    await it.clock.advance(3_000);
    const reason = new Error('enough');
    giveUp.abort(reason);
    await settled();
    expect(shrinking.state.error).toBe(reason);
    expect(it.clock.sleepers).toBe(0);
    expect(getEventListeners(giveUp.signal, 'abort')).toEqual([]);
    expect(it.cluster()).toMatchObject({ size: FEW });
    expect(it.read(8)).toMatchObject({ kind: 'held' });
  });
});
