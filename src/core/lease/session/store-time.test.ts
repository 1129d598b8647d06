import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { Interval } from '../../store/lease-store.js';
import { DRIFT, StoreTime } from './store-time.js';

const NOON = Date.UTC(2026, 10, 26, 12);

/** A clock that is `behindMs` behind noon, seen through answers that took so long. */
function answers(clock: VirtualClock, time: StoreTime, cutMs = 0) {
  const start = clock.monotonic();
  return async (tookMs: number, behindMs = 0) => {
    const sentAt = clock.monotonic();
    const said = NOON + sentAt - start - behindMs;
    await clock.advance(tookMs);
    time.learn({ min: said, max: said + cutMs }, sentAt);
    const { min, max } = time.now();
    const now = NOON + clock.monotonic() - start;
    return { min: Math.round(min - now), max: Math.round(max - now) } satisfies Interval;
  };
}

it('several answers narrow the bounds, and a slow one does not widen them by more than the drift', async () => {
  const clock = new VirtualClock();
  const hear = answers(clock, new StoreTime(clock), 1_000);
  expect(await hear(20)).toEqual({ min: -20, max: 1_000 });
  expect(await hear(5)).toEqual({ min: -5, max: 1_000 });
  expect(await hear(10_000)).toEqual({ min: -5 - 10_000 * DRIFT, max: 1_000 });
});

it('the newest answer counts where the clock was stepped', async () => {
  const clock = new VirtualClock();
  const hear = answers(clock, new StoreTime(clock));
  await hear(20);
  expect(await hear(30, -5_000)).toEqual({ min: 4_970, max: 5_000 });
  expect((await hear(30, 5_000)).max).toBe(-5_000);
});

it('a pause does not set the time back where servers disagree', async () => {
  const clock = new VirtualClock();
  const hear = answers(clock, new StoreTime(clock));
  await hear(20);
  const { min, max } = await hear(9_000, 100);
  expect(max).toBe(-100);
  expect(min).toBeGreaterThan(-150);
});
