import { describe, expect, it } from 'vitest';
import { simulateRecipes } from './recipes-simulation.js';

const SEEDS = 20;

describe('shared data, written by five clients with faults between', () => {
  it('is what was written last, in chains and lists without gaps, and the same in all replicas', async () => {
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const { violation } = await simulateRecipes(seed, { scenario: 'shared-data' });
      expect(violation, `seed ${seed}`).toBeUndefined();
    }
  });
});
