import type { Clock } from '../../clock.js';

/**
 * Tells whether a moment has come, for whoever asks very often. The monotonic clock is looked at once in a millisecond of the wall clock at
 * the most, which is quicker to tell: what the monotonic one reads may be kept in a file of the system. The wall clock decides nothing.
 */
export class Alarm {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  #at = Number.POSITIVE_INFINITY;
  #looked: number | undefined;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  /** @param at on the monotonic clock; infinite for never, and then no clock is looked at */
  set(at: number): void {
    this.#at = at;
    this.#looked = undefined;
  }

  /** Whether the moment has come: at the latest a millisecond after it has. */
  get due(): boolean {
    if (this.#at === Number.POSITIVE_INFINITY) return false;
    const now = this.#clock.now();
    if (now === this.#looked) return false;
    this.#looked = now;
    return this.#clock.monotonic() >= this.#at;
  }
}
