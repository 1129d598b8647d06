import type { RandomSource } from './clock.js';

/**
 * The pauses between attempts, in milliseconds: `first` after one failure, twice as long after each further
 * one, `max` at the longest.
 */
export interface Backoff {
  readonly first: number;
  readonly max: number;
}

/**
 * How long to wait after this many failures in a row, 1 or more. By chance up to half shorter, so that tasks
 * do not retry at one moment.
 */
export function backoffMs(
  { first, max }: Backoff,
  failures: number,
  random: Pick<RandomSource, 'next'>,
): number {
  return Math.min(max, first * 2 ** Math.min(failures - 1, 30)) * (0.5 + random.next() / 2);
}
