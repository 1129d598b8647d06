import { checkArguments, FUNCTION, TEXT } from '../../../core/base/arguments.js';
import { ConfigError } from '../../../core/base/errors.js';
import { registrationKey } from '../down-instances.js';
import type { ServiceInstance } from '../instance/service-instance.js';
import type { StrategyFactory } from './provider-strategy.js';
import { weighted } from './weighted.js';

/**
 * Each instance in turn. The first is chosen at random, so that tasks that start together do not send their
 * first requests to the same instance.
 */
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

/** Any instance, each as likely as the others. */
export function random<P = unknown>(): StrategyFactory<P> {
  return (context) => ({
    pick: (candidates) =>
      candidates[Math.floor(context.random.next() * candidates.length)] as ServiceInstance<P>,
  });
}

/**
 * The same instance for as long as it may be chosen, also when it is updated. One that is registered again at
 * another time or address is another.
 *
 * @param first chooses the one to stay with
 */
export function sticky<P = unknown>(first: StrategyFactory<P> = random()): StrategyFactory<P> {
  checkArguments({ first }, { first: FUNCTION });
  return (context) => {
    const chooser = first(context);
    let seen: readonly ServiceInstance<P>[] | undefined;
    let choice: ServiceInstance<P> | undefined;
    return {
      pick(candidates) {
        if (candidates === seen && choice !== undefined) return choice;
        const key = choice && registrationKey(choice);
        choice =
          candidates.find((candidate) => registrationKey(candidate) === key) ?? chooser.pick(candidates);
        seen = candidates;
        return choice;
      },
      noteError: (instance) => chooser.noteError?.(instance),
    };
  };
}

/** The strategies, by the names that they have in settings. */
const STRATEGIES = new Map<string, <P>() => StrategyFactory<P>>([
  ['round-robin', roundRobin],
  ['random', random],
  ['sticky', sticky],
  ['weighted', weighted],
]);

/** The names that {@link parseStrategy} knows. */
export const STRATEGY_NAMES: readonly string[] = [...STRATEGIES.keys()];

/**
 * The strategy of that name, with its defaults.
 *
 * @param setting where the name comes from, as its user knows it
 * @throws {ConfigError} for any other name
 */
export function parseStrategy<P = unknown>(name: string, setting = 'strategy'): StrategyFactory<P> {
  checkArguments({ setting }, { setting: TEXT });
  const strategy = STRATEGIES.get(name);
  if (strategy === undefined) throw new ConfigError(setting, name, `one of ${STRATEGY_NAMES.join(', ')}`);
  return strategy<P>();
}
