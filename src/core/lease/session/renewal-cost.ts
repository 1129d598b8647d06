import { leaseTiming } from '../model/lease-timing.js';

/** What 1,000 requests cost in S3 Standard, us-east-1, in dollars: a PUT or LIST, and a GET. */
export const S3_STANDARD_PRICES = { put: 0.005, get: 0.0004 };

/** A month of 30 days, in milliseconds. */
const MONTH_MS = 30 * 86_400_000;

/** How a lease is renewed. */
interface Renewing {
  readonly durationMs: number;
  /**
   * How often the cluster's settings are read, in milliseconds.
   * @default at each renewal
   */
  readonly settingsIntervalMs?: number | undefined;
}

/**
 * The requests of one held node id within `ms` milliseconds, without retries. Each renewal is a PUT (rule 6).
 * The renewals nearest to the interval also read the settings with a GET. The release is one more PUT.
 */
function renewalRequests(
  { durationMs, settingsIntervalMs = 0 }: Renewing,
  ms: number,
): { put: number; get: number } {
  const { renewEveryMs } = leaseTiming(durationMs);
  const renewals = ms / renewEveryMs;
  const renewalsPerLook = Math.max(1, Math.ceil(settingsIntervalMs / renewEveryMs - 0.5));
  return { put: renewals, get: renewals / renewalsPerLook };
}

/** A number of held node ids. */
interface HeldNodes extends Renewing {
  readonly nodes: number;
}

/** What it costs to hold node ids for a month. */
export interface MonthlyCost {
  /** Whole numbers, for all node ids together. */
  readonly put: number;
  readonly get: number;
  readonly dollars: number;
}

/** The cost of renewing node ids for a month of 30 days, without starting and waiting tasks. */
export function monthlyCost({ nodes, ...renewing }: HeldNodes): MonthlyCost {
  const requests = renewalRequests(renewing, MONTH_MS);
  const put = Math.round(nodes * requests.put);
  const get = Math.round(nodes * requests.get);
  return { put, get, dollars: (put * S3_STANDARD_PRICES.put + get * S3_STANDARD_PRICES.get) / 1_000 };
}
