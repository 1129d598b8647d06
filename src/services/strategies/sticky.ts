import { registrationKey } from '../instance-memory.js';
import type { ServiceInstance } from '../service-instance.js';
import type { ProviderStrategy, StrategyFactory } from './provider-strategy.js';
import { random } from './random.js';

/**
 * The same one always, for as long as it may be chosen: also when it is updated, no longer when it is disabled, down, or registered again
 * at another time or address.
 *
 * @param first chooses the one to stay with
 */
export function sticky<P = unknown>(first: StrategyFactory<P> = random()): StrategyFactory<P> {
  return (context) => new Sticky(first(context));
}

class Sticky<P> implements ProviderStrategy<P> {
  #candidates: readonly ServiceInstance<P>[] | undefined;
  #choice: ServiceInstance<P> | undefined;

  constructor(private readonly first: ProviderStrategy<P>) {}

  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    if (candidates === this.#candidates && this.#choice !== undefined) return this.#choice;
    const choice = this.#among(candidates) ?? this.first.pick(candidates);
    this.#candidates = candidates;
    this.#choice = choice;
    return choice;
  }

  noteError(instance: ServiceInstance<P>): void {
    this.first.noteError?.(instance);
  }

  #among(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> | undefined {
    const choice = this.#choice;
    if (choice === undefined) return undefined;
    const key = registrationKey(choice);
    return candidates.find((candidate) => candidate.id === choice.id && registrationKey(candidate) === key);
  }
}
