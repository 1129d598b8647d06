import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { settled } from '../../test/support/virtual-clock.js';
import {
  DURATION,
  endScenes,
  expiryOf,
  LONGEST_PAUSE,
  latest,
  looks,
  marks,
  PROMISED,
  pauses,
  REQUEST,
  requests,
  waitingScene as scene,
  sum,
  TELLING,
  taken,
  type Waiter,
} from '../../test/support/waiting-scene.js';
import { AcquireTimeoutError } from '../errors.js';

afterEach(endScenes);

describe.each(TELLING)('surplus tasks on a store %s', (telling) => {
  it('make fewer than one request each per lease duration while nothing is free: 100 on 50 ids, for 20 durations', async () => {
    const { clock, start, holders } = await scene({ telling, held: 50 });
    const waiters = Array.from({ length: 100 }, () => start());
    await clock.advance(DURATION);
    const from = clock.monotonic();
    await clock.advance(20 * DURATION);
    const made = requests(waiters, from, clock.monotonic());
    expect(sum(made)).toBeLessThan(100 * 20);
    expect(Math.max(...made)).toBeLessThanOrEqual(20);
    expect(Math.max(...waiters.flatMap(pauses))).toBeLessThanOrEqual(LONGEST_PAUSE);
    expect(holders.every(({ lease }) => lease?.isValid())).toBe(true);
  });

  it.each([1, 50])('take over %i leases that expire at once, within the duration, the grace and two seconds', async (deaths) => {
    const { clock, start, holders } = await scene({ telling, held: 60 });
    const waiters = Array.from({ length: 100 }, () => start());
    await clock.advance(4 * DURATION);
    const dying = holders.slice(0, deaths);
    const expired = Math.max(...dying.map(expiryOf));
    for (const holder of dying) holder.isDead = true;
    await clock.advance(expired - clock.monotonic() + PROMISED);
    expect(taken(waiters)).toHaveLength(deaths);
    expect(new Set(taken(waiters).map(({ lease }) => lease?.id))).toEqual(new Set(dying.map(({ lease }) => lease?.id)));
    expect(taken(waiters).every(({ lease }) => lease?.version === 2)).toBe(true);
  });

  it('end their waiting on time, and when they are told to, and leave nothing behind', async () => {
    const { clock, bucket, start } = await scene({ telling, held: 2 });
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
    expect([marks(bucket), bucket.changes.waiting]).toEqual([0, 0]);
    // Those of the holders come and go.
    expect(clock.sleepers).toBeLessThanOrEqual(sleepers + 2);
  });

  it('get the ids of a cluster that grows', async () => {
    const { clock, bucket, start } = await scene({ telling, held: 3 });
    const waiters = [start(), start()];
    await clock.advance(2 * DURATION);
    for (const id of [3, 4]) bucket.create(`${id}.json`, '', {});
    const settings = bucket.read('cluster.json');
    bucket.replace('cluster.json', JSON.stringify({ ...JSON.parse(settings?.body ?? ''), size: 5 }), {}, settings?.etag ?? '');
    const grownAt = clock.monotonic();
    await clock.advance(PROMISED);
    expect(taken(waiters).map(({ lease }) => lease?.id)).toEqual(expect.arrayContaining([3, 4]));
    if (telling === 'telling what changed') expect(latest(waiters) - grownAt).toBeLessThan(1_000);
    if (telling === 'telling nothing') expect(latest(waiters) - grownAt).toBeLessThan(4_000);
  });
});

describe('an id that is given up', () => {
  it.each([1, 20, 200])('is taken within a second where the store tells of it, by one of %i', async (waiting) => {
    const { clock, start, holders } = await scene({ telling: 'telling what changed', held: 20 });
    const waiters = Array.from({ length: waiting }, () => start());
    await clock.advance(4 * DURATION);
    for (const [index, holder] of holders.slice(0, Math.min(waiting, 5)).entries()) {
      const releasedAt = clock.monotonic();
      const waitingStill = waiters.filter(({ lease }) => lease === undefined);
      await Promise.all([holder.lease?.release(), clock.advance(1_000)]);
      expect(taken(waiters)).toHaveLength(index + 1);
      // The first time all of them look at once, and those who lose once more; they have learned from it.
      expect(looks(waitingStill, releasedAt)).toBeLessThanOrEqual(waitingStill.length * (index === 0 ? 2 : 1));
    }
    await clock.advance(1_000);
  });

  it.each(['telling what changed', 'telling that something changed'] as const)(
    'is not missed while one begins to wait on a store %s',
    async (telling) => {
      const { clock, start, holders } = await scene({ telling, held: 3 });
      const waiter = start();
      await clock.advance(0.7 * REQUEST);
      // The listing is on its way back, and nobody watches yet.
      await Promise.all([holders[1]?.lease?.release(), clock.advance(1_000)]);
      expect(waiter.lease).toMatchObject({ id: 1, version: 2 });
    },
  );

  it('is taken within two seconds where the store tells nothing, by one who waits alone', async () => {
    const { clock, start, holders } = await scene({ telling: 'telling nothing', held: 20 });
    const waiter = start();
    await clock.advance(4 * DURATION);
    await Promise.all([holders[7]?.lease?.release(), clock.advance(2_000 - 3 * REQUEST)]);
    expect(waiter.lease).toMatchObject({ id: 7, version: 2 });
  });

  it.each([2, 20, 100])('is taken about as soon where the store tells nothing and %i share the looks', async (waiting) => {
    const { clock, start, holders } = await scene({ telling: 'telling nothing', held: 20 });
    const waiters = Array.from({ length: waiting }, () => start());
    await clock.advance(6 * DURATION);
    const after: number[] = [];
    for (const [index, holder] of holders.slice(0, 6).entries()) {
      const releasedAt = clock.monotonic();
      await Promise.all([holder.lease?.release(), clock.advance(PROMISED)]);
      expect(taken(waiters)).toHaveLength(index + 1);
      after.push(latest(waiters) - releasedAt);
      waiters.push(start());
      await clock.advance(DURATION);
    }
    expect(sum(after) / after.length).toBeLessThan(2_000);
    expect(Math.max(...after)).toBeLessThan(6_000);
  });
});

describe('waiting on a store that tells nothing', () => {
  it('needs no permission to leave a mark: one who waits is then taken for alone', async () => {
    const { clock, bucket, start, holders } = await scene({ telling: 'telling nothing', held: 3, refuseMarks: true });
    const waiters = [start(), start(), start()];
    await clock.advance(2 * DURATION);
    expect(marks(bucket)).toBe(0);
    const tries = waiters.map(({ calls }) => calls.filter(({ call }) => call.operation === 'create').length);
    expect(tries).toEqual([1, 1, 1]);
    await Promise.all([holders[1]?.lease?.release(), clock.advance(2_000)]);
    expect(taken(waiters)).toHaveLength(1);
    expect(waiters.flatMap(({ events }) => events).filter(({ type }) => type === 'store-failed')).toEqual([]);
  });

  it('makes fewer than one request per duration for one who waits alone, too, when it may look so seldom, and finds expiries in time', async () => {
    const { clock, start, holders } = await scene({ telling: 'telling nothing', held: 3, pollMs: 86_400_000 });
    const waiter = start();
    await clock.advance(DURATION);
    const from = clock.monotonic();
    await clock.advance(20 * DURATION);
    expect(sum(requests([waiter], from, clock.monotonic()))).toBeLessThan(20);
    expect(Math.max(...pauses(waiter))).toBeLessThanOrEqual(LONGEST_PAUSE);
    const [dying] = holders as [Waiter];
    const expired = expiryOf(dying);
    dying.isDead = true;
    await clock.advance(expired - clock.monotonic() + PROMISED);
    expect(waiter.lease).toMatchObject({ id: 0, version: 2 });
  });

  it('counts one who died while it waited for some minutes more, and then no longer', async () => {
    const { clock, bucket, start } = await scene({ telling: 'telling nothing', held: 3 });
    const gone = start();
    await clock.advance(DURATION);
    gone.isDead = true;
    const left = start();
    await clock.advance(DURATION);
    expect(marks(bucket)).toBe(2);
    await clock.advance(720_000);
    const from = clock.monotonic();
    await clock.advance(10 * DURATION);
    const alone = sum(requests([left], from, clock.monotonic()));
    expect(alone).toBeGreaterThan((10 * DURATION) / 1_300);
  });
});
