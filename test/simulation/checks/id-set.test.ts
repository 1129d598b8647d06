import { describe, expect, it } from 'vitest';
import { Dice } from '../world/dice.js';
import { IdSet } from './id-set.js';

describe('a set of ids', () => {
  it('knows each of them again, however many there are, and takes none for another one', () => {
    const dice = new Dice(1);
    const known = new Set<string>();
    const ids = new IdSet();
    for (let i = 0; i < 50_000; i += 1) {
      // Few high halves and low ones in steps, as ids have them, so that there are repetitions and near ones.
      const [high, low] = [26_000_000 + dice.below(3), 256 * dice.below(20_000) + dice.below(2)];
      const text = `${high} ${low}`;
      expect(ids.add(high, low)).toBe(!known.has(text));
      known.add(text);
    }
    expect(ids.size).toBe(known.size);
  });

  it('distinguishes halves that have changed places', () => {
    const ids = new IdSet();
    expect(ids.add(7, 9)).toBe(true);
    expect(ids.add(9, 7)).toBe(true);
    expect(ids.add(7, 9)).toBe(false);
  });
});
