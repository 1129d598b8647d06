import { afterEach, describe, expect, it } from 'vitest';
import { timeless } from '../../../../test/support/timeless-store.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import {
  DURATION,
  endScenes,
  expiryOf,
  GRACE,
  LONGEST_PAUSE,
  REQUEST,
  requests,
  waitingScene,
} from '../../../../test/support/waiting-scene.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { observedAge } from '../../store/observed-age.js';
import { type AcquireLeaseOptions, acquireLease } from './acquire-lease.js';

// On a store that reports no time of writing.

/** The jitter of a predicted expiry, and some requests. */
const SLACK = 1_000 + 5 * REQUEST;

afterEach(endScenes);

describe('a task that waits while the leases are renewed', () => {
  it.each([undefined, 3])(
    'takes the id of a killed holder a duration and a grace after it saw its last renewal (%s rows a page)',
    async (page) => {
      const { clock, start, holders } = await waitingScene({
        reporting: 'reporting nothing',
        held: 5,
        timeless: true,
        ...(page && { page }),
      });
      const waiter = start();
      await clock.advance(2 * DURATION);
      expect(waiter.lease).toBeUndefined();
      const [victim] = holders;
      if (victim !== undefined) victim.isDead = true;
      await clock.advance(4 * DURATION);
      expect(waiter.lease?.id).toBe(victim?.lease?.id);
      const late = waiter.takenAt - expiryOf(victim ?? expect.fail());
      expect(late).toBeGreaterThan(GRACE);
      // With pages it may be a duration until it sees the last renewal.
      expect(late).toBeLessThan(GRACE + (page === undefined ? LONGEST_PAUSE : DURATION) + SLACK);
    },
  );

  it('makes as few requests as on a store that reports ages', async () => {
    const { clock, start } = await waitingScene({ reporting: 'reporting nothing', held: 5, timeless: true });
    const waiter = start();
    await clock.advance(3 * DURATION);
    const now = clock.monotonic();
    await clock.advance(10 * DURATION);
    expect(requests([waiter], now, clock.monotonic())[0]).toBeLessThan(45);
    expect(waiter.calls.filter(({ call }) => call.operation === 'read').length).toBeLessThan(5);
  });
});

describe('a task that begins when all holders are dead', () => {
  const scene = async () => {
    const clock = new VirtualClock();
    const memory = new MemoryLeaseStore({ clock });
    const store = observedAge(timeless(memory), clock);
    const acquire = (over: Partial<AcquireLeaseOptions>) => {
      const wanted = { nodes: 1, durationMs: DURATION, graceMs: GRACE };
      return acquireLease({ ...wanted, store, clock, random: seededRandom(1), taskId: 't', ...over });
    };
    const cut = memory.connect((call, apply) =>
      call.operation === 'replace' ? Promise.reject(new Error('cut off')) : Promise.resolve(apply()),
    );
    await acquire({ store: cut, taskId: 'dead' });
    await clock.advance(3_600_000);
    return { clock, store, acquire };
  };

  it('takes an id a duration and a grace after its first scan', async () => {
    const { clock, acquire } = await scene();
    const begun = clock.monotonic();
    let tookMs: number | undefined;
    void acquire({}).then(() => {
      tookMs = clock.monotonic() - begun;
    });
    await clock.advance(DURATION + GRACE);
    expect(tookMs).toBeUndefined();
    await clock.advance(SLACK);
    expect(tookMs).toBeGreaterThan(DURATION + GRACE);
  });

  it('gets an error that says how long to wait, if it gives up before', async () => {
    const { acquire } = await scene();
    await expect(acquire({ acquireTimeoutMs: 0 })).rejects.toThrow(
      'an expired lease is found after 16000 ms of waiting',
    );
  });

  it('takes it at once if the process has scanned before, through the same store', async () => {
    const { clock, acquire } = await scene();
    await expect(acquire({ acquireTimeoutMs: 0 })).rejects.toThrow();
    await clock.advance(DURATION + GRACE + 1);
    expect((await acquire({ acquireTimeoutMs: 0 })).version).toBe(2);
  });
});
