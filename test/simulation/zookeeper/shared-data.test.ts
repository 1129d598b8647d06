import { describe, expect, it } from 'vitest';
import { simulateRecipes } from './recipes-simulation.js';

const FIRST = Number(process.env.NODELEASE_TEST_FIRST_SEED ?? 0);
const SEEDS = Number(process.env.NODELEASE_TEST_SEEDS ?? 40);

describe('shared data, written by five clients with faults between', () => {
  it('is what was written last, in chains and lists without gaps, and the same in all replicas', async () => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
      const { violation } = await simulateRecipes(seed, { scenario: 'shared-data' });
      expect(violation, `seed ${seed}`).toBeUndefined();
    }
  }, 120_000);
});
