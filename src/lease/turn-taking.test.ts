import { afterEach, describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../test/support/virtual-clock.js';
import {
  DURATION,
  endScenes,
  expiryOf,
  GRACE,
  LONGEST_PAUSE,
  latest,
  PROMISED,
  requests,
  sum,
  taken,
  waitingScene,
} from '../../test/support/waiting-scene.js';
import { MemoryLeaseStore } from '../store/memory/memory-lease-store.js';
import { newCluster } from './cluster-config.js';
import { nativeCodec } from './lease-codec.js';
import { StoreSession } from './store-session.js';
import { TurnTaking } from './turn-taking.js';

const telling = 'telling nothing';

afterEach(endScenes);

describe('those who wait on a store that tells nothing', { timeout: 120_000 }, () => {
  it('make fewer than one request per duration however slow a look is: 200, with 300 ms a request, and 100 ms between two looks of one', async () => {
    const { clock, start } = await waitingScene({ telling, held: 20, requestMs: 300, pollMs: 100 });
    const waiters = Array.from({ length: 200 }, () => start());
    await clock.advance(2 * DURATION);
    const from = clock.monotonic();
    await clock.advance(10 * DURATION);
    expect(sum(requests(waiters, from, clock.monotonic()))).toBeLessThan(200 * 10);
  });

  it('are counted as long as they wait, however many they are', async () => {
    const { clock, bucket, start } = await waitingScene({ telling, held: 2 });
    const waiters = Array.from({ length: 60 }, () => start());
    await clock.advance(700_000);
    for (let count = 0; count < 10; count += 1) {
      await clock.advance(10_000);
      const fresh = bucket.list().objects.filter(({ key, age, size }) => key.startsWith('waiting-') && size > 0 && age.min <= 720_000);
      expect(fresh.length).toBeGreaterThanOrEqual(30);
    }
    expect(Math.max(...requests(waiters, 700_000, 800_000))).toBeLessThanOrEqual(7);
  });

  it.each([9, 10, 20])('look all the time, and not all at once: %i', async (waiting) => {
    const { clock, start } = await waitingScene({ telling, held: 4 });
    const waiters = Array.from({ length: waiting }, () => start());
    await clock.advance(4 * DURATION);
    const from = clock.monotonic();
    await clock.advance(4 * DURATION);
    const looks = waiters.flatMap(({ calls }) =>
      calls.filter(({ at, call }) => at >= from && call.operation === 'list').map(({ at }) => at),
    );
    const sorted = [from, ...looks, clock.monotonic()].sort((a, b) => a - b);
    expect(looks.length).toBeLessThanOrEqual(4 * waiting);
    expect(Math.max(...sorted.map((at, index) => at - (sorted[index - 1] ?? at)))).toBeLessThan(DURATION / 2);
  });

  it.each([
    [10, 10],
    [20, 12],
    [50, 50],
  ])('come at once where many leases expire at once: %i, and %i leases', async (waiting, held) => {
    const { clock, start, holders } = await waitingScene({ telling, held });
    const waiters = Array.from({ length: waiting }, () => start());
    await clock.advance(4 * DURATION);
    const expired = Math.max(...holders.map(expiryOf));
    for (const holder of holders) holder.isDead = true;
    await clock.advance(expired - clock.monotonic() + PROMISED);
    expect(taken(waiters)).toHaveLength(held);
    expect(latest(waiters) - expired).toBeLessThan(GRACE + DURATION / 2 + 2_000);
  });

  it('leave no mark where there is no time left to take it away', async () => {
    const { clock, start } = await waitingScene({ telling, held: 2 });
    const waiter = start({ acquireTimeoutMs: 1_900 });
    await clock.advance(5_000);
    expect(waiter.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
    expect(waiter.calls.filter(({ call }) => call.operation === 'create' || call.operation === 'replace')).toEqual([]);
  });
});

/** How long one sleeps between two looks, by the clock that it moves on. */
async function oneWaits(seed: number) {
  const clock = new VirtualClock();
  const store = new MemoryLeaseStore({ clock });
  const listing = await store.list();
  const sleeps: number[] = [];
  const patience = new TurnTaking({
    ...{ session: new StoreSession(store, clock, 1_000), clock, random: seededRandom(seed), codec: nativeCodec, taskId: 'a' },
    emit: (event) => event.type === 'waiting' && sleeps.push(event.sleepMs),
    until: Number.POSITIVE_INFINITY,
  });
  const config = newCluster({ nodes: 3, durationMs: DURATION });
  /** After a look by which a lease expires in `expiryMs`, and so many lost races. */
  const pass = async ({ expiryMs = 10_000, losses = 0 }) => {
    const lookedAt = clock.monotonic();
    const passed = patience.pass({
      config,
      listing,
      parts: 1,
      overdue: 0,
      lookedAt,
      expiryAt: lookedAt + expiryMs,
      laterAt: Number.POSITIVE_INFINITY,
      losses,
    });
    await settled();
    await clock.advance(LONGEST_PAUSE);
    await passed;
    return sleeps.at(-1) ?? Number.NaN;
  };
  return { pass, pollMs: store.pollMs, list: () => store.list() };
}

it('one who waits alone looks five times a second at the most, also where a lease seems to be about to expire all the time', async () => {
  const { pass } = await oneWaits(1);
  for (let count = 0; count < 10; count += 1) expect(await pass({ expiryMs: 1 })).toBeGreaterThanOrEqual(200);
});

it('who lost races before finding nothing free takes it that very many wait, until a listing tells better', async () => {
  const firsts: number[] = [];
  for (let seed = 1; seed <= 50; seed += 1) {
    const { pass, pollMs, list } = await oneWaits(seed);
    firsts.push(await pass({ losses: 2 }));
    expect((await list()).objects).toEqual([]);
    expect(await pass({ losses: 2 })).toBeLessThanOrEqual(pollMs);
  }
  expect(Math.min(...firsts)).toBeGreaterThanOrEqual(500);
  expect(sum(firsts) / firsts.length).toBeGreaterThan(DURATION / 3);
  expect(await (await oneWaits(1)).pass({ losses: 1 })).toBeLessThanOrEqual(500);
});

describe('at how many parts of a listing one looks', () => {
  const PARTS = 4;

  /** Of a store on which so many others wait. */
  async function lookers() {
    const clock = new VirtualClock();
    const store = new MemoryLeaseStore({ clock });
    const session = new StoreSession(store, clock, 1_000);
    const patience = new TurnTaking({
      ...{ session, clock, random: seededRandom(1), codec: nativeCodec, taskId: 'a', emit: () => undefined },
      until: Number.POSITIVE_INFINITY,
    });
    const config = newCluster({ nodes: 3, durationMs: DURATION });
    /** After a look, at a part unless it is complete, that shows so many marks and so many leases that should have been renewed. */
    return async (others: number, overdue: number, complete = false) => {
      const lookedAt = clock.monotonic();
      const age = { min: 0, max: 0 };
      const objects = Array.from({ length: others }, (_, slot) => ({ key: `waiting-${slot}.json`, etag: 'e', size: 9, age }));
      const times = { lookedAt, expiryAt: lookedAt + DURATION, laterAt: Number.POSITIVE_INFINITY };
      const passed = patience.pass({ config, listing: { objects, complete }, parts: PARTS, overdue, ...times, losses: 0 });
      await settled();
      await clock.advance(LONGEST_PAUSE);
      return passed;
    };
  }

  it('is one where many wait, and all where many leases are overdue', async () => {
    const look = await lookers();
    expect(await look(60, 0)).toBe(1);
    expect(await look(60, 1)).toBe(1);
    expect(await look(60, 3)).toBe(PARTS);
    expect(await look(60, 0)).toBe(1);
  });

  it('is all once many of the others are gone', async () => {
    const look = await lookers();
    expect(await look(60, 0)).toBe(1);
    expect(await look(55, 0)).toBe(1);
    expect(await look(45, 0)).toBe(PARTS);
    expect(await look(45, 0)).toBe(1);
    // Who has just seen everything has seen what is left.
    expect(await look(39, 0, true)).toBe(1);
  });
});
