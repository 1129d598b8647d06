import { afterEach, describe, expect, it } from 'vitest';
import {
  DURATION,
  endScenes,
  expiryOf,
  LONGEST_PAUSE,
  PROMISED,
  pauses,
  requests,
  waitingScene as scene,
  sum,
  taken,
} from '../../../../test/support/waiting-scene.js';
import { AcquireTimeoutError } from '../../base/errors.js';

afterEach(endScenes);

describe('waiting on a store whose listing takes several requests', () => {
  const reporting = 'reporting nothing';
  // 200 leases and the settings.
  const [held, page] = [200, 170];

  it.each([
    [170, 2],
    [60, 4],
  ])(
    'costs a request for each page in a duration, and about two more: pages of %i objects',
    async (size, pages) => {
      const { clock, start, holders } = await scene({ reporting, held, page: size });
      const waiters = Array.from({ length: 30 }, () => start());
      await clock.advance(2 * DURATION);
      const from = clock.monotonic();
      await clock.advance(10 * DURATION);
      expect(sum(requests(waiters, from, clock.monotonic())) / (30 * 10)).toBeLessThan(pages + 2.8);
      expect(Math.max(...waiters.flatMap(pauses))).toBeLessThanOrEqual(LONGEST_PAUSE);
      expect(holders.every(({ lease }) => lease?.isValid())).toBe(true);
    },
  );

  it.each([1, 50, 100])(
    'finds %i leases that expire at once, within the duration, the grace and two seconds',
    async (deaths) => {
      const { clock, start, holders } = await scene({ reporting, held, page });
      const waiters = Array.from({ length: 100 }, () => start());
      await clock.advance(4 * DURATION);
      const dying = holders.slice(0, deaths);
      const expired = Math.max(...dying.map(expiryOf));
      for (const holder of dying) holder.isDead = true;
      await clock.advance(expired - clock.monotonic() + PROMISED);
      expect(new Set(taken(waiters).map(({ lease }) => lease?.id))).toEqual(
        new Set(dying.map(({ lease }) => lease?.id)),
      );
    },
  );

  it('lets a lone waiting task find an expiry in time, too, on any page', async () => {
    const { clock, start, holders } = await scene({ reporting, held, page: 60 });
    for (const index of [0, 77, 150, 199]) {
      const waiter = start();
      await clock.advance(4 * DURATION);
      const dying = holders[index];
      if (dying === undefined) throw new Error('no such holder');
      const expired = expiryOf(dying);
      dying.isDead = true;
      await clock.advance(expired - clock.monotonic() + PROMISED);
      expect(waiter.lease?.id).toBe(dying.lease?.id);
    }
  });

  it('shows a cluster that grows', async () => {
    const { clock, bucket, start } = await scene({ reporting, held, page });
    const waiters = Array.from({ length: 60 }, () => start());
    await clock.advance(4 * DURATION);
    for (let id = held; id < held + 60; id += 1) bucket.create(`${id}.json`, '', {});
    const settings = bucket.read('cluster.json');
    bucket.replace(
      'cluster.json',
      JSON.stringify({ ...JSON.parse(settings?.body ?? ''), size: held + 60 }),
      {},
      settings?.etag ?? '',
    );
    await clock.advance(PROMISED);
    expect(taken(waiters)).toHaveLength(60);
  });

  it('shows that the cluster has shrunk: no task takes a retired id', async () => {
    const { clock, bucket, start, holders } = await scene({ reporting, held, page: 80 });
    const waiters = Array.from({ length: 100 }, () => start());
    await clock.advance(8 * DURATION);
    for (const holder of holders.filter(({ lease }) => Number(lease?.id) >= held / 2)) holder.isDead = true;
    // No task can find them expired yet.
    await clock.advance(DURATION / 2);
    const settings = bucket.read('cluster.json');
    const shrunk = { ...JSON.parse(settings?.body ?? ''), size: held / 2, generation: 1, peak: held };
    expect(bucket.replace('cluster.json', JSON.stringify(shrunk), {}, settings?.etag ?? '').status).toBe(
      'written',
    );
    await clock.advance(4 * PROMISED);
    expect(taken(waiters)).toEqual([]);
  });

  it.each([20, 500])(
    'scans everything before it reports that no id became free in time, with %i ms a request',
    async (requestMs) => {
      const { clock, bucket, start } = await scene({ reporting, held, page, requestMs });
      for (let count = 0; count < 60; count += 1) start();
      await clock.advance(4 * DURATION);
      const late = Array.from({ length: 100 }, (_, count) =>
        start({ acquireTimeoutMs: 4 * DURATION + count * 150 }),
      );
      await clock.advance(6 * DURATION);
      const pages = Math.ceil(bucket.list().objects.length / page);
      expect(pages).toBeGreaterThan(1);
      for (const { error, calls } of late) {
        expect(error).toBeInstanceOf(AcquireTimeoutError);
        const lists = calls.filter(({ call }) => call.operation === 'list').map(({ at }) => at);
        const last = lists.slice(-pages);
        expect(Math.max(...last) - Math.min(...last)).toBeLessThan(pages * requestMs + 1);
      }
    },
  );
});
