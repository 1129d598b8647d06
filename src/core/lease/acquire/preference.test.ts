import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { encodeCluster, newCluster } from '../model/cluster-config.js';
import type { Lease, LeaseEvent } from '../model/lease.js';
import { nativeCodec } from '../model/lease-codec.js';
import { type LeaseState, leaseKey } from '../model/lease-state.js';
import { stickyMark } from '../model/sticky.js';
import { evictHolder } from '../operate/evict.js';
import { StoreSession } from '../session/store-session.js';
import { type AcquireLeaseOptions, acquireLease } from './acquire-lease.js';

/** A task, and what it has asked the store for. */
interface Started {
  readonly lease: Promise<Lease>;
  readonly events: LeaseEvent[];
  readonly requests: string[];
  /** No request of it arrives any more, as after a kill. */
  kill(): void;
}

/** Everything that a store takes, in milliseconds. */
const REQUEST_MS = 20;

/** A cluster of `size` ids in virtual time. */
function cluster(size: number, state: (id: number) => LeaseState = () => ({ kind: 'vacant' })) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  bucket.create('cluster.json', encodeCluster({ ...newCluster({ nodes: size }), bootstrapped: true }), {});
  for (let id = 0; id < size; id += 1) {
    const { body, metadata } = nativeCodec.encode(state(id));
    bucket.create(leaseKey(id), body, metadata);
  }
  let tasks = 0;
  const start = (options: Partial<AcquireLeaseOptions> = {}): Started => {
    tasks += 1;
    const requests: string[] = [];
    const events: LeaseEvent[] = [];
    let isKilled = false;
    const store = new MemoryLeaseStore(
      {
        clock,
        intercept: async (call, apply) => {
          requests.push(call.operation);
          await clock.sleep(REQUEST_MS / 2 + (tasks % 7));
          if (isKilled) throw new StoreError('gone', { fault: 'unreachable', outcome: 'not-applied' });
          const reply = apply();
          await clock.sleep(REQUEST_MS / 2);
          return reply;
        },
      },
      bucket,
    );
    const lease = acquireLease({
      ...{ store, clock, random: seededRandom(tasks), taskId: `task-${tasks}` },
      onEvent: (event) => events.push(event),
      ...options,
    });
    lease.catch(() => undefined);
    return {
      lease,
      events,
      requests,
      kill: () => {
        isKilled = true;
      },
    };
  };
  const settled = async (started: Started, ms = 1_000): Promise<Lease> => {
    await clock.advance(ms);
    return started.lease;
  };
  const release = async (lease: Lease) => {
    const released = lease.release();
    await clock.advance(100);
    await released;
  };
  const stateOf = (id: number) => {
    const object = bucket.read(leaseKey(id));
    return object && nativeCodec.decode(object.body, object.metadata);
  };
  const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
  return { clock, start, settled, release, stateOf, session };
}

const released = (key: string | undefined): LeaseState => ({
  ...{ kind: 'released', version: 3, timestamp: 1, durationMs: 0, stampedUntil: 0 },
  sticky: key === undefined ? undefined : stickyMark(key),
});

describe('a task with a sticky key', () => {
  it.each(['one after the other', 'all at once'])('gets its former id again, %s', async (how) => {
    const { clock, start, settled, release } = cluster(40);
    const keys = Array.from({ length: 20 }, (_, key) => `volume-${key}`);
    const first = new Map<string, number>();
    const leases: Lease[] = [];
    for (const sticky of keys) {
      const lease = await settled(start({ sticky }));
      expect(lease.previous).toBe('none');
      first.set(sticky, lease.id);
      leases.push(lease);
    }
    for (const lease of leases) await release(lease);
    const again = [...keys].reverse().map((sticky) => ({ sticky, ...start({ sticky }) }));
    if (how === 'all at once') await clock.advance(2_000);
    for (const { sticky, ...started } of again) {
      const lease = await settled(started);
      expect([lease.id, lease.version, lease.previous]).toEqual([first.get(sticky), 2, 'same']);
    }
  });

  it('shares its key with another one, and each of them has an id', async () => {
    const { start, settled } = cluster(2);
    const ids = [await settled(start({ sticky: 'twin' })), await settled(start({ sticky: 'twin' }))];
    expect(ids.map(({ id }) => id).sort()).toEqual([0, 1]);
  });

  it('prefers ids without a key to those of others, and of those the one that is free for longest', async () => {
    const { start, settled } = cluster(4, (id) => (id === 3 ? released(undefined) : released(`other-${id}`)));
    const lease = await settled(start({ sticky: 'new' }));
    expect([lease.id, lease.previous]).toEqual([3, 'other']);
    const { clock, ...later } = cluster(3);
    for (const sticky of ['a', 'b', 'c']) {
      const held = await later.settled(
        later.start({ sticky, preferId: 2 - ['a', 'b', 'c'].indexOf(sticky) }),
      );
      await later.release(held);
      await clock.advance(1_000);
    }
    expect((await later.settled(later.start({ sticky: 'new' }))).id).toBe(2);
  });

  it('gets the one that it held last, of several', async () => {
    const { clock, start, settled, release } = cluster(5);
    for (const preferId of [1, 4, 2]) {
      await release(await settled(start({ sticky: 'mine', preferId })));
      await clock.advance(1_000);
    }
    const again = await settled(start({ sticky: 'mine', stickyWaitMs: 30_000 }));
    expect([again.id, again.previous]).toEqual([2, 'same']);
  });

  it('gets the preferred id before all others where it is free', async () => {
    const { start, settled } = cluster(9, (id) => released(id === 1 ? 'mine' : undefined));
    expect((await settled(start({ sticky: 'mine', preferId: 6 }))).id).toBe(6);
    expect((await settled(start({ sticky: 'mine', preferId: 6 }))).id).toBe(1);
    expect((await settled(start({ preferId: 8 }))).id).toBe(8);
  });

  it('is forgotten by a tenure without a key', async () => {
    const { start, settled, release, stateOf } = cluster(1);
    await release(await settled(start({ sticky: 'mine' })));
    expect(stateOf(0)).toMatchObject({ kind: 'released', sticky: stickyMark('mine') });
    await release(await settled(start()));
    expect((await settled(start({ sticky: 'mine' }))).previous).toBe('other');
  });

  it('is known through renewals, and after an eviction', async () => {
    const { clock, start, settled, stateOf, session } = cluster(1);
    const started = start({ sticky: 'mine' });
    await settled(started);
    await clock.advance(20_000);
    expect(stateOf(0)).toMatchObject({ kind: 'held', renewal: 4, sticky: stickyMark('mine') });
    started.kill();
    const evicted = evictHolder(session, 0);
    await clock.advance(100);
    expect(await evicted).toMatchObject({ kind: 'evicted', version: 2 });
    const heir = await settled(start({ sticky: 'mine' }), 20_000);
    expect([heir.version, heir.previous]).toEqual([3, 'same']);
  });
});

describe('a task that was killed', () => {
  it('gets its id again with a sticky wait, and another one without', async () => {
    for (const stickyWaitMs of [0, 30_000]) {
      const { clock, start, settled } = cluster(3);
      const killed = start({ sticky: 'mine', preferId: 1 });
      expect((await settled(killed)).id).toBe(1);
      await clock.advance(7_000);
      killed.kill();
      const again = start({ sticky: 'mine', stickyWaitMs });
      const lease = await settled(again, 25_000);
      if (stickyWaitMs === 0) expect(again.requests.slice(0, 4)).toEqual(['list', 'read', 'read', 'replace']);
      if (stickyWaitMs === 0) expect(lease).toMatchObject({ id: 0, previous: 'none' });
      else expect(lease).toMatchObject({ id: 1, version: 2, previous: 'same' });
      const waits = again.events.filter((event) => event.type === 'waiting');
      expect(waits.every(({ sleepMs }) => sleepMs > 0 && sleepMs <= 7_500)).toBe(true);
      const why = stickyWaitMs === 0 ? [] : ['its former node id 1 is not free yet'];
      expect([...new Set(waits.map((event) => event.why))]).toEqual(why);
    }
  });

  it.each([
    ['is not waited for when it is alive: less than a duration', 30_000, 10_000],
    ['is not waited for any longer than the sticky wait', 3_000, 4_000],
  ])('%s', async (_, stickyWaitMs, mostMs) => {
    const { clock, start, settled } = cluster(3);
    const twin = start({ sticky: 'mine' });
    await settled(twin);
    if (stickyWaitMs < 5_000) twin.kill();
    const begun = clock.monotonic();
    const lease = await settled(start({ sticky: 'mine', stickyWaitMs }), mostMs);
    expect(lease.id).toBe(1);
    expect(clock.monotonic() - begun).toBeLessThanOrEqual(mostMs);
  });

  it('is not waited for where the task has held another id since, which is free', async () => {
    const { clock, start, settled, release } = cluster(3);
    const killed = start({ sticky: 'mine', preferId: 2 });
    await settled(killed);
    killed.kill();
    await clock.advance(3_000);
    await release(await settled(start({ sticky: 'mine', preferId: 1 })));
    const again = start({ sticky: 'mine', stickyWaitMs: 30_000 });
    expect(await settled(again)).toMatchObject({ id: 1, version: 2, previous: 'same' });
    expect(again.events.map(({ type }) => type)).not.toContain('waiting');
  });

  it.each([
    ['another key', 'mine'],
    ['no key', undefined],
  ])('is not waited for by a task with %s', async (_, sticky) => {
    const { start, settled } = cluster(3);
    await settled(start({ sticky: sticky && 'other' }));
    const { events, ...started } = start({ sticky, stickyWaitMs: 30_000 });
    expect((await settled({ events, ...started })).id).toBe(1);
    expect(events.map(({ type }) => type)).not.toContain('waiting');
  });
});

describe('a preference costs', () => {
  const storm = async (count: number, sticky: (task: number) => string | undefined) => {
    const { clock, start } = cluster(count, (id) => released(`key-${id}`));
    const started = Array.from({ length: count }, (_, task) => start({ sticky: sticky(task) }));
    await clock.advance(9_000);
    const ids = await Promise.all(started.map(async ({ lease }) => (await lease).id));
    expect(new Set(ids).size).toBe(count);
    return started.reduce((sum, { requests }) => sum + requests.length, 0) / count;
  };

  // A thousand: `npm run bench:storm`.
  it('at most a fifth more requests in a storm', async () => {
    const without = await storm(150, () => undefined);
    expect(await storm(150, (task) => `key-${task}`)).toBeLessThan(1.2 * without);
  });

  it('at most 64 reads', async () => {
    const { start, settled } = cluster(64, (id) => released(`key-${id}`));
    const started = start({ sticky: 'key-50' });
    expect((await settled(started)).id).toBe(50);
    expect(started.requests.filter((request) => request === 'read')).toHaveLength(64 + 2);
  });
});
