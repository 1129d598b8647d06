import { describe, expect, it } from 'vitest';
import { died, keyOf, scaleScene, writes } from '../../../../test/support/scale-scene.js';
import { seededRandom } from '../../../../test/support/virtual-clock.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import { StoreSession } from '../session/store-session.js';
import { scaleCluster } from './scale.js';

type Scene = Awaited<ReturnType<typeof scaleScene>>;
const start = ({ store, clock }: Scene, seed: number) =>
  acquireLease({ store: store.connect(), clock, random: seededRandom(seed), taskId: `task-${seed}` });

describe('a growth after a shrinkage', () => {
  it('writes only the settings if it gets its earlier ids back', async () => {
    const it = await scaleScene({ nodes: 10 });
    await it.scale(4).end();
    const written: string[] = [];
    const growth = it.scale(10, {
      intercept: async (call, apply) => {
        if (writes(call)) written.push(keyOf(call));
        return apply();
      },
    });
    await growth.end();
    expect(written).toEqual(['cluster.json']);
  });

  it('reports damage only of the ids that it gets', async () => {
    const it = await scaleScene({ nodes: 10 });
    await it.scale(4).end();
    it.bucket.remove('9.json');
    expect(await it.scale(8).end()).toMatchObject({ damaged: [] });
  });

  it('does not raise the timestamps of new node ids because of ids that no task ever held', async () => {
    const it = await scaleScene({ nodes: 10 });
    await it.scale(4).end();
    await it.scale(300).end();
    expect(it.cluster()).toMatchObject({ size: 300, idFloor: 0 });
  });

  it('gives successors the last id timestamp from before the retirement', async () => {
    const it = await scaleScene({ nodes: 3 });
    const [left, forced] = [it.clock.now() + 40_000, it.clock.now() + 90_000];
    it.put(1, { kind: 'released', version: 7, timestamp: left + 10_000, durationMs: 0, stampedUntil: left });
    it.hold(2, { version: 4, timestamp: forced + 1 });
    await it.scale(1, { drainTimeoutMs: 0 }).end();
    await it.scale(3).end();
    await it.clock.advance(20_000);
    const leases = [await start(it, 1), await start(it, 2), await start(it, 3)];
    const after = Object.fromEntries(
      leases.map(({ id, version, tenureTime }) => [id, [version, tenureTime?.after]]),
    );
    expect(after).toMatchObject({ 1: [8, left], 2: [6, forced] });
    for (const lease of leases) await lease.release();
  });

  it.each([
    ['unreadable', 'garbage'],
    ['absent', undefined],
  ])('does not widen ids while the object of a retired id is %s', async (_what, body) => {
    const it = await scaleScene({ nodes: 200 });
    await it.scale(4).end();
    const etag = it.bucket.read('100.json')?.etag ?? '';
    if (body === undefined) it.bucket.remove('100.json');
    else it.bucket.replace('100.json', body, {}, etag);
    await expect(it.scale(300).end()).rejects.toThrow(/100\.json is damaged/);
    expect(it.cluster()).toMatchObject({ size: 4 });
  });

  it('does not write tombstones that are newer than the settings that it has read', async () => {
    const it = await scaleScene({ nodes: 10 });
    it.put(5, { kind: 'released', version: 7, timestamp: 77, durationMs: 0, stampedUntil: 70 });
    await it.scale(4).end();
    let overtaken = false;
    const growth = it.scale(10, {
      intercept: async (call, apply) => {
        if (!overtaken && call.operation === 'read' && keyOf(call) === '5.json') {
          overtaken = true;
          const session = new StoreSession(it.store, it.clock, 1_000);
          for (const size of [10, 4])
            await scaleCluster({ session, clock: it.clock, random: seededRandom(3), size });
        }
        if (overtaken && writes(call) && keyOf(call) === 'cluster.json') throw died;
        return apply();
      },
    });
    await expect(growth.end()).rejects.toBe(died);
    expect(it.read(5)).toMatchObject({ kind: 'retired', version: 7, generation: 3 });
  });
});
