import { ConfigError } from '../../base/errors.js';
import { InstanceMemory } from '../instance-memory.js';
import type { ServiceInstance } from '../service-instance.js';
import type { ProviderStrategy, StrategyContext, StrategyFactory } from './provider-strategy.js';
import { roundRobin } from './round-robin.js';

/** Settings of {@link leastRecentlyFailed}. */
export interface LeastRecentlyFailedOptions {
  /** How long a failure is remembered, in milliseconds. @default 60000 */
  readonly memoryMs?: number | undefined;
}

const DEFAULT_MEMORY_MS = 60_000;
const MAX_MEMORY_MS = 86_400_000;

/**
 * Those that have not failed lately, one after the other; when all have, the one whose failure is the longest ago. Unlike the down policy,
 * which it goes along with, it heeds the first failure already.
 *
 * @throws {ConfigError} when the memory is out of range
 */
export function leastRecentlyFailed<P = unknown>({ memoryMs = DEFAULT_MEMORY_MS }: LeastRecentlyFailedOptions = {}): StrategyFactory<P> {
  if (!(memoryMs > 0 && memoryMs <= MAX_MEMORY_MS))
    throw new ConfigError('memoryMs', memoryMs, `more than 0 and at most ${MAX_MEMORY_MS} milliseconds`);
  return (context) => new LeastRecentlyFailed(context.clock, memoryMs, roundRobin<P>()(context));
}

class LeastRecentlyFailed<P> implements ProviderStrategy<P> {
  /** When each failed last, on the monotonic clock. */
  readonly #failures: InstanceMemory<number>;
  /** What the preferred ones were taken from; undefined where that has to be done again. */
  #candidates: readonly ServiceInstance<P>[] | undefined;
  #preferred: readonly ServiceInstance<P>[] = [];

  constructor(
    private readonly clock: StrategyContext['clock'],
    memoryMs: number,
    private readonly inTurn: ProviderStrategy<P>,
  ) {
    this.#failures = new InstanceMemory(clock, memoryMs);
  }

  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    if (candidates !== this.#candidates || this.#failures.due) this.#prefer(candidates);
    return this.inTurn.pick(this.#preferred);
  }

  noteError(instance: ServiceInstance<P>): void {
    this.#failures.expire();
    this.#failures.set(instance, this.clock.monotonic());
    this.#candidates = undefined;
  }

  #prefer(candidates: readonly ServiceInstance<P>[]): void {
    this.#failures.expire();
    const calm = this.#failures.size === 0 ? candidates : candidates.filter((candidate) => this.#failures.get(candidate) === undefined);
    this.#preferred = calm.length > 0 ? calm : [this.#oldestOf(candidates)];
    this.#candidates = candidates;
  }

  #oldestOf(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    const failedAt = (candidate: ServiceInstance<P>) => this.#failures.get(candidate) ?? Number.NEGATIVE_INFINITY;
    return candidates.reduce((oldest, candidate) => (failedAt(candidate) < failedAt(oldest) ? candidate : oldest));
  }
}
