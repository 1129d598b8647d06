import { describe, expect, it } from 'vitest';
import { ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { semaphore } from './semaphore.js';

describe('a semaphore', () => {
  it('says that it is held already, also where another contender is ahead', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const options = { clock, random: seededRandom(1) };
    const own = semaphore(zookeeper, '/permits', { ...options, leases: 1 });
    const acquiring = own.acquire();
    await clock.advance(0);
    const held = await acquiring;
    const next = semaphore(zookeeper, '/permits', {
      ...options,
      random: seededRandom(2),
      leases: 1,
    }).acquire();
    await clock.advance(100);
    let outcome: unknown;
    own.acquire().catch((error) => {
      outcome = error;
    });
    await clock.advance(30_000);
    expect(outcome).toMatchObject({ fault: 'already-held' });
    await held.release();
    zookeeper.fireWatches();
    await clock.advance(1_000);
    await (await next).release();
  });
});
