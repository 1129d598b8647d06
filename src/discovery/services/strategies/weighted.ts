import type { ProviderStrategy } from '../provider-strategy.js';
import type { ServiceInstance } from '../service-instance.js';
import { AliasTable } from './alias-table.js';
import { QuickRandom } from './quick-random.js';
import type { StrategyFactory } from './strategy-factory.js';

/** Settings of {@link weighted}. */
export interface WeightedOptions<P> {
  /**
   * The weight of an instance, from 0 to 1,000,000: one of weight 2 is chosen twice as often as one of weight 1. Undefined for an instance
   * that names none: then it is 1. Asked once for each instance whenever something has changed.
   *
   * @default `weight` of the payload, a number or the text of one
   */
  readonly weightOf?: ((instance: ServiceInstance<P>) => number | undefined) | undefined;
  /** Told of what is no weight: negative, not a number, too large. Once for each value that was read. Must not throw and must not block. */
  readonly onBadWeight?: ((instance: ServiceInstance<P>, weight: unknown) => void) | undefined;
}

/** What an instance weighs that does not say. */
const USUAL_WEIGHT = 1;
const MAX_WEIGHT = 1_000_000;

/**
 * Any of them, each as likely as its weight says. Of weight 0 only where all are. What is too large counts as 1,000,000; what is no weight
 * at all counts as 1, since whoever wrote it wanted the instance to be found.
 */
export function weighted<P = unknown>(options: WeightedOptions<P> = {}): StrategyFactory<P> {
  const reported = new WeakSet<ServiceInstance<P>>();
  const report = (instance: ServiceInstance<P>, weight: unknown) => {
    if (reported.has(instance)) return;
    reported.add(instance);
    options.onBadWeight?.(instance, weight);
  };
  return ({ random }) => new Weighted(options.weightOf ?? weightOfPayload, report, new QuickRandom(random));
}

class Weighted<P> implements ProviderStrategy<P> {
  #candidates: readonly ServiceInstance<P>[] | undefined;
  #table: AliasTable | undefined;

  constructor(
    private readonly weightOf: (instance: ServiceInstance<P>) => unknown,
    private readonly report: (instance: ServiceInstance<P>, weight: unknown) => void,
    private readonly chance: QuickRandom,
  ) {}

  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P> {
    if (candidates !== this.#candidates) this.#prepare(candidates);
    const index = this.#table?.draw(this.chance) ?? this.chance.below(candidates.length);
    return candidates[index] as ServiceInstance<P>;
  }

  #prepare(candidates: readonly ServiceInstance<P>[]): void {
    const weights = candidates.map((candidate) => this.#weigh(candidate));
    this.#candidates = candidates;
    this.#table = weights.every((weight) => weight === weights[0]) ? undefined : new AliasTable(weights);
  }

  #weigh(instance: ServiceInstance<P>): number {
    let weight: unknown;
    try {
      weight = this.weightOf(instance);
    } catch (error) {
      // Somebody else's payload must not keep everybody from being picked.
      weight = error;
    }
    if (weight === undefined) return USUAL_WEIGHT;
    if (typeof weight === 'number' && weight >= 0 && weight <= MAX_WEIGHT) return weight;
    this.report(instance, weight);
    return typeof weight === 'number' && weight > MAX_WEIGHT ? MAX_WEIGHT : USUAL_WEIGHT;
  }
}

function weightOfPayload({ payload }: ServiceInstance): unknown {
  if (typeof payload !== 'object' || payload === null) return undefined;
  const { weight } = payload as { readonly weight?: unknown };
  // Java services often write maps from text to text.
  return typeof weight === 'string' && /^\d+(\.\d+)?$/.test(weight) ? Number(weight) : (weight ?? undefined);
}
