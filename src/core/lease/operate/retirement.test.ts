import { describe, expect, it } from 'vitest';
import { DURATION, keyOf, scaleScene, writes } from '../../../../test/support/scale-scene.js';
import { seededRandom } from '../../../../test/support/virtual-clock.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import type { Lease } from '../model/lease.js';
import { StoreSession } from '../session/store-session.js';
import { evictHolder } from './evict.js';

type Scene = Awaited<ReturnType<typeof scaleScene>>;
const start = ({ store, clock }: Scene, seed: number) =>
  acquireLease({ store: store.connect(), clock, random: seededRandom(seed), taskId: `task-${seed}` });
const all = (it: Scene, count: number): Promise<Lease[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => start(it, index + 1)));
/** Calls `action` once, before the first write of this lease object. */
const beforeFirstWrite = (key: string, action: () => unknown) => {
  let done = false;
  return async (call: Parameters<typeof keyOf>[0], apply: () => unknown) => {
    if (!done && writes(call) && keyOf(call) === key) {
      done = true;
      await action();
    }
    return apply() as never;
  };
};

describe('taking ids away when time is up', () => {
  it('stops as soon as the cluster has them again, however many are left', async () => {
    const it = await scaleScene({ nodes: 200 });
    const leases = await all(it, 200);
    let slow = false;
    const shrinking = it.scale(4, {
      drainTimeoutMs: 4_000,
      intercept: async (_call, apply) => {
        if (slow) await it.clock.sleep(200);
        return apply();
      },
    });
    const forced = () => shrinking.events.filter(({ type }) => type === 'forced').length;
    await it.clock.advance(3_500);
    slow = true;
    await it.clock.advance(700);
    expect(await it.scale(200).end()).toMatchObject({ kind: 'scaled', from: 4, to: 200 });
    const before = forced();
    expect(before).toBeLessThan(100);
    await it.clock.advance(30_000);
    expect(forced()).toBe(before);
    expect(shrinking.state.outcome).toEqual({ kind: 'superseded', size: 200 });
    expect(leases.filter(({ signal }) => signal.aborted)).toHaveLength(before);
    for (const lease of leases) await lease.release();
  });

  it('leaves a tenure alone that began after the cluster had the id again', async () => {
    const it = await scaleScene({ nodes: 10 });
    const leases = await all(it, 10);
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let late = false;
    const shrinking = it.scale(4, {
      drainTimeoutMs: 4_000,
      intercept: async (call, apply) => {
        if (late && call.operation === 'read' && keyOf(call) === '9.json') await gate;
        return apply();
      },
    });
    await it.clock.advance(3_900);
    late = true;
    await it.clock.advance(300);
    await leases.find(({ id }) => id === 9)?.release();
    await it.scale(10).end();
    const fresh = await start(it, 77);
    expect(fresh.id).toBe(9);
    open();
    await it.clock.advance(DURATION + 1_000);
    expect(shrinking.state.outcome).toEqual({ kind: 'superseded', size: 10 });
    expect(fresh.isValid()).toBe(true);
    for (const lease of [...leases, fresh]) await lease.release();
  });

  it('does not count what another operator has taken away in between as its own', async () => {
    const it = await scaleScene({ nodes: 6 });
    it.hold(5);
    const session = new StoreSession(it.store, it.clock, 1_000);
    const intercept = beforeFirstWrite('5.json', () => evictHolder(session, 5));
    expect(await it.scale(4, { drainTimeoutMs: 0, intercept }).end()).toMatchObject({
      forced: [],
      retired: 2,
    });
    expect(it.read(5)).toMatchObject({ kind: 'retired', version: 2, durationMs: DURATION, generation: 1 });
  });

  it('does not count the tombstone of another shrinkage to the same size as its own', async () => {
    const it = await scaleScene({ nodes: 6 });
    it.hold(5);
    const theirs = {
      kind: 'retired',
      version: 2,
      timestamp: 5,
      durationMs: DURATION,
      stampedUntil: undefined,
      generation: 1,
    } as const;
    const intercept = beforeFirstWrite('5.json', () => it.put(5, theirs));
    expect(await it.scale(4, { drainTimeoutMs: 0, intercept }).end()).toMatchObject({
      forced: [],
      retired: 1,
    });
    expect(it.read(5)).toEqual(theirs);
  });

  it('continues despite other changes of the settings', async () => {
    const it = await scaleScene({ nodes: 6 });
    const held = it.hold(5);
    const shrinking = it.scale(4, { drainTimeoutMs: 10_000 });
    for (let renewal = 1; renewal <= 4; renewal += 1) {
      await it.clock.advance(3_000);
      if (shrinking.state.outcome !== undefined) break;
      it.change({ idFloor: renewal });
      it.hold(5, { ...held, renewal });
    }
    await it.clock.advance(1_000);
    expect(shrinking.state.outcome).toMatchObject({ forced: [{ id: 5 }] });
  });
});

describe('a retired id', () => {
  it('has the last generation, even if other calls grew and shrank to the same size meanwhile and then stopped', async () => {
    const it = await scaleScene({ nodes: 10 });
    it.hold(8);
    const shrinking = it.scale(4);
    await it.clock.advance(3_000);
    expect(it.read(5)).toMatchObject({ generation: 1 });
    it.change({ size: 10, generation: 2 });
    it.change({ size: 4, generation: 3 });
    await it.clock.advance(3_000);
    it.put(8, { kind: 'released', version: 1, timestamp: 1, durationMs: 0, stampedUntil: 0 });
    expect(await shrinking.end()).toMatchObject({ kind: 'scaled' });
    for (let id = 4; id < 10; id += 1) expect(it.read(id)).toMatchObject({ kind: 'retired', generation: 3 });
  });

  it('is not counted if its object is deleted during the wait for its holder: that is damage, and the wait ends', async () => {
    const it = await scaleScene({ nodes: 6 });
    it.hold(5);
    const shrinking = it.scale(4);
    await it.clock.advance(3_000);
    it.bucket.remove('5.json');
    expect(await shrinking.end()).toMatchObject({ kind: 'scaled', damaged: [{ id: 5 }] });
  });
});

describe('an id beyond the peak of the cluster', () => {
  it('is taken from its holder like other ids, and no task gets it before its deadline once the cluster has it', async () => {
    const it = await scaleScene({ nodes: 4 });
    it.hold(7);
    expect(await it.scale(4, { drainTimeoutMs: 1_000 }).end()).toMatchObject({
      forced: [{ id: 7 }],
      damaged: [],
    });
    expect(it.read(7)).toMatchObject({ kind: 'retired', version: 2, durationMs: DURATION });
    expect(await it.scale(8).end()).toMatchObject({ kind: 'scaled', created: 3, damaged: [] });
    const leases = await all(it, 7);
    const eighth = start(it, 50);
    let taken = false;
    void eighth.then(() => {
      taken = true;
    });
    await it.clock.advance(14_000);
    expect(taken).toBe(false);
    await it.clock.advance(20_000);
    expect(await eighth).toMatchObject({ id: 7, version: 3 });
    for (const lease of [...leases, await eighth]) await lease.release();
  });

  it('ends the wait for its holder when its object is deleted', async () => {
    const it = await scaleScene({ nodes: 4 });
    it.hold(7);
    const shrinking = it.scale(4);
    await it.clock.advance(3_000);
    it.bucket.remove('7.json');
    expect(await shrinking.end()).toMatchObject({ kind: 'scaled', damaged: [] });
  });
});
