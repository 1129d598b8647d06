import { describe, expect, it } from 'vitest';
import { drawConditions } from './conditions.js';
import { GROWN_FROM } from './scale-plan.js';

const SEEDS = Array.from({ length: 400 }, (_, seed) => drawConditions(seed));
const SCALING = SEEDS.map(({ ids, quietAt, widens, plan }) => ({
  ...{ ids, quietAt, widens },
  scales: plan.filter(({ kind }) => kind === 'scale'),
})).filter(({ scales }) => scales.length > 0);

describe('the sizes that operators want', () => {
  it('are drawn in about a third of the seeds, up and down, and below what there was at first', () => {
    expect(SCALING.length / SEEDS.length).toBeGreaterThan(0.25);
    expect(SCALING.length / SEEDS.length).toBeLessThan(0.45);
    const steps = SCALING.flatMap(({ ids, scales }) =>
      scales.map(({ size = 0 }, at) => Math.sign(size - (scales[at - 1]?.size ?? ids))),
    );
    expect(new Set(steps)).toEqual(new Set([-1, 0, 1]));
    expect(SCALING.some(({ ids, scales }) => scales.some(({ size = 0 }) => size < ids))).toBe(true);
  });

  it('are drawn in every seed of many hosts', () => {
    for (let seed = 0; seed < 50; seed += 1) {
      const { plan } = drawConditions(seed, { hosts: 64, ids: 24 });
      expect(plan.some(({ kind }) => kind === 'scale')).toBe(true);
    }
  });

  it('are sizes that a cluster can have, wanted before the faults are over, some at the same time', () => {
    for (const { quietAt, scales } of SCALING) {
      for (const { at, size = 0 } of scales) {
        expect(size).toBeGreaterThanOrEqual(1);
        expect(at).toBeLessThan(quietAt);
      }
    }
    expect(SCALING.some(({ scales }) => scales.some(({ at }, next) => at === scales[next + 1]?.at))).toBe(
      true,
    );
  });

  it('never take an id away that an outside party holds', () => {
    const widening = SCALING.filter(({ widens }) => widens);
    expect(widening.length).toBeGreaterThan(0);
    for (const { scales } of widening)
      for (const { size = 0 } of scales) expect(size).toBeGreaterThanOrEqual(GROWN_FROM);
  });

  it('are left as they are where only other faults are wanted', () => {
    for (let seed = 0; seed < 100; seed += 1) {
      const { plan, widens } = drawConditions(seed, {}, new Set(['pause']));
      expect([widens, ...plan.filter(({ kind }) => kind === 'scale')]).toEqual([false]);
    }
  });
});
