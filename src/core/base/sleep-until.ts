import type { Clock } from './clock.js';

/** The longest sleep between two readings of the clock, in milliseconds. */
const LONGEST_NAP_MS = 1_000;

/**
 * Sleeps until a time of the monotonic clock, which it reads again every second: timers stop while the
 * machine is suspended, but a deadline does not. The time is asked for again as well.
 *
 * @throws `signal.reason` as soon as `signal` aborts
 */
export async function sleepUntil(
  clock: Clock,
  time: number | (() => number),
  signal?: AbortSignal,
): Promise<void> {
  signal?.throwIfAborted();
  const leftMs = () => (typeof time === 'number' ? time : time()) - clock.monotonic();
  for (let left = leftMs(); left > 0; left = leftMs()) {
    await clock.sleep(Math.min(left, LONGEST_NAP_MS), signal);
  }
}
