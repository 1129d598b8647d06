import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import type { Lease, LeaseEvent } from '../../core/lease/model/lease.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { inspectCluster } from '../../core/lease/operate/inspect.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { awaitReadiness, type Readiness, type ReadinessEvent } from './readiness.js';

type ReadinessOptions = Parameters<typeof awaitReadiness>[0];

const DURATION = 15_000;

type Acquired = Extract<LeaseEvent, { type: 'acquired' }>;

/** A cluster in which tasks come and die. */
function cluster(nodes: number) {
  const clock = new VirtualClock();
  const direct = new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1));
  const watched: { down: boolean; requests: number } = { down: false, requests: 0 };
  const store = direct.connect(async (_, apply) => {
    watched.requests += 1;
    if (watched.down) throw new StoreError('the store is down', { fault: 'unreachable', outcome: 'unknown' });
    return apply();
  });
  const session = new StoreSession(store, clock, 1_000);

  /** Starts a task, which waits for an id if need be; `die()` cuts it off from the store. */
  const start = async (taskId: string) => {
    let alive = true;
    const acquired: Acquired[] = [];
    const own = direct.connect((_, apply) =>
      alive ? Promise.resolve(apply()) : new Promise(() => undefined),
    );
    const lease = acquireLease({
      clock,
      random: seededRandom(taskId.length),
      taskId,
      nodes,
      durationMs: DURATION,
      graceMs: 1_000,
      store: own,
      onEvent: (event) => {
        if (event.type === 'acquired') acquired.push(event);
      },
    });
    for (let waitedMs = 0; acquired.length === 0 && waitedMs < 3 * DURATION; waitedMs += 100)
      await clock.advance(100);
    const die = () => {
      alive = false;
    };
    const origin: ReadinessOptions['origin'] = acquired[0]?.from ?? 'static';
    return { lease: await lease, origin, die };
  };

  /** Begins to wait for a task's readiness. */
  const ready = (
    task: { readonly lease: Lease; readonly origin: ReadinessOptions['origin'] },
    options: Partial<ReadinessOptions> = {},
  ) => {
    const events: ReadinessEvent[] = [];
    const seen: { readiness?: Readiness } = {};
    const { lease, origin } = task;
    const leases = () => inspectCluster(session);
    const onEvent = (event: ReadinessEvent) => events.push(event);
    const done = awaitReadiness({
      lease,
      origin,
      leases,
      clock,
      random: seededRandom(7),
      timeoutMs: 60_000,
      onEvent,
      ...options,
    });
    done.then(
      (readiness) => {
        seen.readiness = readiness;
      },
      () => undefined,
    );
    return { events, seen, done };
  };
  return { clock, direct, session, watched, start, ready };
}

/** Node 0 was taken over from a task that died; the tasks of nodes 1 and up live, and know of no other. */
async function takenOver(others = 2) {
  const it = cluster(others + 1);
  const predecessor = await it.start('dead');
  const alive = [];
  for (let i = 1; i <= others; i += 1) alive.push((await it.start(`alive-${i}`)).lease);
  predecessor.die();
  const successor = await it.start('successor');
  expect(successor).toMatchObject({ origin: 'expired', lease: { id: 0, version: 2 } });
  return { ...it, successor, alive };
}

describe('a node that took over a lease which was not released', () => {
  it('is ready once every live node has published that it knows the new version', async () => {
    const { clock, successor, alive, ready } = await takenOver();
    const { seen, events } = ready(successor);
    await clock.advance(10_000);
    alive[0]?.setKnownNodes({ 0: 2, 1: 1 });
    await clock.advance(12_000);
    expect(seen.readiness).toBeUndefined();
    alive[1]?.setKnownNodes({ 0: 2 });
    await clock.advance(12_000);
    expect(seen.readiness).toMatchObject({ ready: true, why: 'known', ignorant: [] });
    expect(events).toEqual([
      { type: 'waiting', ignorant: [1, 2] },
      { type: 'waiting', ignorant: [2] },
    ]);
  });

  it('is not content with nodes that know its predecessor only', async () => {
    const { clock, successor, alive, ready } = await takenOver(1);
    alive[0]?.setKnownNodes({ 0: 1 });
    const { seen } = ready(successor);
    await clock.advance(20_000);
    expect(seen.readiness).toBeUndefined();
  });

  it('is content with nodes that know a successor of it already', async () => {
    const { clock, successor, alive, ready } = await takenOver(1);
    alive[0]?.setKnownNodes({ 0: 3 });
    await clock.advance(6_000);
    const { seen } = ready(successor);
    await settled();
    expect(seen.readiness).toMatchObject({ ready: true, why: 'known' });
  });

  it('is ready after the time-out, and reports which nodes did not know', async () => {
    const { clock, successor, alive, ready } = await takenOver(3);
    alive[1]?.setKnownNodes({ 0: 2 });
    const { seen } = ready(successor);
    await clock.advance(59_999);
    expect(seen.readiness).toBeUndefined();
    await clock.advance(1);
    expect(seen.readiness).toEqual({ ready: true, why: 'timeout', ignorant: [1, 3], tookMs: 60_000 });
  });

  it('does not wait for nodes that are vacant, released or expired', async () => {
    const { clock, successor, alive, ready, start } = await takenOver(2);
    await alive[0]?.release();
    const { seen } = ready(successor);
    await clock.advance(6_000);
    expect(seen.readiness).toBeUndefined();
    await alive[1]?.release();
    const heir = await start('heir');
    heir.die();
    await clock.advance(DURATION);
    expect(seen.readiness).toBeUndefined();
    await clock.advance(DURATION / 2);
    expect(seen.readiness).toMatchObject({ ready: true, why: 'known' });
  });

  it('does not wait for a node that an operator has evicted', async () => {
    const { clock, session, successor, ready } = await takenOver(1);
    const { seen } = ready(successor);
    await settled();
    expect(seen.readiness).toBeUndefined();
    await evictHolder(session, 1);
    await clock.advance(7_000);
    expect(seen.readiness).toMatchObject({ ready: true, why: 'known' });
  });

  it('is ready at once if no other node lives', async () => {
    const { clock, successor, ready } = await takenOver(0);
    const { sleepers } = clock;
    expect(await ready(successor).done).toEqual({ ready: true, why: 'known', ignorant: [], tookMs: 0 });
    await settled();
    // The time-out is not waited for any more.
    expect(clock.sleepers).toBe(sleepers);
  });

  it('reads the leases about three times in their duration, and no more', async () => {
    const { clock, successor, watched, ready } = await takenOver(2);
    ready(successor);
    await settled();
    watched.requests = 0;
    await clock.advance(45_000);
    // Four objects a look: the settings and three leases.
    expect(watched.requests / 4).toBeGreaterThanOrEqual(7);
    expect(watched.requests / 4).toBeLessThanOrEqual(12);
  });

  it('reads less often the more leases there are, at most 200 a second', async () => {
    const { clock, session, successor, ready } = await takenOver(1);
    const size = 10_000;
    let looks = 0;
    const { done } = ready(successor, {
      timeoutMs: 200_000,
      leases: async () => {
        const status = await inspectCluster(session);
        looks += 1;
        return status && { ...status, cluster: { ...status.cluster, size } };
      },
    });
    await clock.advance(200_000);
    await done;
    expect(looks).toBeGreaterThan(3);
    expect((looks - 1) * size).toBeLessThan(200 * 200 * 1.35);
  });

  it('survives a store that fails, and reads again', async () => {
    const { clock, successor, alive, watched, ready } = await takenOver(1);
    watched.down = true;
    const { seen, events } = ready(successor);
    alive[0]?.setKnownNodes({ 0: 2 });
    await clock.advance(20_000);
    expect(seen.readiness).toBeUndefined();
    expect(events).not.toEqual([]);
    expect(events.every(({ type }) => type === 'inspection-failed')).toBe(true);
    watched.down = false;
    await clock.advance(2_000);
    expect(seen.readiness).toMatchObject({ ready: true, why: 'known' });
  });

  it('says after the time-out that the leases never could be read', async () => {
    const { clock, successor, watched, ready } = await takenOver(1);
    watched.down = true;
    const { seen } = ready(successor);
    await clock.advance(60_000);
    expect(seen.readiness).toEqual({ ready: true, why: 'timeout', ignorant: undefined, tookMs: 60_000 });
  });

  it('is ready after the time-out even while a read of the leases hangs', async () => {
    const { clock, successor, ready } = await takenOver(1);
    const { seen } = ready(successor, { leases: () => new Promise(() => undefined), timeoutMs: 5_000 });
    await clock.advance(5_000);
    expect(seen.readiness).toMatchObject({ ready: true, why: 'timeout', tookMs: 5_000 });
  });

  it('is not ready any more once the lease is lost in the middle of the wait', async () => {
    const { clock, successor, ready } = await takenOver(1);
    const { seen } = ready(successor);
    await clock.advance(1_000);
    successor.die();
    while (!successor.lease.signal.aborted) await clock.advance(10);
    await settled();
    expect(seen.readiness).toMatchObject({ ready: false, why: 'lost' });
  });

  it('does not become ready after a release', async () => {
    const { clock, successor, ready } = await takenOver(1);
    const { seen } = ready(successor);
    await settled();
    await successor.lease.release();
    await clock.advance(7_000);
    expect(seen.readiness).toMatchObject({ ready: false, why: 'lost' });
  });

  it('gives up at once when its signal aborts, and leaves neither listener nor timer', async () => {
    const { clock, successor, ready } = await takenOver(1);
    const giveUp = new AbortController();
    await clock.advance(1);
    const sleepers = clock.sleepers;
    const listeners = getEventListeners(successor.lease.signal, 'abort').length;
    const { seen } = ready(successor, { signal: giveUp.signal });
    await settled();
    expect(clock.sleepers).toBeGreaterThan(sleepers);
    giveUp.abort();
    await settled();
    expect(seen.readiness).toEqual({ ready: false, why: 'aborted', tookMs: 0 });
    expect(clock.sleepers).toBe(sleepers);
    expect(getEventListeners(successor.lease.signal, 'abort')).toHaveLength(listeners);
    expect(getEventListeners(giveUp.signal, 'abort')).toHaveLength(0);
  });

  it('reports an error in the reader of the leases instead of waiting for it', async () => {
    const { successor, ready } = await takenOver(1);
    const { done } = ready(successor, { leases: () => Promise.reject(new TypeError('a mistake')) });
    await expect(done).rejects.toThrow('a mistake');
  });
});

describe('a node without a predecessor to wait for', () => {
  it('is ready at once on an id that no task ever held, without a read of the leases', async () => {
    const { start, ready, watched } = cluster(2);
    const first = await start('first');
    watched.requests = 0;
    expect(await ready(first).done).toEqual({ ready: true, why: 'vacant', ignorant: [], tookMs: 0 });
    expect(watched.requests).toBe(0);
  });

  it('is ready at once after a release, although others live that do not know it', async () => {
    const { start, ready } = cluster(2);
    const first = await start('first');
    await start('other');
    await first.lease.release();
    const second = await start('second');
    expect(second.lease).toMatchObject({ id: 0, version: 2 });
    expect(await ready(second).done).toMatchObject({ ready: true, why: 'released' });
  });

  it('is ready at once if there are no leases to read', async () => {
    const { successor, ready } = await takenOver(1);
    expect(await ready(successor, { leases: undefined }).done).toMatchObject({ ready: true, why: 'known' });
    expect(await ready(successor, { origin: 'static' }).done).toMatchObject({ ready: true, why: 'static' });
  });

  it('is not ready if the lease is lost already', async () => {
    const { clock, start, ready } = cluster(1);
    const task = await start('first');
    task.die();
    await clock.advance(DURATION);
    expect(await ready(task).done).toEqual({ ready: false, why: 'lost', tookMs: 0 });
  });
});
