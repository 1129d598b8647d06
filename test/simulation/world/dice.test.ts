import { describe, expect, it } from 'vitest';
import { Dice } from './dice.js';

const draws = (dice: Dice, count = 5) => Array.from({ length: count }, () => dice.next());

describe('dice', () => {
  it('fall the same for the same seed, and otherwise for another one', () => {
    expect(draws(new Dice(7))).toEqual(draws(new Dice(7)));
    expect(draws(new Dice(7))).not.toEqual(draws(new Dice(8)));
  });

  it('fork only by labels, whatever was drawn before', () => {
    const used = new Dice(7);
    draws(used);
    expect(draws(used.fork(3, 1))).toEqual(draws(new Dice(7).fork(3, 1)));
    expect(draws(used.fork(3, 1))).not.toEqual(draws(used.fork(1, 3)));
    expect(draws(used.fork(3))).not.toEqual(draws(used));
  });

  it('fall evenly: no tenth of the range gets more than a little above its share', () => {
    const buckets = new Array<number>(10).fill(0);
    for (let seed = 0; seed < 10_000; seed += 1) {
      const bucket = Math.floor(new Dice(seed).fork(1).next() * 10);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    for (const count of buckets) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });

  it('give hexadecimal text of the length that was asked for, which does not repeat', () => {
    const dice = new Dice(1);
    const texts = new Set(Array.from({ length: 1_000 }, () => dice.hex(12)));
    expect(texts.size).toBe(1_000);
    for (const text of texts) expect(text).toMatch(/^[0-9a-f]{24}$/);
  });
});
