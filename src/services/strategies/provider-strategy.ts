import type { Clock, RandomSource } from '../../base/clock.js';
import type { ServiceInstance } from '../service-instance.js';

/** How one of several instances is chosen. One object serves one provider. */
export interface ProviderStrategy<P = unknown> {
  /**
   * Chooses one, without waiting for anything, in constant time.
   *
   * @param candidates those that may be chosen, at least one. The same array as the last time means that they are the same; what takes
   *   longer to prepare is prepared when it is another
   */
  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P>;

  /** An instance has failed somebody. It may still be among the candidates. */
  noteError?(instance: ServiceInstance<P>): void;
}

/** What a strategy may need. */
export interface StrategyContext {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly random: Pick<RandomSource, 'next'>;
}

/** Makes a strategy; each provider makes its own, and a second one for retries. */
export type StrategyFactory<P = unknown> = (context: StrategyContext) => ProviderStrategy<P>;
