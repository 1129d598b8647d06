import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENGINES, RECIPES } from '../simulation/engines.js';
import { simulate } from '../simulation/simulation.js';
import { useQuickAbort } from '../simulation/world/quick-abort.js';
import { simulateRecipes } from '../simulation/zookeeper/recipes-simulation.js';

import { job } from './job.js';

const SEEDS = 24;
/** Seeds of one test. */
const CHUNK = 3;

let undo: (() => void) | undefined;
beforeAll(() => {
  undo = useQuickAbort();
});
afterAll(() => undo?.());

const run = (name: string, seed: number) => {
  const engine = ENGINES[name];
  return name === RECIPES || engine === undefined ? simulateRecipes(seed) : simulate(seed, { engine });
};

describe.each(job.engines)('engine %s', (engine) => {
  const firsts = Array.from({ length: SEEDS / CHUNK }, (_, index) => index * CHUNK);
  it.each(firsts)(`keeps its promises in ${CHUNK} seeds from %i`, async (first) => {
    for (let seed = first; seed < first + CHUNK; seed += 1)
      expect((await run(engine, seed)).violation, `seed ${seed}`).toBeUndefined();
  });
});
