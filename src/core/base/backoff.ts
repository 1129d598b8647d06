import type { RandomSource } from './clock.js';

/**
 * The pauses between attempts, in milliseconds: `first` after one failure, twice as long after each further
 * one, `max` at the longest.
 */
export interface Backoff {
  readonly first: number;
  readonly max: number;
  /** Number of failures that are followed by another attempt without a pause. @default 0 */
  readonly atOnce?: number;
}

/** The pauses while a server is away. */
export const SERVER_AWAY: Backoff = { first: 100, max: 2_000 };
/** The same where a caller waits for the first success, or for each further one. */
export const CALLER_WAITS: Backoff = { first: 100, max: 1_000 };
/** The same for work in the background, which no caller waits for. */
export const IN_BACKGROUND: Backoff = { first: 100, max: 5_000 };
/** The pauses after a lost race for one object: the winner is done in a few milliseconds. */
export const LOST_RACE: Backoff = { first: 5, max: 200 };

/**
 * How long to wait after this many consecutive failures, 1 or more. Jitter shortens it by up to half, so that
 * tasks do not retry at the same moment.
 */
export function backoffMs(
  { first, max, atOnce = 0 }: Backoff,
  failures: number,
  random: Pick<RandomSource, 'next'>,
): number {
  const paused = failures - atOnce;
  return paused < 1 ? 0 : Math.min(max, first * 2 ** Math.min(paused - 1, 30)) * (0.5 + random.next() / 2);
}
