/** The times of one tenure, all in milliseconds and all derived from the lease's duration. */
export interface LeaseTiming {
  readonly durationMs: number;
  /** From the sending of one renewal to the next (rule 6). */
  readonly renewEveryMs: number;
  /** How long before the deadline a holder that cannot renew gives up, so that its work can end in time (rule 7). */
  readonly stopMarginMs: number;
  /** How long a request of a renewal's first attempt may take, those of further ones twice as long: several of them, hanging, fit in before the stop point. */
  readonly requestTimeoutMs: number;
  /** First and longest pause between two attempts to renew. */
  readonly retryBaseMs: number;
  readonly retryCapMs: number;
}

/** Renew after a third; from then until five sixths, retry; the last sixth is for ending the work. */
export function leaseTiming(durationMs: number): LeaseTiming {
  return {
    durationMs,
    renewEveryMs: durationMs / 3,
    stopMarginMs: durationMs / 6,
    requestTimeoutMs: Math.min(Math.max(durationMs / 12, Math.min(durationMs / 6, 500)), 5_000),
    retryBaseMs: Math.min(200, durationMs / 60),
    retryCapMs: Math.min(2_000, durationMs / 15),
  };
}
