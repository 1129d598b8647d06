import type { Clock } from '../../base/clock.js';
import type { Interval } from '../../store/lease-store.js';

/** How far apart two clocks may run, as a share: generous against the 200 ppm of a bad quartz. */
export const DRIFT = 500e-6;

/**
 * The time of another clock, as its answers tell: each bounds how far it is from the monotonic clock here,
 * and several bounds narrow each other. This host's wall clock takes no part.
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
   * @param told milliseconds since the Unix epoch; not finite where nothing was told
   */
  learn(told: Interval, sentAt: number): void {
    if (!Number.isFinite(told.min) || !Number.isFinite(told.max)) return;
    const now = this.clock.monotonic();
    const known = this.now();
    const heard = { min: told.min - now, max: told.max - sentAt };
    const narrowed = { min: Math.max(heard.min, known.min - now), max: Math.min(heard.max, known.max - now) };
    // Nothing in common: the clock was stepped, or another server with another clock answered. The newest
    // word counts.
    this.#offset = { interval: narrowed.min <= narrowed.max ? narrowed : heard, learnedAt: now };
  }
}
