import type { Clock, RandomSource } from '../../../core/base/clock.js';
import type { ServiceInstance } from '../instance/service-instance.js';

/** How one of several instances is chosen. One object serves one provider. */
export interface ProviderStrategy<P = unknown> {
  /**
   * Chooses one of at least one candidates, at once and in constant time. The same array as before holds the
   * same instances.
   */
  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P>;

  /** An instance has failed. It may still be among the candidates. */
  noteError?(instance: ServiceInstance<P>): void;
}

/** The context of a strategy. Its random numbers are fast, and good enough to spread load; they can be guessed. */
export interface StrategyContext {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly random: Pick<RandomSource, 'next'>;
}

/** Makes a strategy. Each provider makes its own, and a second one for retries. */
export type StrategyFactory<P = unknown> = (context: StrategyContext) => ProviderStrategy<P>;

const UINT32 = 2 ** 32;

/**
 * Many random numbers from one, without a system call each: xorshift32 by George Marsaglia (Journal of
 * Statistical Software 8/14, 2003).
 */
export class QuickRandom {
  #state: number;

  constructor(random: Pick<RandomSource, 'next'>) {
    // It must not be 0.
    this.#state = Math.floor(random.next() * UINT32) | 1;
  }

  /** A number in [0, 1). */
  next(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state;
    return (state >>> 0) / UINT32;
  }
}
