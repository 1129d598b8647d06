import { ConfigError } from '../../base/errors.js';
import { leastRecentlyFailed } from './least-recently-failed.js';
import type { StrategyFactory } from './provider-strategy.js';
import { random } from './random.js';
import { roundRobin } from './round-robin.js';
import { sticky } from './sticky.js';
import { weighted } from './weighted.js';

/** The strategies, by the names that they have in settings. */
const STRATEGIES = new Map<string, <P>() => StrategyFactory<P>>([
  ['round-robin', roundRobin],
  ['random', random],
  ['sticky', sticky],
  ['weighted', weighted],
  ['least-recently-failed', leastRecentlyFailed],
]);

/** The names that {@link parseStrategy} knows. */
export const STRATEGY_NAMES: readonly string[] = [...STRATEGIES.keys()];

/**
 * The strategy of that name, with its defaults.
 *
 * @param setting where the name comes from, as its user knows it
 * @throws {ConfigError} for any other name
 */
export function parseStrategy<P = unknown>(name: string, setting = '--strategy'): StrategyFactory<P> {
  const strategy = STRATEGIES.get(name);
  if (strategy === undefined) throw new ConfigError(setting, name, `one of ${STRATEGY_NAMES.join(', ')}`);
  return strategy<P>();
}
