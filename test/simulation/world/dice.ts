import type { RandomSource } from '../../../src/core/base/clock.js';

/**
 * Chance out of one seed. A fork depends on its parent's seed and its labels alone, not on what was drawn
 * before, so that leaving one draw out (as shrinking does) leaves every other as it was.
 */
export class Dice implements RandomSource {
  #drawn = 0;

  /** @param seed any whole number; its lower 32 bits count */
  constructor(private readonly seed: number) {}

  /** The dice of some part of the whole, named by whole numbers. */
  fork(...labels: number[]): Dice {
    let state = this.seed;
    for (const label of labels) state = mixed(Math.imul(state ^ 0x5bd1e995, 0x27d4eb2f) + label);
    return new Dice(state);
  }

  next(): number {
    this.#drawn += 1;
    return mixed(this.seed + Math.imul(this.#drawn, 0x9e3779b9)) / 2 ** 32;
  }

  hex(bytes: number): string {
    let text = '';
    while (text.length < 2 * bytes)
      text += mixed(Math.floor(this.next() * 2 ** 32))
        .toString(16)
        .padStart(8, '0');
    return text.slice(0, 2 * bytes);
  }

  /** True in the share `probability` of all cases. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Evenly from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** From `least` to `most`, small values as likely as large ones on a logarithmic scale. Both above 0. */
  magnitude(least: number, most: number): number {
    return least * (most / least) ** this.next();
  }

  /** A whole number from 0 to `count - 1`. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** One of them. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}

/** Murmur3's finalizer: every bit of the input reaches every bit of the output. Unsigned 32 bits. */
function mixed(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
