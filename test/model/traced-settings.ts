import type { Bounds } from './lease-model.js';
import type { Traced } from './lease-trace.js';

/** Clocks are compared with some rounding, in milliseconds. */
export const ROUNDING_MS = 0.001;

/** A thousandth: the clocks may drift apart by as much. */
const leastGrace = (lasts: number) => Math.ceil(lasts / 1_000);

/** The settings so far: a task may go by any of them. */
export class TracedSettings {
  bounds: Bounds;
  readonly #durations = new Set<number>();
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  constructor() {
    this.bounds = this.#bounds();
  }

  add({ durationMs, graceMs }: Traced<'settings'>): void {
    this.#durations.add(durationMs);
    this.#least = Math.min(this.#least, graceMs);
    this.#most = Math.max(this.#most, graceMs);
    this.bounds = this.#bounds();
  }

  #bounds(): Bounds {
    const durations = [...this.#durations];
    const least = this.#least;
    const most = this.#most;
    return {
      durations,
      tuned: true,
      // In ticks an age of n is a little more than n.
      grace: (lasts) => ({
        least: Math.max(least, leastGrace(lasts)) + ROUNDING_MS,
        most: Math.max(most, leastGrace(lasts)) + ROUNDING_MS,
      }),
      margin: (lasts) => lasts / 6 - ROUNDING_MS,
      // Each task counts by its own clock.
      lags: [0],
      late: 'any',
    };
  }
}
