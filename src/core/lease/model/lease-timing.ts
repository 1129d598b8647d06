import type { Backoff } from '../../base/retry.js';
import { leavesTime, type TenureLostError } from './lease.js';

/** The times of one tenure, all in milliseconds and all derived from the lease's duration. */
export interface LeaseTiming {
  /** From the sending of one renewal to the next (rule 6). */
  readonly renewEveryMs: number;
  /**
   * How long before the deadline a holder that cannot renew gives up, so that its work can end in time (rule
   * 7).
   */
  readonly stopMarginMs: number;
  /**
   * Timeout of a request in the first attempt of a renewal; twice as long in later attempts. Several requests
   * that hang fit in before the stop point.
   */
  readonly requestTimeoutMs: number;
  /** Between two attempts to renew. */
  readonly backoff: Backoff;
}

/** Renew after a third of the duration, retry until five sixths, and end the work in the last sixth. */
export function leaseTiming(durationMs: number): LeaseTiming {
  return {
    renewEveryMs: durationMs / 3,
    stopMarginMs: durationMs / 6,
    requestTimeoutMs: Math.min(Math.max(durationMs / 12, Math.min(durationMs / 6, 500)), 5_000),
    backoff: { first: Math.min(200, durationMs / 60), max: Math.min(2_000, durationMs / 15) },
  };
}

/**
 * Share of the time left before the deadline in which work may end in order. In the rest it is ended by force
 * (rule 7).
 */
const ORDERLY_SHARE = 0.8;

/**
 * How long work may continue after its lease was lost, in milliseconds; 0 if another task may hold the id
 * already.
 *
 * @param now the monotonic clock, which is also that of the error's deadline
 */
export function graceAfterLoss(error: TenureLostError, now: number): number {
  return leavesTime(error.reason) ? Math.max(0, (error.deadline - now) * ORDERLY_SHARE) : 0;
}
