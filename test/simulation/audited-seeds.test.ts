import { expect, it } from 'vitest';
import { audited, type KeptStates, keepStates } from '../support/kept-history.js';
import { type Engine, shippedEngine } from './engine.js';
import { simulate } from './simulation.js';
import type { World } from './world/world.js';

/** What a fleet has written to the store in a seed; undefined where not all ids are in its bucket. */
async function writtenBy(seed: number, engine: Engine): Promise<KeptStates | undefined> {
  let states: KeptStates | undefined;
  const onWorld = ({ bucket, outside }: World) => {
    if (outside === undefined) states = keepStates(bucket);
  };
  expect((await simulate(seed, { engine, onWorld })).violation).toBeUndefined();
  return states;
}

it('raises no alarm over what 20 simulated fleets have written, under every fault', async () => {
  const ends = { released: 0, expired: 0, evicted: 0, retired: 0, held: 0 };
  for (let seed = 0; seed < 20; seed += 1) {
    const states = await writtenBy(seed, { ...shippedEngine, knowsEpochs: false });
    if (states === undefined) continue;
    const { breaches, tenures } = audited(states);
    expect({ seed, breaches }).toEqual({ seed, breaches: [] });
    for (const end of Object.keys(ends) as (keyof typeof ends)[]) ends[end] += tenures[end];
  }
  expect(Math.min(...Object.values(ends))).toBeGreaterThan(0);
});
