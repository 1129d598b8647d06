import { describe, expect, it } from 'vitest';
import { onceFleet } from '../../../support/once-fleet.js';

describe('1,000 ticks on five hosts with clocks an hour off, that are killed and lose replies', {
  timeout: 300_000,
}, () => {
  it('start at most once each', async () => {
    const { runs, faults, startsOf } = await onceFleet({ ticks: 1_000, seed: 1 });
    expect([...startsOf.values()].filter((starts) => starts.length > 1)).toEqual([]);
    expect(runs.length).toBeGreaterThan(990);
    expect(Math.min(...Object.values(faults))).toBeGreaterThan(30);
  });

  it('all run with retry while a host lives: one at a time, and none again after its success', async () => {
    const { runs, faults, startsOf, missed, overlapping } = await onceFleet({
      ...{ ticks: 1_000, seed: 2, retry: 20 },
    });
    expect({ missed, overlapping }).toEqual({ missed: [], overlapping: [] });
    for (const starts of startsOf.values()) {
      const ends = starts.map(({ end }) => end);
      expect(ends.at(-1)).toMatch(/^(done|succeeded)$/);
      expect(ends.slice(0, -1)).not.toContain('succeeded');
    }
    expect(runs.length).toBeGreaterThan(1_050);
    expect(Math.min(...Object.values(faults))).toBeGreaterThan(30);
  });
});
