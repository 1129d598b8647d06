import { describe, expect, it } from 'vitest';
import { Draw } from './draw.js';

describe('the pause after races that were lost', () => {
  /** Chance at its worst. */
  const longest = (requestMs: number) => {
    const draw = new Draw({ next: () => 0.999_999, hex: () => '' });
    return Array.from({ length: 8 }, () => draw.spreadMs(requestMs));
  };

  it('grows with the requests that a look costs, and not for ever', () => {
    const pauses = longest(20);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses.at(-1)).toBeGreaterThan(pauses[0] as number);
    expect(pauses.at(-1)).toBeLessThan(1_000);
  });

  it('takes no more than two or three seconds of a start, however slow the store is', () => {
    for (const requestMs of [200, 1_000, 5_000, 60_000]) expect(Math.max(...longest(requestMs))).toBeLessThanOrEqual(3_000);
    expect(Math.max(...longest(1_000))).toBeGreaterThanOrEqual(2_000);
  });
});
