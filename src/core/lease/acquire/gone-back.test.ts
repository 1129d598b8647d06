import { describe, expect, it } from 'vitest';
import { RewindableStore } from '../../../../test/support/stores/rewindable-store.js';
import { timeless } from '../../../../test/support/timeless-store.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { AcquireTimeoutError } from '../../base/errors.js';
import { observedAge } from '../../store/observed-age.js';
import { decodeCluster } from '../model/cluster-config.js';
import type { Lease, LeaseEvent } from '../model/lease.js';
import { initializeCluster } from '../operate/initialize.js';
import { scaleCluster } from '../operate/scale.js';
import { tuneCluster } from '../operate/tune.js';
import { readCluster } from '../session/cluster-store.js';
import { StoreSession } from '../session/store-session.js';
import { type AcquireLeaseOptions, acquireLease } from './acquire-lease.js';

const DURATION = 15_000;
const GRACE = 1_000;

/** A cluster on a store that can go back, with as many holders. */
async function scene(options: { nodes?: number; held?: number } = {}) {
  const { nodes = 3, held = 0 } = options;
  const clock = new VirtualClock();
  const store = new RewindableStore(clock);
  let tasks = 0;
  const start = (own: Partial<AcquireLeaseOptions> = {}) => {
    tasks += 1;
    const events: LeaseEvent[] = [];
    const lease = acquireLease({
      ...{ store, clock, random: seededRandom(tasks), taskId: `task-${tasks}`, nodes },
      ...{ durationMs: DURATION, graceMs: GRACE, onEvent: (event: LeaseEvent) => events.push(event), ...own },
    });
    lease.catch(() => undefined);
    return { lease, events };
  };
  const session = new StoreSession(store, clock, 1_000);
  const wanted = { nodes, durationMs: DURATION, graceMs: GRACE };
  await initializeCluster({ session, clock, random: seededRandom(99), wanted });
  const holders: Lease[] = [];
  for (let at = 0; at < held; at += 1) holders.push(await inVirtualTime(clock, start().lease));
  const config = async () => decodeCluster((await store.read('cluster.json'))?.body ?? '');
  return { clock, store, session, start, holders, config };
}

describe('a store that has gone back', () => {
  it('gives out no id before every holder that it forgot has stopped, and no version twice', async () => {
    const { clock, store, start } = await scene();
    const copy = store.save();
    const forgotten = await inVirtualTime(clock, start().lease);
    await inVirtualTime(clock, forgotten.release());
    const last = await inVirtualTime(clock, start().lease);
    expect([last.id, last.version]).toEqual([0, 2]);
    store.goBack(copy);
    const wentBack = clock.monotonic();
    const { lease, events } = start();
    await clock.advance(DURATION);
    expect(last.isValid()).toBe(false);
    expect(events).toContainEqual({
      type: 'waiting',
      sleepMs: expect.any(Number),
      why: expect.stringContaining('restarted, restored or replaced'),
    });
    const next = await inVirtualTime(clock, lease);
    expect(clock.monotonic() - wentBack).toBeGreaterThan(DURATION + GRACE);
    expect(next.version / 2 ** 20).toBeCloseTo(clock.now() / 1_000, 0);
    // Its unique ids begin after those that were lost, too.
    expect(next.tenureTime?.after).toBeGreaterThan(clock.now() - 1_000);
  });

  it('waits for the longest duration that there ever was (rule 15)', async () => {
    const { clock, store, start } = await scene({ nodes: 1 });
    const operator = { session: new StoreSession(store, clock, 1_000), clock, random: seededRandom(7) };
    for (const durationMs of [60_000, 5_000])
      await inVirtualTime(clock, tuneCluster({ ...operator, durationMs }));
    store.goBack(store.save());
    const wentBack = clock.monotonic();
    const { lease } = start();
    await clock.advance(5_000 + GRACE + 1_000);
    // One that reads the settings later waits as long as the one that has recorded the epoch.
    await inVirtualTime(clock, Promise.race([lease, start().lease]));
    expect(clock.monotonic() - wentBack).toBeGreaterThan(60_000 + GRACE);
  });

  it('keeps the lease of a holder whose object shows an earlier renewal', async () => {
    const { clock, store, start } = await scene({ nodes: 1 });
    const { lease, events } = start();
    const held = await inVirtualTime(clock, lease);
    await clock.advance(6_000);
    const copy = store.save();
    await clock.advance(10_000);
    store.goBack(copy);
    await clock.advance(60_000);
    expect(held.isValid()).toBe(true);
    expect(events.map(({ type }) => type)).not.toContain('lost');
    // The renewal after it is one as always.
    expect(events.filter(({ type }) => type === 'renewal-failed').length).toBeLessThan(2);
  });

  it('lets ids go from hand to hand in the new epoch as before', async () => {
    const { clock, store, start, config } = await scene({ nodes: 1 });
    store.goBack(store.save());
    const first = await inVirtualTime(clock, start().lease);
    await inVirtualTime(clock, first.release());
    const begun = clock.monotonic();
    const second = await inVirtualTime(clock, start().lease);
    expect(second.version).toBe(first.version + 1);
    expect(clock.monotonic() - begun).toBeLessThan(1_000);
    expect((await config()).epoch).toEqual({
      store: 'epoch 2',
      mark: expect.stringMatching(/^[\da-f]{16}$/),
      settling: undefined,
    });
  });

  it('passes versions that were lost in three epochs one after the other', async () => {
    const { clock, store, start } = await scene({ nodes: 1 });
    const versions = [];
    const copy = store.save();
    for (let time = 0; time < 3; time += 1) {
      store.goBack(copy);
      const lease = await inVirtualTime(clock, start().lease);
      versions.push(lease.version);
      const again = store.save();
      await inVirtualTime(clock, lease.release());
      const next = await inVirtualTime(clock, start().lease);
      versions.push(next.version);
      store.goBack(again);
    }
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    expect(new Set(versions).size).toBe(6);
  });

  it('makes lease objects again that it has lost', async () => {
    const { clock, store, start, config } = await scene({ nodes: 2, held: 1 });
    const copy = new Map(store.save());
    copy.delete('1.json');
    store.goBack(copy);
    const lease = await inVirtualTime(clock, start().lease);
    expect(lease.id).toBe(1);
    expect(lease.version / 2 ** 20).toBeCloseTo(clock.now() / 1_000, 0);
    await clock.advance(5_000);
    expect(await config()).toMatchObject({ bootstrapped: true });
  });

  it.each(['a task', 'init', 'scale'])(
    'makes those of ids that the cluster has given up again as well, by %s: it may get them back',
    async (by) => {
      const { clock, store, session, start, config } = await scene({ nodes: 3 });
      const operator = { session, clock, random: seededRandom(98) };
      const scale = (size: number) => inVirtualTime(clock, scaleCluster({ ...operator, size }));
      await scale(2);
      const copy = new Map(store.save());
      copy.delete('2.json');
      store.goBack(copy);
      const { id } = await inVirtualTime(clock, start().lease);
      expect(id).toBe(0);
      if (by === 'init') await initializeCluster({ ...operator, wanted: {} });
      if (by === 'scale') await scale(1);
      if (by === 'a task') await clock.advance(5_000);
      expect(await config()).toMatchObject({ bootstrapped: true, peak: 3 });
      expect(await scale(3)).toMatchObject({ damaged: [] });
      for (const next of [1, 2]) expect((await inVirtualTime(clock, start().lease)).id).toBe(next);
      expect(JSON.parse((await store.read('2.json'))?.body ?? '').version / 2 ** 20).toBeCloseTo(
        clock.now() / 1_000,
        0,
      );
    },
  );

  it('ends a task that waits, where the settings are lost as well, and is not flooded by it', async () => {
    const { clock, store, start } = await scene({ nodes: 1, held: 1 });
    const flooded = new AbortController();
    const { lease } = start({ signal: flooded.signal });
    await clock.advance(2_000);
    let writes = 0;
    store.before = (operation) => {
      if (operation === 'write') writes += 1;
      if (writes > 20) flooded.abort(new Error('flooded'));
    };
    store.goBack(new Map());
    await expect(inVirtualTime(clock, lease)).rejects.toMatchObject({ code: 'CLUSTER_MISSING' });
  });

  it('is recorded by a task that does not wait, so that a later one need not', async () => {
    const { clock, store, session, start } = await scene();
    await clock.advance(1_000);
    store.goBack(store.save());
    const hasty = start({ acquireTimeoutMs: 0 });
    await expect(hasty.lease).rejects.toThrow(AcquireTimeoutError);
    await expect(hasty.lease).rejects.toThrow(
      'nothing is given out for a duration and a grace: 16001 ms from now',
    );
    const isSettling = async () => (await readCluster(session))?.config.epoch?.settling;
    expect(await isSettling()).toBe(true);
    await clock.advance(DURATION + GRACE + 1);
    expect(await isSettling()).toBe(false);
    const lease = await inVirtualTime(clock, start({ acquireTimeoutMs: 0 }).lease);
    expect(lease.id).toBe(0);
  });

  it('is waited for by a task that does not wait, where only it knows how long', async () => {
    const { clock, store, start } = await scene();
    store.goBack(store.save());
    const lease = start({ acquireTimeoutMs: 0, store: observedAge(timeless(store), clock) }).lease;
    await clock.advance(DURATION + GRACE);
    expect((await inVirtualTime(clock, lease)).id).toBe(0);
  });

  it('is not taken for one that ignores conditions, if what it must refuse is applied because it went back', async () => {
    const { clock, store, start } = await scene({ nodes: 1 });
    const copy = store.save();
    let writes = 0;
    Object.assign(store, { remote: true });
    store.before = (operation, key) => {
      if (operation === 'write' && key === '0.json' && ++writes === 2) store.goBack(copy);
    };
    const lease = await inVirtualTime(clock, start().lease);
    expect(writes).toBeGreaterThan(2);
    expect(lease.version).toBeGreaterThan(2 ** 20);
  });

  it.each(['before', 'after'])('is noticed right %s the acquiring write is applied', async (when) => {
    const { clock, store, start } = await scene({ nodes: 1 });
    const copy = store.save();
    let taken = false;
    store.before = (operation, key) => {
      if (when === 'before' && operation === 'write' && key === '0.json' && !taken) {
        taken = true;
        store.goBack(copy);
      }
      if (when === 'after' && operation === 'epoch' && store.save().get('0.json')?.body !== '' && !taken) {
        taken = true;
        store.goBack(store.save());
      }
    };
    const begun = clock.monotonic();
    const lease = await inVirtualTime(clock, start().lease);
    expect(taken).toBe(true);
    expect(clock.monotonic() - begun).toBeGreaterThan(DURATION + GRACE);
    expect(lease.version).toBeGreaterThan(2 ** 20);
  });
});
