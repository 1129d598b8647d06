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
 * How long to wait after this many consecutive failures, 1 or more. Jitter shortens it by up to half, so that
 * tasks do not retry at the same moment.
 */
export function backoffMs(
  { first, max }: Backoff,
  failures: number,
  random: Pick<RandomSource, 'next'>,
): number {
  return Math.min(max, first * 2 ** Math.min(failures - 1, 30)) * (0.5 + random.next() / 2);
}
