import { expect, it } from 'vitest';
import { ENGINES } from '../engines.js';
import { PLANTS } from '../plants.js';
import { drawConditions, FAULT_KINDS } from '../world/conditions.js';
import { COMPARED_FAULTS, isDrawn } from './compared-faults.js';
import type { Cell } from './comparison-cell.js';
import { comparisonTable, firstSeeds } from './comparison-table.js';
import { CONTESTANTS } from './contestants.js';

const contestants = ['plain', 'shipped'].map((engine) => ({ title: `the ${engine} one`, engine, lacks: [] }));
const faults = { name: 'outage', only: ['outage', 'release'], needed: 'outage' } as const;
const broken: Cell = {
  seeds: 2_000,
  broken: [
    { invariant: 'exclusion', seeds: 1_999, first: 3, text: 'two at once' },
    { invariant: 'liveness', seeds: 1, first: 77, text: 'no task' },
  ],
};

it('shows what holds, what broke in which share of the seeds, and what is not offered', () => {
  const table = comparisonTable(contestants, [
    { faults, cells: [broken, { seeds: 2_000, broken: [] }] },
    { faults: { ...faults, name: 'forced-release' }, cells: [undefined, { seeds: 2_000, broken: [] }] },
  ]);
  expect(table).toBe(
    [
      '| fault | the plain one | the shipped one |',
      '| --- | --- | --- |',
      '| outage | **exclusion 99.9 %**, liveness 0.05 % | holds |',
      '| forced-release | not offered | holds |',
      '',
    ].join('\n'),
  );
});

it('names the first seed of everything that broke', () => {
  const text = firstSeeds(contestants, [{ faults, cells: [broken, { seeds: 2_000, broken: [] }] }]);
  expect(text).toBe(
    [
      '- the plain one, outage: exclusion in 1999 of 2000 seeds, first in seed 3: two at once',
      '- the plain one, outage: liveness in 1 of 2000 seeds, first in seed 77: no task',
      '',
    ].join('\n'),
  );
});

it('compares under every kind of fault, in seeds that have it', () => {
  expect(new Set(COMPARED_FAULTS.map(({ needed }) => needed))).toEqual(new Set([...FAULT_KINDS, undefined]));
  for (const { name, only, needed } of COMPARED_FAULTS) {
    if (needed === undefined) continue;
    const seeds = Array.from({ length: 100 }, (_, seed) =>
      isDrawn(needed, drawConditions(seed, {}, new Set(only))),
    );
    expect(seeds, name).toContain(true);
    const without = new Set(FAULT_KINDS.filter((kind) => kind !== needed));
    expect(
      Array.from({ length: 100 }, (_, seed) => isDrawn(needed, drawConditions(seed, {}, without))),
      name,
    ).not.toContain(true);
  }
});

it('compares engines and plants that there are', () => {
  for (const { engine, plant } of CONTESTANTS) {
    expect(Object.keys(ENGINES)).toContain(engine);
    if (plant !== undefined) expect(PLANTS.map(({ name }) => name)).toContain(plant);
  }
});
