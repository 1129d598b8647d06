import { describe, expect, it } from 'vitest';
import { DURATION, GRACE, keyOf, scaleScene, writes } from '../../../../test/support/scale-scene.js';
import { seededRandom } from '../../../../test/support/virtual-clock.js';
import { StoreError } from '../../store/lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import type { RetiredLease } from '../model/lease-state.js';
import { StoreSession } from '../session/store-session.js';
import { initializeCluster, repairCluster } from './initialize.js';
import { inspectCluster } from './inspect.js';
import { scaleCluster } from './scale.js';

type Scene = Awaited<ReturnType<typeof scaleScene>>;
const sessionOf = ({ store, clock }: Scene) => new StoreSession(store, clock, 1_000);
const kinds = async (it: Scene) => (await inspectCluster(sessionOf(it)))?.nodes.map(({ state }) => state);
/** A cluster of ten that has shrunk to four, and was set to ten again by a program without generations. */
async function retiredWithin() {
  const it = await scaleScene({ nodes: 10 });
  it.put(5, { kind: 'released', version: 7, timestamp: 77, durationMs: 0, stampedUntil: 70 });
  await it.scale(4).end();
  it.change({ size: 10 });
  return it;
}
const tombstone = (generation: number, durationMs = 0): RetiredLease => ({
  ...{ kind: 'retired', version: 3, timestamp: 9, durationMs, stampedUntil: undefined, generation },
});

describe('scaling a cluster to the size that it has', () => {
  it('makes ids acquirable that lost settings had retired, and keeps the versions', async () => {
    const it = await retiredWithin();
    expect((await kinds(it))?.filter((kind) => kind === 'retired')).toHaveLength(6);
    expect(await it.scale(10).end()).toMatchObject({
      kind: 'scaled',
      from: 10,
      to: 10,
      reopened: 6,
      retired: 0,
      created: 0,
    });
    expect(await kinds(it)).toEqual([...Array(5).fill('vacant'), 'released', ...Array(4).fill('vacant')]);
    expect(it.read(5)).toEqual({
      kind: 'released',
      version: 7,
      timestamp: 77,
      durationMs: 0,
      stampedUntil: 70,
    });
    expect(await it.scale(10).end()).toMatchObject({ reopened: 0 });
  });

  it('repairs a cluster whose lost settings were created again, as the advice says', async () => {
    const it = await scaleScene({ nodes: 10 });
    it.put(5, { kind: 'released', version: 7, timestamp: 77, durationMs: 0, stampedUntil: 70 });
    await it.scale(4).end();
    await it.scale(10).end();
    it.bucket.remove('cluster.json');
    const wanted = { nodes: 10, durationMs: DURATION, graceMs: GRACE };
    await initializeCluster({ session: sessionOf(it), clock: it.clock, random: seededRandom(9), wanted });
    await repairCluster({ session: sessionOf(it), clock: it.clock, aboveVersion: 100 });
    expect(await it.scale(10).end()).toMatchObject({ reopened: 6 });
    const leases = await Promise.all(
      Array.from({ length: 10 }, (_, seed) =>
        acquireLease({
          store: it.store.connect(),
          clock: it.clock,
          random: seededRandom(seed),
          taskId: `task-${seed}`,
        }),
      ),
    );
    expect(leases.find(({ id }) => id === 5)?.version).toBe(8);
    for (const lease of leases) await lease.release();
  });

  it('keeps an id that was taken by force from being acquired for as long as its holder may trust its lease', async () => {
    const it = await scaleScene({ nodes: 2 });
    it.put(1, tombstone(3, DURATION));
    await it.scale(2).end();
    expect(it.read(1)).toEqual({
      kind: 'released',
      version: 3,
      timestamp: 9,
      durationMs: DURATION,
      stampedUntil: undefined,
    });
  });

  it('leaves ids that may be acquired already', async () => {
    const it = await scaleScene({ nodes: 4 });
    it.change({ generation: 2 });
    it.put(2, tombstone(1));
    const before = it.bucket.read('2.json')?.etag;
    expect(await it.scale(4).end()).toMatchObject({ reopened: 0 });
    expect(it.bucket.read('2.json')?.etag).toBe(before);
    expect(await kinds(it)).toEqual(['vacant', 'vacant', 'released', 'vacant']);
  });

  it('leaves ids that another task retires meanwhile by newer settings', async () => {
    const it = await scaleScene({ nodes: 10 });
    it.put(5, tombstone(0));
    let overtaken = false;
    const same = it.scale(10, {
      intercept: async (call, apply) => {
        if (!overtaken && call.operation === 'read' && keyOf(call) === '5.json') {
          overtaken = true;
          await scaleCluster({ session: sessionOf(it), clock: it.clock, random: seededRandom(3), size: 4 });
        }
        return apply();
      },
    });
    expect(await same.end()).toEqual({ kind: 'superseded', size: 4 });
    expect(it.read(5)).toMatchObject({ kind: 'retired', generation: 1 });
  });

  it('counts each id once, even if the outcome of its write is unknown', async () => {
    const it = await retiredWithin();
    const unanswered = new Set<string>();
    const same = it.scale(10, {
      intercept: async (call, apply) => {
        if (!writes(call) || unanswered.has(keyOf(call))) return apply();
        unanswered.add(keyOf(call));
        if (unanswered.size % 2 === 0) apply();
        throw new StoreError('no answer', { fault: 'unavailable', outcome: 'unknown' });
      },
    });
    expect(await same.end()).toMatchObject({ reopened: 6 });
    expect(unanswered.size).toBe(6);
    expect(await kinds(it)).not.toContain('retired');
  });
});
