import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { LockHandle } from './lock-handle.js';
import { semaphore } from './semaphore.js';

describe('a semaphore', () => {
  const PATH = '/permits';

  function scene(leases: number) {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    let seed = 0;
    const contender = () => {
      seed += 1;
      return semaphore(zookeeper, PATH, { clock, random: seededRandom(seed), leases, data: 'me' });
    };
    /** What becomes of an acquisition, and of a change of all that is watched. */
    const acquired = async (acquiring = contender().acquire()) => {
      const attempt: { held?: LockHandle; error?: unknown } = {};
      acquiring.then(
        (held) => Object.assign(attempt, { held }),
        (error: unknown) => Object.assign(attempt, { error }),
      );
      await clock.advance(0);
      return attempt;
    };
    const change = () => {
      zookeeper.fireWatches();
      return clock.advance(0);
    };
    const below = (name: string) =>
      [...zookeeper.znodes.keys()].flatMap((path) =>
        path.startsWith(`${PATH}/${name}/`) ? [path.replace(/^.*-(?=.+-)/, '')] : [],
      );
    return { clock, zookeeper, contender, acquired, change, below };
  }

  it('has as many holders as leases, and one that waits for them under the lock', async () => {
    const { zookeeper, acquired, change, below } = scene(2);
    const holders = [await acquired(), await acquired()];
    expect(holders.map(({ held }) => held?.isValid())).toEqual([true, true]);
    expect(below('leases')).toEqual(['lease-0000000002', 'lease-0000000004']);
    expect(zookeeper.znodes.get(holders[0]?.held?.path ?? '')?.data.toString()).toBe('me');
    const [third, fourth] = [await acquired(), await acquired()];
    expect([below('locks'), below('leases').length]).toEqual([['lock-0000000005', 'lock-0000000007'], 3]);
    zookeeper.calls.length = 0;
    await change();
    expect([third.held, fourth.held, zookeeper.calls]).toEqual([undefined, undefined, []]);
    await holders[0]?.held?.release();
    await change();
    expect([third.held?.isValid(), fourth.held]).toEqual([true, undefined]);
    await third.held?.release();
    await change();
    await change();
    expect(fourth.held?.isValid()).toBe(true);
    expect([below('locks'), below('leases').length]).toEqual([[], 2]);
  });

  it('is not acquired by one that does not wait, or no longer, and of which nothing is left', async () => {
    const { clock, contender, acquired, below } = scene(1);
    await acquired();
    const over = new AbortController();
    const attempts = [
      await acquired(contender().acquire({ timeoutMs: 0 })),
      await acquired(contender().acquire({ signal: over.signal })),
      await acquired(contender().acquire({ timeoutMs: 0 })),
    ];
    over.abort('enough');
    await clock.advance(0);
    attempts.push(await acquired(contender().acquire({ timeoutMs: 100 })));
    await clock.advance(100);
    const late = (ms: number) => ({
      code: 'WAIT_TIMEOUT',
      message: expect.stringMatching(`/permits.* could not be acquired within ${ms} ms$`),
    });
    expect(attempts.map(({ error }) => error)).toMatchObject([late(0), 'enough', late(0), late(100)]);
    expect([below('locks'), below('leases')]).toEqual([[], ['lease-0000000002']]);
    expect(getEventListeners(over.signal, 'abort')).toEqual([]);
  });

  it('is waited for from the end of the queue again where the lock is lost meanwhile', async () => {
    const { clock, zookeeper, acquired, change, below } = scene(1);
    const { held } = await acquired();
    const second = await acquired();
    await clock.advance(200);
    for (const path of zookeeper.znodes.keys()) if (path.includes('/locks/')) zookeeper.znodes.delete(path);
    await change();
    expect([below('locks'), below('leases')]).toEqual([
      ['lock-0000000005'],
      ['lease-0000000002', 'lease-0000000006'],
    ]);
    await held?.release();
    await change();
    expect(second).toMatchObject({ held: expect.anything() });
  });

  it.each([0, 1_000_001, 1.5])('cannot have %d leases', (leases) => {
    expect(() => scene(leases).contender()).toThrow('leases: expected a whole number from 1 to 1000000');
  });

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
