import type { Backoff } from '../../base/backoff.js';
import { leavesTime, type TenureLostError } from './lease.js';

/** The times of one tenure, all in milliseconds and all derived from the lease's duration. */
export interface LeaseTiming {
  readonly durationMs: number;
  /** From the sending of one renewal to the next (rule 6). */
  readonly renewEveryMs: number;
  /**
   * How long before the deadline a holder that cannot renew gives up, so that its work can end in time (rule
   * 7).
   */
  readonly stopMarginMs: number;
  /**
   * How long a request of a renewal's first attempt may take; in further attempts twice as long. Several that
   * hang fit in before the stop point.
   */
  readonly requestTimeoutMs: number;
  /** Between two attempts to renew. */
  readonly backoff: Backoff;
}

/** Renew after a third; from then until five sixths, retry; the last sixth is for ending the work. */
export function leaseTiming(durationMs: number): LeaseTiming {
  return {
    durationMs,
    renewEveryMs: durationMs / 3,
    stopMarginMs: durationMs / 6,
    requestTimeoutMs: Math.min(Math.max(durationMs / 12, Math.min(durationMs / 6, 500)), 5_000),
    backoff: { first: Math.min(200, durationMs / 60), max: Math.min(2_000, durationMs / 15) },
  };
}

/**
 * The share of the time left before the deadline that work may use to end in order; the rest is for ending it
 * by force (rule 7).
 */
const ORDERLY_SHARE = 0.8;

/**
 * How long work may go on after its lease was lost, in milliseconds: none where another task may hold the id
 * already.
 *
 * @param now on the monotonic clock, as the error's deadline
 */
export function graceAfterLoss(error: TenureLostError, now: number): number {
  return leavesTime(error.reason) ? Math.max(0, (error.deadline - now) * ORDERLY_SHARE) : 0;
}
