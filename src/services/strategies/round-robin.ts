import type { ServiceInstance } from '../service-instance.js';
import type { StrategyFactory } from './provider-strategy.js';

/** One after the other. The first one is drawn at random: a fleet that starts at the same time does not send its first requests to the same instance. */
export function roundRobin<P = unknown>(): StrategyFactory<P> {
  return ({ random }) => {
    /** Where to begin, as a share of all. */
    const start = random.next();
    let next: number | undefined;
    return {
      pick(candidates) {
        const count = candidates.length;
        let index = next ?? Math.floor(start * count);
        if (index >= count) index = 0;
        next = index + 1;
        return candidates[index] as ServiceInstance<P>;
      },
    };
  };
}
