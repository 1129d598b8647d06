import { getEventListeners } from 'node:events';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { useQuickAbort } from '../../../../test/simulation/world/quick-abort.js';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import {
  DURATION,
  endScenes,
  expiryOf,
  GRACE,
  LONGEST_PAUSE,
  latest,
  MOST_REQUESTS,
  pauses,
  REPORTING,
  REQUEST,
  requests,
  scans,
  waitingScene as scene,
  sum,
  taken,
  type Waiter,
} from '../../../../test/support/waiting-scene.js';
import { AcquireTimeoutError } from '../../base/errors.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { evictHolder } from '../operate/evict.js';
import { StoreSession } from '../session/store-session.js';
import { type FruitlessScan, WaitForFreeId } from './wait-for-free-id.js';

// The event objects of a hundred tasks would take a third of the time.
beforeAll(useQuickAbort);
afterEach(endScenes);

describe.each(REPORTING)('waiting tasks on a store %s', (reporting) => {
  it('make at most 3.3 requests each per lease duration while nothing is free, and no write: 100 on 50 ids, for 10 durations', async () => {
    const { clock, start, holders } = await scene({ reporting, held: 50 });
    const waiters = Array.from({ length: 100 }, () => start());
    await clock.advance(DURATION);
    const from = clock.monotonic();
    await clock.advance(10 * DURATION);
    const made = requests(waiters, from, clock.monotonic());
    expect(sum(made)).toBeLessThan(MOST_REQUESTS * 100 * 10);
    expect(Math.max(...made)).toBeLessThanOrEqual(MOST_REQUESTS * 10);
    expect(Math.max(...waiters.flatMap(pauses))).toBeLessThanOrEqual(LONGEST_PAUSE);
    expect(waiters.flatMap(({ calls }) => calls.map(({ call }) => call.operation))).not.toContain('create');
    expect(waiters.flatMap(({ calls }) => calls.map(({ call }) => call.operation))).not.toContain('replace');
    expect(holders.every(({ lease }) => lease?.isValid())).toBe(true);
  });

  it.each([1, 50])(
    'take over %i leases that expire at once, within the grace and two seconds of the expiry',
    async (deaths) => {
      const { clock, start, holders } = await scene({ reporting, held: 60 });
      const waiters = Array.from({ length: 100 }, () => start());
      await clock.advance(4 * DURATION);
      const dying = holders.slice(0, deaths);
      const expired = Math.max(...dying.map(expiryOf));
      for (const holder of dying) holder.isDead = true;
      await clock.advance(expired - clock.monotonic() + GRACE + 2_000);
      expect(taken(waiters)).toHaveLength(deaths);
      expect(new Set(taken(waiters).map(({ lease }) => lease?.id))).toEqual(
        new Set(dying.map(({ lease }) => lease?.id)),
      );
      expect(taken(waiters).every(({ lease }) => lease?.version === 2)).toBe(true);
    },
  );

  it('end on time, and when their signal aborts, and leave nothing behind', async () => {
    const { clock, bucket, start } = await scene({ reporting, held: 2 });
    const sleepers = clock.sleepers;
    const began = clock.monotonic();
    const impatient = start({ acquireTimeoutMs: 4 * DURATION });
    const stopped = start();
    await clock.advance(2 * DURATION);
    stopped.stop.abort(new Error('enough'));
    await settled();
    expect(stopped.error).toEqual(new Error('enough'));
    expect(getEventListeners(stopped.stop.signal, 'abort')).toHaveLength(0);
    await clock.advance(began + 4 * DURATION - 1 - clock.monotonic());
    expect(impatient.error).toBeUndefined();
    await clock.advance(1 + 4 * REQUEST);
    expect(impatient.error).toBeInstanceOf(AcquireTimeoutError);
    expect(getEventListeners(impatient.stop.signal, 'abort')).toHaveLength(0);
    await clock.advance(4 * REQUEST);
    expect(bucket.changes.waiting).toBe(0);
    // The number of the holders' timers varies.
    expect(clock.sleepers).toBeLessThanOrEqual(sleepers + 2);
  });

  it('get the ids of a cluster that grows', async () => {
    const { clock, bucket, start } = await scene({ reporting, held: 3 });
    const waiters = [start(), start()];
    await clock.advance(2 * DURATION);
    for (const id of [3, 4]) bucket.create(`${id}.json`, '', {});
    const settings = bucket.read('cluster.json');
    bucket.replace(
      'cluster.json',
      JSON.stringify({ ...JSON.parse(settings?.body ?? ''), size: 5 }),
      {},
      settings?.etag ?? '',
    );
    const grownAt = clock.monotonic();
    await clock.advance(LONGEST_PAUSE + 10 * REQUEST);
    expect(taken(waiters).map(({ lease }) => lease?.id)).toEqual(expect.arrayContaining([3, 4]));
    if (reporting === 'reporting what changed') expect(latest(waiters) - grownAt).toBeLessThan(1_000);
  });
});

describe('a released id', () => {
  it.each([1, 20, 200])(
    'is taken within a second if the store reports the release, by one of %i waiting tasks',
    async (waiting) => {
      const { clock, start, holders } = await scene({ reporting: 'reporting what changed', held: 20 });
      const waiters = Array.from({ length: waiting }, () => start());
      await clock.advance(4 * DURATION);
      for (const [index, holder] of holders.slice(0, Math.min(waiting, 5)).entries()) {
        const releasedAt = clock.monotonic();
        const waitingStill = waiters.filter(({ lease }) => lease === undefined);
        await Promise.all([holder.lease?.release(), clock.advance(1_000)]);
        expect(taken(waiters)).toHaveLength(index + 1);
        // Tasks that learn in time that it is taken do not read it. The losers of the race scan once more.
        expect(scans(waitingStill, releasedAt)).toBeLessThanOrEqual(waitingStill.length * 1.5 + 3);
      }
      await clock.advance(1_000);
    },
  );

  it.each(REPORTING.slice(0, 2))(
    'is not missed while a task begins to wait on a store %s',
    async (reporting) => {
      const { clock, start, holders } = await scene({ reporting, held: 3 });
      const waiter = start();
      await clock.advance(0.7 * REQUEST);
      // The listing is on its way back, and the watch has not begun.
      await Promise.all([holders[1]?.lease?.release(), clock.advance(1_000)]);
      expect(waiter.lease).toMatchObject({ id: 1, version: 2 });
    },
  );

  it.each([1, 20, 100])(
    'is taken within a third of the duration, and a fifth of that, by one of %i if the store reports nothing',
    async (waiting) => {
      const { clock, start, holders } = await scene({ reporting: 'reporting nothing', held: 20 });
      const waiters = Array.from({ length: waiting }, () => start());
      await clock.advance(6 * DURATION);
      for (const [index, holder] of holders.slice(0, 6).entries()) {
        await Promise.all([holder.lease?.release(), clock.advance(LONGEST_PAUSE + 4 * REQUEST)]);
        expect(taken(waiters)).toHaveLength(index + 1);
        waiters.push(start());
        await clock.advance(DURATION);
      }
    },
  );

  it('is taken within two seconds by a task that has just begun to wait', async () => {
    const { clock, start, holders } = await scene({ reporting: 'reporting nothing', held: 20 });
    const waiter = start();
    await clock.advance(2 * REQUEST);
    await Promise.all([holders[7]?.lease?.release(), clock.advance(2_000 - 3 * REQUEST)]);
    expect(waiter.lease).toMatchObject({ id: 7, version: 2 });
  });
});

describe('a store that reports what changed', () => {
  const reporting = 'reporting what changed';

  it('lets each task read an evicted id once, and not again until it may be taken', async () => {
    const { clock, bucket, start } = await scene({ reporting, held: 10 });
    const waiters = Array.from({ length: 20 }, () => start());
    await clock.advance(4 * DURATION);
    const from = clock.monotonic();
    await evictHolder(new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000), 3);
    await clock.advance(DURATION - 2_000);
    const reads = waiters.map(
      ({ calls }) => calls.filter(({ at, call }) => at >= from && call.operation === 'read').length,
    );
    expect(Math.max(...reads)).toBe(1);
    await clock.advance(5_000);
    expect(taken(waiters).map(({ lease }) => lease?.id)).toEqual([3]);
  });

  it('is scanned five times a second at most in a burst of news', async () => {
    const { clock, bucket, start } = await scene({ reporting, held: 3 });
    const waiter = start();
    await clock.advance(4 * DURATION);
    const from = clock.monotonic();
    for (let count = 0; count < 200; count += 1) {
      const { body = '', etag = '' } = bucket.read('cluster.json') ?? {};
      bucket.replace('cluster.json', `${body} `, {}, etag);
      await clock.advance(5);
    }
    expect(scans([waiter], from)).toBeLessThanOrEqual(6);
  });

  it.each([
    ['fails to watch, even at once', failsToWatch],
    ['wakes all the time without a reason', async (): Promise<void> => undefined],
  ] as const)('is polled if it %s', async (_, changed) => {
    const { clock, start, holders } = await scene({ reporting, held: 3, changed });
    const waiter = start();
    await clock.advance(2 * DURATION);
    const from = clock.monotonic();
    await clock.advance(10 * DURATION);
    expect(scans([waiter], from)).toBeLessThanOrEqual(MOST_REQUESTS * 10);
    expect(waiter.error).toBeUndefined();
    await Promise.all([holders[1]?.lease?.release(), clock.advance(LONGEST_PAUSE + 4 * REQUEST)]);
    expect(waiter.lease).toMatchObject({ id: 1, version: 2 });
  });
});

function failsToWatch(): Promise<void> {
  throw new Error('cannot watch');
}

interface Scenery {
  readonly seed?: number;
  readonly pollMs?: number;
}

interface Scan extends Partial<FruitlessScan> {
  readonly expiryMs?: number;
  readonly restarts?: boolean;
}

/** How long one task sleeps between two scans, by the clock that it moves on. */
function oneWaits({ seed = 1, ...suggested }: Scenery = {}, waitPollMs?: number) {
  const clock = new VirtualClock();
  const store = Object.assign(new MemoryLeaseStore({ clock }), {
    changed: undefined,
    pollMs: undefined,
    ...suggested,
  });
  const wait = new WaitForFreeId({
    ...{ session: new StoreSession(store, clock, 1_000), clock, random: seededRandom(seed) },
    ...{ emit: () => undefined, until: Number.POSITIVE_INFINITY, waitPollMs },
  });
  return async ({ expiryMs, restarts = false, ...scan }: Scan = {}): Promise<number> => {
    if (restarts) wait.restart();
    const scannedAt = clock.monotonic();
    const expiryAt = scannedAt + (expiryMs ?? Number.POSITIVE_INFINITY);
    const base = {
      durationMs: DURATION,
      scannedAt,
      complete: true,
      expiryAt,
      expiryAfter: undefined,
    };
    let endedAt = Number.NaN;
    const waited = wait.next({ ...base, ...scan }).then(() => {
      endedAt = clock.monotonic();
    });
    await clock.advance(LONGEST_PAUSE);
    await waited;
    return endedAt - scannedAt;
  };
}

describe('the pause between two scans', () => {
  it('begins with the poll interval and is half as long again with each scan, up to a third of the duration, a fifth shorter or longer', async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const pause = oneWaits({ seed });
      for (const expected of [1_200, 1_800, 2_700, 4_050, 5_000, 5_000, 5_000]) {
        const ms = await pause();
        expect(ms).toBeGreaterThanOrEqual(0.8 * expected);
        expect(ms).toBeLessThanOrEqual(1.2 * expected);
      }
    }
  });

  it('begins with what the task’s settings say, or else with what the store suggests', async () => {
    const [suggested, set] = [await oneWaits({ pollMs: 500 })(), await oneWaits({ pollMs: 500 }, 3_000)()];
    expect(suggested).toBeLessThanOrEqual(1.2 * 500);
    expect(set).toBeGreaterThanOrEqual(0.8 * 3_000);
    expect(set).toBeLessThanOrEqual(1.2 * 3_000);
  });

  it('starts again when ids change hands', async () => {
    const pause = oneWaits();
    for (let count = 0; count < 5; count += 1) await pause();
    expect(await pause({ restarts: true })).toBeLessThanOrEqual(1.2 * 1_200);
    expect(await pause()).toBeGreaterThanOrEqual(0.8 * 1_800);
  });

  it('is no longer than that however long the poll interval is: an expiry is predicted in time', async () => {
    expect(await oneWaits({ pollMs: 86_400_000 })()).toBeLessThanOrEqual(LONGEST_PAUSE);
  });

  it('ends when a lease can be found expired, with up to a second of jitter', async () => {
    const ends: number[] = [];
    for (let seed = 1; seed <= 100; seed += 1) {
      const pause = oneWaits({ seed });
      for (let count = 0; count < 5; count += 1) await pause();
      ends.push(await pause({ expiryMs: 2_000 }));
    }
    expect(Math.min(...ends)).toBeGreaterThanOrEqual(2_000);
    expect(Math.max(...ends)).toBeLessThanOrEqual(3_000);
    expect(Math.max(...ends) - Math.min(...ends)).toBeGreaterThan(500);
  });

  it('is at least a fifth of a second, also where a lease seems to be about to expire all the time', async () => {
    const pause = oneWaits();
    for (let count = 0; count < 20; count += 1)
      expect(await pause({ expiryMs: 1 })).toBeGreaterThanOrEqual(200);
  });
});

it('tasks that begin to wait together do not continue together', async () => {
  const { clock, start } = await scene({ reporting: 'reporting nothing', held: 4 });
  const waiters: readonly Waiter[] = Array.from({ length: 20 }, () => start());
  await clock.advance(4 * DURATION);
  const from = clock.monotonic();
  await clock.advance(4 * DURATION);
  const at = waiters.flatMap(({ calls }) =>
    calls.filter((one) => one.at >= from && one.call.operation === 'list').map((one) => one.at),
  );
  const sorted = [from, ...at, clock.monotonic()].sort((a, b) => a - b);
  expect(Math.max(...sorted.map((time, index) => time - (sorted[index - 1] ?? time)))).toBeLessThan(
    LONGEST_PAUSE / 2,
  );
});
