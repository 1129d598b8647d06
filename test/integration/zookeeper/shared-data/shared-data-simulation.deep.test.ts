import { describe, expect, it } from 'vitest';
import { simulateRecipes } from '../../../simulation/zookeeper/recipes-simulation.js';

const [FIRST, SEEDS] = [1_000, 300];

describe('shared data, written by five clients with faults between', () => {
  it('is what was written last, in chains and lists without gaps, and the same in all replicas, seed after seed', async () => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
      const { violation } = await simulateRecipes(seed, { scenario: 'shared-data' });
      expect(violation, `seed ${seed}`).toBeUndefined();
    }
  }, 600_000);
});
