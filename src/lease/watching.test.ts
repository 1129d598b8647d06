import { afterEach, describe, expect, it } from 'vitest';
import { DURATION, endScenes, looks, requests, taken, waitingScene } from '../../test/support/waiting-scene.js';
import { MemoryLeaseStore } from '../store/memory/memory-lease-store.js';
import { evictHolder } from './evict.js';
import { StoreSession } from './store-session.js';

const telling = 'telling what changed';

afterEach(endScenes);

describe('those who wait on a store that tells what changed', { timeout: 120_000 }, () => {
  it('ask once or twice for an id that was taken from its holder by force, and not again until its time has come', async () => {
    const { clock, bucket, start } = await waitingScene({ telling, held: 10 });
    const waiters = Array.from({ length: 20 }, () => start());
    await clock.advance(4 * DURATION);
    const from = clock.monotonic();
    await evictHolder(new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000), 3);
    await clock.advance(DURATION - 2_000);
    expect(Math.max(...requests(waiters, from, clock.monotonic()))).toBeLessThanOrEqual(4);
    await clock.advance(5_000);
    expect(taken(waiters).map(({ lease }) => lease?.id)).toEqual([3]);
  });

  it('look at a burst of news a few times', async () => {
    const { clock, bucket, start } = await waitingScene({ telling, held: 3 });
    const waiter = start();
    await clock.advance(4 * DURATION);
    const from = clock.monotonic();
    for (let count = 0; count < 200; count += 1) {
      const { body = '', etag = '' } = bucket.read('cluster.json') ?? {};
      bucket.replace('cluster.json', `${body} `, {}, etag);
      await clock.advance(5);
    }
    expect(looks([waiter], from)).toBeLessThanOrEqual(11);
  });

  it('do without where the store fails to tell, also at once', async () => {
    const changed = () => {
      throw new Error('cannot watch');
    };
    const { clock, start, holders } = await waitingScene({ telling, held: 3, changed });
    const waiter = start();
    await clock.advance(2 * DURATION);
    expect(waiter.error).toBeUndefined();
    await Promise.all([holders[1]?.lease?.release(), clock.advance(2 * DURATION)]);
    expect(waiter.lease).toMatchObject({ id: 1, version: 2 });
  });
});
