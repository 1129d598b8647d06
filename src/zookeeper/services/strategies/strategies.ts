import { checkArguments, checked, FUNCTION, TEXT } from '../../../core/base/arguments.js';
import { ConfigError } from '../../../core/base/errors.js';
import { InstanceMemory, registrationKey } from '../down-instances.js';
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

/** Settings of {@link leastRecentlyFailed}. */
export interface LeastRecentlyFailedOptions {
  /** How long a failure is remembered, in milliseconds. @default 60000 */
  readonly memoryMs?: number | undefined;
}

const DEFAULT_MEMORY_MS = 60_000;
const MAX_MEMORY_MS = 86_400_000;

/**
 * In turn the instances that have not failed recently; if all have, the one with the oldest failure. It
 * reacts to the first failure, unlike the down policy, which applies, too.
 *
 * @throws {ConfigError} when the memory is out of range
 */
export function leastRecentlyFailed<P = unknown>(
  options: LeastRecentlyFailedOptions = {},
): StrategyFactory<P> {
  const { memoryMs = DEFAULT_MEMORY_MS } = checked(options);
  if (!(memoryMs > 0 && memoryMs <= MAX_MEMORY_MS))
    throw new ConfigError('memoryMs', memoryMs, `more than 0 and at most ${MAX_MEMORY_MS} milliseconds`);
  return (context) => {
    const { clock } = context;
    const inTurn = roundRobin<P>()(context);
    /** When each failed last, on the monotonic clock. */
    const failures = new InstanceMemory<number>(clock, memoryMs);
    const failedAt = (instance: ServiceInstance<P>) => failures.get(instance) ?? Number.NEGATIVE_INFINITY;
    let seen: readonly ServiceInstance<P>[] | undefined;
    let preferred: readonly ServiceInstance<P>[] = [];
    return {
      pick(candidates) {
        if (candidates !== seen || failures.due) {
          failures.expire();
          seen = candidates;
          preferred = candidates.filter((candidate) => failures.get(candidate) === undefined);
          if (preferred.length === 0)
            preferred = [
              candidates.reduce((oldest, each) => (failedAt(each) < failedAt(oldest) ? each : oldest)),
            ];
        }
        return inTurn.pick(preferred);
      },
      noteError(instance) {
        failures.expire();
        failures.set(instance, clock.monotonic());
        seen = undefined;
      },
    };
  };
}

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
export function parseStrategy<P = unknown>(name: string, setting = 'strategy'): StrategyFactory<P> {
  checkArguments({ setting }, { setting: TEXT });
  const strategy = STRATEGIES.get(name);
  if (strategy === undefined) throw new ConfigError(setting, name, `one of ${STRATEGY_NAMES.join(', ')}`);
  return strategy<P>();
}
