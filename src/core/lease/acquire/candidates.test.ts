import { describe, expect, it } from 'vitest';
import { leaseKey } from '../model/lease-state.js';
import { CandidateChoice } from './candidates.js';

describe('the pause after lost races', () => {
  /** The longest jitter. */
  const longest = (requestMs: number) => {
    const choice = new CandidateChoice({ next: () => 0.999_999, hex: () => '' });
    return Array.from({ length: 8 }, () => choice.pauseAfterLossMs(requestMs));
  };

  it('grows with the time of a request, up to a maximum', () => {
    const pauses = longest(20);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses.at(-1)).toBeGreaterThan(pauses[0] as number);
    expect(pauses.at(-1)).toBeLessThan(1_000);
  });

  it('takes no more than two or three seconds of a start, however slow the store is', () => {
    for (const requestMs of [200, 1_000, 5_000, 60_000])
      expect(Math.max(...longest(requestMs))).toBeLessThanOrEqual(3_000);
    expect(Math.max(...longest(1_000))).toBeGreaterThanOrEqual(2_000);
  });
});

describe('the first id that is tried', () => {
  const candidates = () =>
    Array.from({ length: 600 }, (_, id) => ({ id, key: leaseKey(id), row: undefined }));
  const firstOf = (free: number, used: number) => {
    const choice = new CandidateChoice({ next: () => 0.5, hex: () => '' });
    choice.see({ free, used });
    return choice.next(candidates()).id;
  };

  it.each([
    ['the lowest one', { free: 511, used: 31 }, 0],
    ['the lowest one where few are left', { free: 31, used: 600 }, 0],
    ['any one in a large fleet', { free: 32, used: 32 }, 300],
    ['any one in a large cluster that no task has used yet', { free: 512, used: 0 }, 300],
  ])('is %s: %o', (_which, { free, used }, id) => {
    expect(firstOf(free, used)).toBe(id);
  });
});
