import { expect, it } from 'vitest';
import { backoffMs } from './backoff.js';

it('doubles the pause with each failure up to the longest, and jitter shortens it by up to half', () => {
  const pauses = (chance: number) =>
    [1, 2, 3, 4, 5_000].map((failures) =>
      backoffMs({ first: 100, max: 500 }, failures, { next: () => chance }),
    );
  expect(pauses(0)).toEqual([50, 100, 200, 250, 250]);
  expect(pauses(0.999999).map(Math.round)).toEqual([100, 200, 400, 500, 500]);
});

it('makes no pause before any failure, nor after those that are followed by an attempt at once', () => {
  const pauses = [0, 1, 2, 3].map((failures) =>
    backoffMs({ first: 100, max: 500, atOnce: 1 }, failures, { next: () => 0 }),
  );
  expect(pauses).toEqual([0, 0, 50, 100]);
});
