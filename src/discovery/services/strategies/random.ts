import type { ProviderStrategy } from '../provider-strategy.js';
import type { ServiceInstance } from '../service-instance.js';
import { QuickRandom } from './quick-random.js';
import type { StrategyFactory } from './strategy-factory.js';

/** Any of them, each as likely as the others. */
export function random<P = unknown>(): StrategyFactory<P> {
  return (context) => new Random(new QuickRandom(context.random));
}

class Random<P> implements ProviderStrategy<P> {
  constructor(private readonly chance: QuickRandom) {}

  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    return candidates[this.chance.below(candidates.length)] as ServiceInstance<P>;
  }
}
