import type { Clock, RandomSource } from '../../../clock.js';
import type { ProviderStrategy } from '../provider-strategy.js';

/** What a strategy may need. */
export interface StrategyContext {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly random: Pick<RandomSource, 'next'>;
}

/** Makes a strategy; each provider makes its own, and a second one for retries. */
export type StrategyFactory<P = unknown> = (context: StrategyContext) => ProviderStrategy<P>;
