import type { ServiceInstance } from '../service-instance.js';
import type { ProviderStrategy, StrategyFactory } from './provider-strategy.js';

/** One after the other. The first one is drawn at random: a fleet that starts at the same time does not send its first requests to the same instance. */
export function roundRobin<P = unknown>(): StrategyFactory<P> {
  return ({ random }) => new RoundRobin(random.next());
}

class RoundRobin<P> implements ProviderStrategy<P> {
  /** Negative before the first pick. */
  #next = -1;

  /** @param start where to begin, as a share of all, in [0, 1) */
  constructor(private readonly start: number) {}

  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    const count = candidates.length;
    let index = this.#next;
    if (index < 0) index = Math.floor(this.start * count);
    else if (index >= count) index = 0;
    this.#next = index + 1;
    return candidates[index] as ServiceInstance<P>;
  }
}
