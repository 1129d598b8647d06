import type { Clock, RandomSource } from '../../core/base/clock.js';
import { type Backoff, backoffMs } from '../../core/base/retry.js';

/** How long a task takes nothing more after its failed starts in a row, in renewal periods. */
const PAUSES: Backoff = { first: 1, max: 60 };

interface StartLimitOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly random: RandomSource;
  readonly renewEveryMs: number;
}

/**
 * The most shards that this task takes (T9). After a failed start it takes nothing more, for a pause that
 * grows; then one more, on trial, and then any number again.
 */
export class StartLimit {
  #limit: number | undefined;
  #failures = 0;
  /** When the pause is over, on the monotonic clock. */
  #until = Number.NEGATIVE_INFINITY;
  /** Whether the next start decides. */
  isTrial = false;

  constructor(private readonly options: StartLimitOptions) {}

  /** @param running how many shards run here */
  failed(running: number): void {
    const { clock, random, renewEveryMs } = this.options;
    const now = clock.monotonic();
    this.#limit = running;
    this.isTrial = false;
    // Those that fail together are one failure.
    if (now < this.#until) return;
    this.#failures = now - this.#until > PAUSES.max * renewEveryMs ? 1 : this.#failures + 1;
    this.#until = now + renewEveryMs * backoffMs(PAUSES, this.#failures, random);
  }

  /**
   * The limit now; undefined for none.
   *
   * @param running how many shards run here, and `proven` for a renewal period at least
   * @param share how many shards each member should have
   */
  at(running: number, proven: number, share: number): number | undefined {
    if (this.#limit === undefined) return undefined;
    this.#limit = Math.max(this.#limit, running);
    if (this.options.clock.monotonic() < this.#until) return this.#limit;
    if (!this.isTrial) this.#limit += 1;
    this.isTrial = true;
    if (this.#limit >= share || proven >= this.#limit) {
      this.#limit = undefined;
      this.isTrial = false;
    }
    return this.#limit;
  }
}
