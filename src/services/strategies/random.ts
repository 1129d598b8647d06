import type { RandomSource } from '../../base/clock.js';
import type { ServiceInstance } from '../service-instance.js';
import type { StrategyFactory } from './provider-strategy.js';

/** Any of them, each as likely as the others. */
export function random<P = unknown>(): StrategyFactory<P> {
  return (context) => {
    const chance = new QuickRandom(context.random);
    return { pick: (candidates) => candidates[chance.below(candidates.length)] as ServiceInstance<P> };
  };
}

const UINT32 = 2 ** 32;

/**
 * Many random numbers from a few: `random` may ask the operating system each time, which takes longer than a pick. Good enough to spread
 * load, and to be guessed by whoever cares to. The generator is xorshift128 by George Marsaglia (Journal of Statistical Software 8/14, 2003).
 */
export class QuickRandom {
  #x: number;
  #y: number;
  #z: number;
  #w: number;

  constructor(random: Pick<RandomSource, 'next'>) {
    const seed = () => Math.floor(random.next() * UINT32) | 0;
    this.#x = seed();
    this.#y = seed();
    this.#z = seed();
    // All four must not be 0 at once.
    this.#w = seed() | 1;
  }

  /** A number in [0, 1), of 2³² different ones. */
  next(): number {
    const t = this.#x ^ (this.#x << 11);
    this.#x = this.#y;
    this.#y = this.#z;
    this.#z = this.#w;
    this.#w = this.#w ^ (this.#w >>> 19) ^ t ^ (t >>> 8);
    return (this.#w >>> 0) / UINT32;
  }

  /** A whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }
}
