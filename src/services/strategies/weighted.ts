import type { ServiceInstance } from '../service-instance.js';
import type { ProviderStrategy, StrategyFactory } from './provider-strategy.js';
import { QuickRandom } from './random.js';

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

/**
 * Draws indices with given weights in constant time: Walker's alias method, the table made in linear time as by M. D. Vose ("A linear
 * algorithm for generating random numbers with a given distribution", IEEE Transactions on Software Engineering 17/9, 1991).
 */
class AliasTable {
  readonly #share: Float64Array;
  readonly #alias: Uint32Array;

  /** @param weights at least one, finite, none negative, and not all 0 */
  constructor(weights: readonly number[]) {
    const count = weights.length;
    this.#share = new Float64Array(count);
    this.#alias = new Uint32Array(count);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    const small: number[] = [];
    const large: number[] = [];
    for (const [index, weight] of weights.entries()) {
      const share = (weight * count) / sum;
      this.#share[index] = share;
      (share < 1 ? small : large).push(index);
    }
    for (;;) {
      const [little, much] = [small.pop(), large.pop()];
      if (little === undefined || much === undefined) {
        // What is left differs from 1 by rounding only.
        for (const index of [little, much, ...small, ...large]) if (index !== undefined) this.#share[index] = 1;
        return;
      }
      this.#alias[little] = much;
      const rest = (this.#share[much] as number) + (this.#share[little] as number) - 1;
      this.#share[much] = rest;
      (rest < 1 ? small : large).push(much);
    }
  }

  draw(chance: QuickRandom): number {
    const index = chance.below(this.#share.length);
    return chance.next() < (this.#share[index] as number) ? index : (this.#alias[index] as number);
  }
}
