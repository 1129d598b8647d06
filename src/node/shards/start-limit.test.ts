import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { StartLimit } from './start-limit.js';

const RENEW_MS = 1_000;
/** Shards that each member should have: far more than run in most tests. */
const SHARE = 10;

/** Pauses are as long as they may be. */
function scene() {
  const clock = new VirtualClock();
  const random = { next: () => 1, hex: () => '' };
  const limit = new StartLimit({ clock, random, renewEveryMs: RENEW_MS });
  const later = async (ms: number, running: number, proven = 0, share = SHARE) => {
    await clock.advance(ms);
    return [limit.at(running, proven, share), limit.isTrial];
  };
  return { clock, limit, later };
}

describe('the most shards that a task takes (T9)', () => {
  it('are any before a start has failed', async () => {
    expect(await scene().later(0, 5)).toEqual([undefined, false]);
  });

  it('are those that run, for a pause, then one more on trial, and any once all have run well', async () => {
    const { limit, later } = scene();
    limit.failed(3);
    expect(await later(0, 2)).toEqual([3, false]);
    expect(await later(0, 4)).toEqual([4, false]);
    expect(await later(RENEW_MS - 1, 4)).toEqual([4, false]);
    expect(await later(1, 4)).toEqual([5, true]);
    expect(await later(0, 4)).toEqual([5, true]);
    expect(await later(0, 5, 4)).toEqual([5, true]);
    expect(await later(0, 5, 5)).toEqual([undefined, false]);
    expect(await later(0, 5)).toEqual([undefined, false]);
  });

  it.each([
    [5, [4, true]],
    [4, [undefined, false]],
    [3, [undefined, false]],
  ])('are any after the pause where the share of each is %i', async (share, expected) => {
    const { limit, later } = scene();
    limit.failed(3);
    expect(await later(RENEW_MS, 3, 0, share)).toEqual(expected);
  });

  it('are those that run after a trial that has failed, for twice the pause', async () => {
    const { limit, later } = scene();
    limit.failed(3);
    expect(await later(RENEW_MS, 3)).toEqual([4, true]);
    limit.failed(2);
    expect(await later(2 * RENEW_MS - 1, 2)).toEqual([2, false]);
    expect(await later(1, 2)).toEqual([3, true]);
  });

  it('are as few after starts that fail together as after one', async () => {
    const { clock, limit, later } = scene();
    limit.failed(3);
    await clock.advance(RENEW_MS / 2);
    limit.failed(2);
    expect(await later(RENEW_MS / 2 - 1, 2)).toEqual([2, false]);
    expect(await later(1, 2)).toEqual([3, true]);
  });

  it.each([
    [0, 60],
    [60 * RENEW_MS, 60],
    [60 * RENEW_MS + 1, 1],
  ])('are few for a pause that grows to 60 renewal periods; %i ms after it, for %i', async (ms, expected) => {
    const { clock, limit, later } = scene();
    const pause = async () => {
      limit.failed(0);
      let periods = 0;
      for (; (await later(0, 0))[0] === 0; periods += 1) await clock.advance(RENEW_MS);
      return periods;
    };
    for (const periods of [1, 2, 4, 8, 16, 32, 60]) expect(await pause()).toBe(periods);
    await clock.advance(ms);
    expect(await pause()).toBe(expected);
  });
});
