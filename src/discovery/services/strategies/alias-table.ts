import type { QuickRandom } from './quick-random.js';

/**
 * Draws indices with given weights in constant time: Walker's alias method, the table made in linear time as by M. D. Vose ("A linear
 * algorithm for generating random numbers with a given distribution", IEEE Transactions on Software Engineering 17/9, 1991).
 */
export class AliasTable {
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
