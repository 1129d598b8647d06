import type { Clock } from '../../base/clock.js';
import type { Interval } from '../../store/lease-store.js';

/** How far apart two clocks may run, as a share: generous against the 200 ppm of a bad quartz. */
export const DRIFT = 500e-6;

/**
 * The time of another clock, from its answers. Each answer bounds the distance of that clock from the
 * monotonic clock here, and several answers narrow the bounds. This host's wall clock is not used.
 */
export class StoreTime {
  #offset: { interval: Interval; learnedAt: number } | undefined;

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /**
   * The other clock now, in milliseconds since the Unix epoch; from 0 to infinity where nothing is known yet.
   */
  now(): Interval {
    if (this.#offset === undefined) return { min: 0, max: Number.POSITIVE_INFINITY };
    const now = this.clock.monotonic();
    const slack = (now - this.#offset.learnedAt) * DRIFT;
    return { min: now + this.#offset.interval.min - slack, max: now + this.#offset.interval.max + slack };
  }

  /**
   * Learns what the other clock said at some moment between `sentAt`, on the monotonic clock, and now.
   *
   * @param time milliseconds since the Unix epoch; not finite if the answer had no time
   */
  learn(time: Interval, sentAt: number): void {
    if (!Number.isFinite(time.min) || !Number.isFinite(time.max)) return;
    const now = this.clock.monotonic();
    const { min, max } = this.now();
    const known = { min: min - now, max: max - now };
    const heard = { min: time.min - now, max: time.max - sentAt };
    const narrowed = { min: Math.max(heard.min, known.min), max: Math.min(heard.max, known.max) };
    const agrees = narrowed.min <= narrowed.max;
    this.#offset = { interval: agrees ? narrowed : corrected(known, heard), learnedAt: now };
  }
}

/**
 * The bounds where the newest answer has nothing in common with what was known: the clock was stepped, or
 * another server with another clock answered. The answer counts. An earlier one is taken to be no less exact
 * than what was known, since a pause of this process while it waited makes its lower bound far too low.
 */
function corrected(known: Interval, { min, max }: Interval): Interval {
  const isEarlier = max < known.min;
  return { min: isEarlier ? Math.max(min, max - (known.max - known.min)) : min, max };
}
