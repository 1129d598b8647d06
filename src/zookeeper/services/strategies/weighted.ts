import { checked, FUNCTION, maybe } from '../../../core/base/arguments.js';
import type { ServiceInstance } from '../instance/service-instance.js';
import type { StrategyContext, StrategyFactory } from './provider-strategy.js';

/** Settings of {@link weighted}. */
export interface WeightedOptions<P> {
  /**
   * The weight of an instance, from 0 to 1,000,000: one of weight 2 is chosen twice as often as one of weight
   * 1. Undefined counts as 1. Called once for each instance after every change.
   *
   * @default `weight` of the payload, a number or the text of one
   */
  readonly weightOf?: ((instance: ServiceInstance<P>) => number | undefined) | undefined;
  /**
   * Receives invalid weights: negative, not a number, too large. Once for each value that was read. Must not
   * throw and must not block.
   */
  readonly onBadWeight?: ((instance: ServiceInstance<P>, weight: unknown) => void) | undefined;
}

const DEFAULT_WEIGHT = 1;
const MAX_WEIGHT = 1_000_000;

/**
 * Any instance, each as likely as its weight says; one of weight 0 only where all are. A larger weight counts
 * as 1,000,000, anything else that is no weight as 1: its registrant wants the instance to be found.
 */
export function weighted<P = unknown>(options: WeightedOptions<P> = {}): StrategyFactory<P> {
  const { weightOf = weightOfPayload, onBadWeight } = checked(options, { weightOf: maybe(FUNCTION) });
  const reported = new WeakSet<ServiceInstance<P>>();
  const weigh = (instance: ServiceInstance<P>): number => {
    let weight: unknown;
    try {
      weight = weightOf(instance);
    } catch (error) {
      // A foreign payload must not keep the other instances from being picked.
      weight = error;
    }
    if (weight === undefined) return DEFAULT_WEIGHT;
    if (typeof weight === 'number' && weight >= 0 && weight <= MAX_WEIGHT) return weight;
    if (!reported.has(instance)) onBadWeight?.(instance, weight);
    reported.add(instance);
    return typeof weight === 'number' && weight > MAX_WEIGHT ? MAX_WEIGHT : DEFAULT_WEIGHT;
  };
  return ({ random }) => {
    let seen: readonly ServiceInstance<P>[] | undefined;
    let draw = aliasTable([]);
    return {
      pick(candidates) {
        if (candidates !== seen) {
          const weights = candidates.map(weigh);
          draw = aliasTable(
            weights.some((weight) => weight > 0) ? weights : weights.map(() => DEFAULT_WEIGHT),
          );
          seen = candidates;
        }
        return candidates[draw(random)] as ServiceInstance<P>;
      },
    };
  };
}

function weightOfPayload({ payload }: ServiceInstance): number | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined;
  const { weight } = payload as { readonly weight?: unknown };
  // Java services often write maps from text to text.
  const number = typeof weight === 'string' && /^\d+(\.\d+)?$/.test(weight) ? Number(weight) : weight;
  return (number ?? undefined) as number | undefined;
}

/**
 * Draws indices with given weights in constant time: Walker's alias method, the table made in linear time as
 * by M. D. Vose ("A linear algorithm for generating random numbers with a given distribution", IEEE
 * Transactions on Software Engineering 17/9, 1991).
 *
 * @param weights finite, none negative, and not all 0
 */
function aliasTable(weights: readonly number[]): (random: StrategyContext['random']) => number {
  const count = weights.length;
  const sum = weights.reduce((total, weight) => total + weight, 0);
  /** How much of each index is its own; the rest belongs to its alias. */
  const share = Float64Array.from(weights, (weight) => (weight * count) / sum);
  const alias = Uint32Array.from(weights, (_, index) => index);
  const isSmall = (index: number) => (share[index] as number) < 1;
  const small = [...weights.keys()].filter(isSmall);
  const large = [...weights.keys()].filter((index) => !isSmall(index));
  // The rest of either differs from 1 by rounding only, and is its own alias.
  while (small.length > 0 && large.length > 0) {
    const [little, much] = [small.pop() as number, large.pop() as number];
    alias[little] = much;
    share[much] = (share[much] as number) + (share[little] as number) - 1;
    (isSmall(much) ? small : large).push(much);
  }
  return (random) => {
    const index = Math.floor(random.next() * count);
    return random.next() < (share[index] as number) ? index : (alias[index] as number);
  };
}
