import { writeFileSync } from 'node:fs';
import { it } from 'vitest';
import { simulateRecipes } from './recipes-simulation.js';

it('x', async () => {
  const r = await simulateRecipes(Number(process.env.SEED), { scenario: 'shared-data', recording: true });
  writeFileSync('/tmp/hist.txt', r.history.join('\n'));
  console.log(r.violation, [...r.counts.faults]);
}, 60000);
