import type { LeaseLostError } from './lease.js';

/** The share of the time left before the deadline that work may use to end in order; the rest is for ending it by force (rule 7). */
const ORDERLY_SHARE = 0.8;

/**
 * How long work may go on after its lease was lost, in milliseconds: none where another task may hold the id already.
 *
 * @param now the monotonic clock, which the error's deadline is told by
 */
export function graceAfterLoss(error: LeaseLostError, now: number): number {
  return error.reason === 'unreachable' ? Math.max(0, (error.deadline - now) * ORDERLY_SHARE) : 0;
}
