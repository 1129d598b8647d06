import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { type LeaseStore, type ListedObject, type ListingPage, StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { type ClusterConfig, encodeCluster, newCluster } from '../model/cluster-config.js';
import type { LeaseEvent } from '../model/lease.js';
import { nativeCodec } from '../model/lease-codec.js';
import { type LeaseState, leaseKey } from '../model/lease-state.js';
import { type AcquireLeaseOptions, acquireLease } from './acquire-lease.js';

// How a task deals with a store whose listings are short, late, or out of order.

const PAGE = 100;
const RELEASED: LeaseState = { kind: 'released', version: 1, timestamp: 5, durationMs: 0, stampedUntil: 5 };

/** A store in virtual time. Each test changes the part that it is about. */
function scene(size: number) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const events: LeaseEvent[] = [];
  const settings = (over: Partial<ClusterConfig> = {}) =>
    encodeCluster({ ...newCluster({ nodes: size, durationMs: 15_000 }), bootstrapped: true, ...over });
  const put = (id: number, state: LeaseState) => {
    const { body, metadata } = nativeCodec.encode(state);
    bucket.create(leaseKey(id), body, metadata);
  };
  const holdAll = (from: number, to: number, free?: number) => {
    for (let id = from; id < to; id += 1) put(id, id === free ? RELEASED : held(id, clock.now()));
  };
  const start = (over: Partial<LeaseStore>, more: Partial<AcquireLeaseOptions> = {}) => {
    const store: LeaseStore = Object.assign(
      new MemoryLeaseStore({ clock }, bucket),
      { changed: undefined },
      over,
    );
    const onEvent = (event: LeaseEvent) => void events.push(event);
    const ended = acquireLease({ store, clock, random: seededRandom(7), taskId: 't', onEvent, ...more }).then(
      ({ id }) => `id ${id} at ${clock.monotonic()}`,
      ({ name, message }: Error) => {
        outcome.message = message;
        return `${name} at ${clock.monotonic()}`;
      },
    );
    const outcome = { now: 'nothing yet', message: '' };
    void ended.then((text) => (outcome.now = text));
    return outcome;
  };
  const damaged = () => events.flatMap((event) => (event.type === 'damaged' ? [event.key] : []));
  return { clock, bucket, settings, put, holdAll, start, damaged };
}

function held(id: number, now: number): LeaseState {
  return {
    ...{
      kind: 'held',
      taskId: `h${id}`,
      version: 1,
      timestamp: now + 15_000,
      durationMs: 15_000,
      knownNodes: {},
    },
    ...{ nonce: String(id).padStart(24, '0'), renewal: 0, acquiredAt: now, idWidth: 12, narrowIdsUntil: 0 },
  };
}

/** An order of the keys other than their own. */
function disorder(key: string): number {
  return [...key].reduce((sum, character) => (sum * 31 + character.charCodeAt(0)) % 9_973, 7);
}

describe('a listing of several pages', () => {
  it('is read to its end before the task finds no free id, even if all candidates of its first part are unreadable', async () => {
    const { clock, bucket, settings, put, start } = scene(300);
    bucket.create('cluster.json', settings(), {});
    const keys = Array.from({ length: 300 }, (_, id) => id).sort((a, b) =>
      leaseKey(a) < leaseKey(b) ? -1 : 1,
    );
    for (const [index, id] of keys.entries()) {
      if (index === 50) bucket.create(leaseKey(id), 'garbage', {});
      else put(id, index < PAGE ? held(id, clock.now()) : RELEASED);
    }
    const outcome = start({ listPage: async (after) => bucket.page(after, PAGE) }, { acquireTimeoutMs: 0 });
    await clock.advance(100);
    expect(outcome.now).toMatch(/^id \d+ at 0$/);
  });

  it.each([3, 77, 120, 210])('that is not in key order hides no free id (%i)', async (free) => {
    const { clock, bucket, settings, holdAll, start, damaged } = scene(300);
    bucket.create('cluster.json', settings(), {});
    holdAll(0, 300, free);
    const listPage = async (after?: string): Promise<ListingPage> => {
      const { objects, storeTime } = bucket.list();
      const rest = objects
        .filter(({ key }) => after === undefined || key > after)
        .sort((a, b) => disorder(a.key) - disorder(b.key));
      return { objects: rest.slice(0, PAGE), storeTime, more: rest.length > PAGE };
    };
    const outcome = start({ listPage }, { acquireTimeoutMs: 0 });
    await clock.advance(100);
    expect({ outcome: outcome.now, damaged: damaged() }).toEqual({ outcome: `id ${free} at 0`, damaged: [] });
  });

  it('is fetched in one request from a store that cannot begin a listing at a key', async () => {
    const { clock, bucket, settings, holdAll, start } = scene(300);
    bucket.create('cluster.json', settings(), {});
    holdAll(0, 300, 99);
    const listPage = async (after?: string): Promise<ListingPage> => {
      if (after === undefined) return bucket.page(after, PAGE);
      throw new StoreError('no such parameter', { fault: 'rejected', outcome: 'not-applied' });
    };
    const outcome = start({ listPage }, { acquireTimeoutMs: 0 });
    await clock.advance(100);
    expect(outcome.now).toBe('id 99 at 0');
  });

  it('is fetched as a whole before the time is up, where a scan of one page took until then', async () => {
    const { clock, bucket, settings, put, holdAll, start } = scene(300);
    bucket.create('cluster.json', settings(), {});
    holdAll(0, 300);
    let fetched = 0;
    const listPage = async (after?: string): Promise<ListingPage> => {
      const page = bucket.page(after, PAGE);
      fetched += 1;
      if (fetched === 5) {
        await clock.sleep(900);
        bucket.remove('77.json');
        put(77, RELEASED);
      }
      return page;
    };
    const outcome = start({ listPage }, { acquireTimeoutMs: 1_000 });
    await clock.advance(30_000);
    expect(outcome.now).toMatch(/^id 77/);
  });

  it('does not report as damaged what another task adds while it is fetched', async () => {
    const { clock, bucket, settings, put, holdAll, start, damaged } = scene(150);
    bucket.create('cluster.json', settings(), {});
    holdAll(0, 150);
    let first = true;
    const listPage = async (after?: string): Promise<ListingPage> => {
      await clock.sleep(first ? 300 : 900);
      const page = bucket.page(after, PAGE);
      if (first) {
        first = false;
        for (let id = 150; id < 200; id += 1) put(id, { kind: 'vacant' });
        bucket.replace(
          'cluster.json',
          settings({ size: 200, generation: 1, peak: 200 }),
          {},
          bucket.read('cluster.json')?.etag ?? '',
        );
      }
      await clock.sleep(150);
      return page;
    };
    const outcome = start({ listPage });
    await clock.advance(20_000);
    expect(outcome.now).toMatch(/^id 1[5-9]\d/);
    expect(damaged()).toEqual([]);
  });
});

it('the task says how long it takes to find an expired lease where the time of one write is not known', async () => {
  const { clock, bucket, settings, holdAll, start } = scene(3);
  bucket.create('cluster.json', settings(), {});
  holdAll(0, 3);
  const list: LeaseStore['list'] = async () => {
    const { objects, storeTime } = bucket.list();
    const ageOf = ({ key, age }: ListedObject) =>
      key === '1.json' ? { ...age, max: Number.POSITIVE_INFINITY } : age;
    return { objects: objects.map((object) => ({ ...object, age: ageOf(object) })), storeTime };
  };
  const outcome = start({ list }, { acquireTimeoutMs: 0 });
  await clock.advance(100);
  expect(outcome.message).toContain('an expired lease is found after 16000 ms of waiting');
});

it('the task pauses between requests to a store whose listings show other etags than its objects', async () => {
  const { clock, bucket, settings, holdAll, start, damaged } = scene(5);
  bucket.create('cluster.json', settings(), {});
  holdAll(0, 4);
  let listings = 0;
  const listPage = async (): Promise<ListingPage> => {
    listings += 1;
    if (listings > 500) await new Promise(() => undefined);
    await clock.sleep(20);
    const page = bucket.page(undefined, PAGE);
    return {
      ...page,
      objects: page.objects.map((object) => ({ ...object, etag: `${object.etag}, as listed` })),
    };
  };
  start({ listPage }, { acquireTimeoutMs: 12_000 });
  await clock.advance(10_000);
  expect(listings).toBeLessThan(60);
  expect(damaged()).toEqual(['4.json']);
});

describe('a task that has lost races', () => {
  /** Five released ids; the first `losses` writes of leases are lost to other tasks. */
  function racing(losses: number, size = 5, listPage?: LeaseStore['listPage']) {
    const it = scene(size);
    const { clock, bucket } = it;
    bucket.create('cluster.json', it.settings(), {});
    const asked: string[] = [];
    const times: number[] = [];
    const ask = async (request: string) => {
      asked.push(request);
      times.push(clock.monotonic());
      await clock.sleep(20);
    };
    const count = (request: string) => asked.filter((each) => each === request).length;
    const over: Partial<LeaseStore> = {
      read: (key) => ask('read').then(() => bucket.read(key)),
      list: () => ask('list').then(() => bucket.list()),
      replace: async (key, body, metadata, etag) => {
        await ask('replace');
        if (count('replace') <= losses) return { status: 'conflict' };
        return bucket.replace(key, body, metadata, etag);
      },
      ...(listPage && { listPage: (after) => ask('list').then(() => bucket.page(after, PAGE)) }),
    };
    return { ...it, asked, times, count, over };
  }

  it('scans again after two, and pauses before', async () => {
    const { clock, put, start, asked, times, over } = racing(2);
    for (let id = 0; id < 5; id += 1) put(id, RELEASED);
    const outcome = start(over);
    await clock.advance(5_000);
    expect(outcome.now).toMatch(/^id /);
    expect(asked.slice(0, 8)).toEqual([
      ...['list', 'read', 'read', 'replace', 'read', 'replace'],
      ...['list', 'read'],
    ]);
    expect((times[6] ?? 0) - (times[5] ?? 0)).toBeGreaterThan(20);
  });

  it('scans again after two ids that other tasks took after the listing', async () => {
    const { clock, bucket, put, start, asked, over } = racing(0);
    for (let id = 0; id < 5; id += 1) put(id, RELEASED);
    const read = (key: string) => {
      if (key !== 'cluster.json' && asked.length < 4) {
        bucket.remove(key);
        put(Number.parseInt(key, 10), held(9, clock.now()));
      }
      return over.read?.(key) ?? expect.unreachable();
    };
    const outcome = start({ ...over, read });
    await clock.advance(5_000);
    expect(outcome.now).toMatch(/^id /);
    expect(asked.slice(0, 5)).toEqual(['list', 'read', 'read', 'read', 'list']);
  });

  it('rather reads an object more for each further page than all pages again', async () => {
    const it = racing(6, 300, async () => expect.unreachable());
    for (let id = 0; id < 300; id += 1) it.put(id, id >= 90 && id < 98 ? RELEASED : held(id, it.clock.now()));
    const outcome = it.start(it.over);
    await it.clock.advance(10_000);
    expect(outcome.now).toMatch(/^id /);
    const first = it.asked.indexOf('replace');
    const pages = it.asked.slice(0, first).filter((each) => each === 'list').length;
    const lost = it.asked.slice(first, it.asked.indexOf('list', first)).filter((each) => each === 'replace');
    expect([pages, lost.length]).toEqual([3, 1 + 3]);
  });

  it('does not count as lost what the listing showed as free and is not', async () => {
    const { clock, bucket, put, start, asked, times, over } = racing(0);
    const evicted = { ...RELEASED, durationMs: 15_000 } as const;
    put(0, evicted);
    put(1, { ...RELEASED, kind: 'retired', generation: 0 });
    bucket.create('2.json', 'damaged', {});
    for (let id = 3; id < 5; id += 1) put(id, id === 4 ? RELEASED : held(id, clock.now()));
    const outcome = start(over);
    await clock.advance(1_000);
    expect(outcome.now).toMatch(/^id 4/);
    expect(asked).toEqual(['list', ...Array(5).fill('read'), 'replace']);
    expect(times.map((time) => time / 20)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('scans eight times more when the time is up', async () => {
    const { clock, put, start, count, over } = racing(Number.POSITIVE_INFINITY);
    for (let id = 0; id < 5; id += 1) put(id, RELEASED);
    const outcome = start(over, { acquireTimeoutMs: 0 });
    await clock.advance(60_000);
    expect(outcome.now).toMatch(/^AcquireTimeoutError/);
    expect(count('list')).toBe(1 + 8);
  });
});

describe('the time limit of a waiting task', () => {
  const lostAllThe = (clock: VirtualClock) => async () => {
    await clock.sleep(20);
    return { status: 'conflict' as const };
  };

  it('ends the wait even if every race for an id is lost', async () => {
    const { clock, bucket, settings, put, start } = scene(3);
    bucket.create('cluster.json', settings(), {});
    for (let id = 0; id < 3; id += 1) put(id, { kind: 'vacant' });
    const outcome = start({ replace: lostAllThe(clock) }, { acquireTimeoutMs: 2_000 });
    await clock.advance(30_000);
    const [name, at] = outcome.now.split(' at ');
    expect(name).toBe('AcquireTimeoutError');
    expect(Number(at)).toBeLessThan(5_000);
  });

  it('does not end with a lost race, even if it is 0', async () => {
    const { clock, bucket, settings, put, start } = scene(3);
    bucket.create('cluster.json', settings(), {});
    for (let id = 0; id < 3; id += 1) put(id, { kind: 'vacant' });
    let lost = 0;
    const replace: LeaseStore['replace'] = async (key, body, metadata, etag) => {
      await clock.sleep(20);
      lost += 1;
      return lost <= 5 ? { status: 'conflict' } : bucket.replace(key, body, metadata, etag);
    };
    const outcome = start({ replace }, { acquireTimeoutMs: 0 });
    await clock.advance(30_000);
    expect(outcome.now).toMatch(/^id /);
  });

  it('ends the wait soon if no task shows that a slow store enforces conditions', async () => {
    const { clock, bucket, settings, start } = scene(3);
    bucket.create('cluster.json', settings({ proven: false, bootstrapped: false }), {});
    const slow = () => clock.sleep(600);
    const outcome = start(
      {
        remote: true,
        read: (key) => slow().then(() => bucket.read(key)),
        list: () => slow().then(() => bucket.list()),
        create: (key, body, metadata) => slow().then(() => bucket.create(key, body, metadata)),
        replace: (key, body, metadata, etag) => slow().then(() => bucket.replace(key, body, metadata, etag)),
      },
      { acquireTimeoutMs: 1_000 },
    );
    await clock.advance(300_000);
    const [name, at] = outcome.now.split(' at ');
    expect(name).toBe('AcquireTimeoutError');
    expect(Number(at)).toBeLessThan(8_000);
    expect(outcome.message).toContain('no task has shown in time that the store keeps its conditions');
  });
});

it('a lost race for the settings does not show that the store enforces If-Match', async () => {
  const { clock, bucket, settings, put, start } = scene(3);
  const outcome = start({
    remote: true,
    create: async (key, body, metadata) => {
      if (key !== 'cluster.json' || bucket.read(key) !== undefined) return bucket.create(key, body, metadata);
      bucket.create(key, settings({ proven: true }), {});
      for (let id = 0; id < 3; id += 1) put(id, RELEASED);
      return { status: 'conflict' };
    },
    replace: async (key, body, metadata) => bucket.replace(key, body, metadata, bucket.read(key)?.etag ?? ''),
  });
  await clock.advance(60_000);
  expect(outcome.now).toMatch(/^StoreUnusableError/);
});

it('a task that lost races creates no absent object when the bootstrap was completed meanwhile', async () => {
  const { clock, bucket, settings, holdAll, start, damaged } = scene(3);
  bucket.create('cluster.json', settings({ bootstrapped: false }), {});
  const create: LeaseStore['create'] = async (key, body, metadata) => {
    await clock.sleep(100);
    return clock.monotonic() < 2_500 ? { status: 'conflict' } : bucket.create(key, body, metadata);
  };
  const list: LeaseStore['list'] = async () => {
    await clock.sleep(50);
    return bucket.list();
  };
  const outcome = start({ create, list });
  await clock.advance(1_200);
  holdAll(0, 2);
  bucket.replace('cluster.json', settings(), {}, bucket.read('cluster.json')?.etag ?? '');
  await clock.advance(10_000);
  expect({ outcome: outcome.now, object: bucket.read('2.json'), damaged: damaged() }).toEqual({
    ...{ outcome: 'nothing yet', object: undefined, damaged: ['2.json'] },
  });
});
