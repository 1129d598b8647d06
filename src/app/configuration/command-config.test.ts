import { describe, expect, it } from 'vitest';
import { spreadDelay } from './command-config.js';

describe('the times of the nodes', () => {
  it.each([2, 3, 5, 16, 20, 100, 1_000])('are apart from each other, for %i nodes', (nodes) => {
    const times = Array.from({ length: nodes }, (_, id) => spreadDelay(id, 10_000)).sort((a, b) => a - b);
    expect(times[0]).toBe(0);
    expect(times.at(-1)).toBeLessThan(10_000);
    const gaps = times.map((time, at) => (times[at + 1] ?? 10_000) - time);
    expect(Math.min(...gaps)).toBeGreaterThan(10_000 / nodes / 3);
    expect(Math.max(...gaps)).toBeLessThan((10_000 / nodes) * 2);
  });

  it('are all at once without a spread', () => {
    expect(spreadDelay(7, 0)).toBe(0);
  });
});
