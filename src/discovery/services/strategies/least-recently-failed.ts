import { ConfigError } from '../../../errors.js';
import { Alarm } from '../alarm.js';
import type { ProviderStrategy } from '../provider-strategy.js';
import { RegistrationMap } from '../registration-map.js';
import type { ServiceInstance } from '../service-instance.js';
import { roundRobin } from './round-robin.js';
import type { StrategyContext, StrategyFactory } from './strategy-factory.js';

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

interface Failure {
  readonly instance: ServiceInstance;
  readonly at: number;
}

class LeastRecentlyFailed<P> implements ProviderStrategy<P> {
  /** The latest failure of each, the one that is the longest ago first. */
  readonly #failures = new RegistrationMap<Failure>();
  /** What the preferred ones were taken from; undefined where that has to be done again. */
  #candidates: readonly ServiceInstance<P>[] | undefined;
  #preferred: readonly ServiceInstance<P>[] = [];
  /** When the next failure is forgotten. */
  readonly #forgetting: Alarm;

  constructor(
    private readonly clock: StrategyContext['clock'],
    private readonly memoryMs: number,
    private readonly inTurn: ProviderStrategy<P>,
  ) {
    this.#forgetting = new Alarm(clock);
  }

  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    if (candidates !== this.#candidates || this.#forgetting.due) this.#prefer(candidates);
    return this.inTurn.pick(this.#preferred);
  }

  noteError(instance: ServiceInstance<P>): void {
    const at = this.clock.monotonic();
    this.#forget(at);
    this.#failures.set(instance, { instance, at });
    this.#candidates = undefined;
  }

  #prefer(candidates: readonly ServiceInstance<P>[]): void {
    if (this.#failures.size > 0) this.#forget(this.clock.monotonic());
    const calm = this.#failures.size === 0 ? candidates : candidates.filter((candidate) => this.#failures.get(candidate) === undefined);
    this.#preferred = calm.length > 0 ? calm : [this.#oldestOf(candidates)];
    this.#candidates = candidates;
    const first = this.#failures.first;
    this.#forgetting.set(first === undefined ? Number.POSITIVE_INFINITY : first.at + this.memoryMs);
  }

  #oldestOf(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    const failedAt = (candidate: ServiceInstance<P>) => this.#failures.get(candidate)?.at ?? Number.NEGATIVE_INFINITY;
    return candidates.reduce((oldest, candidate) => (failedAt(candidate) < failedAt(oldest) ? candidate : oldest));
  }

  #forget(now: number): void {
    for (let first = this.#failures.first; first !== undefined && now >= first.at + this.memoryMs; first = this.#failures.first)
      this.#failures.delete(first.instance);
  }
}
