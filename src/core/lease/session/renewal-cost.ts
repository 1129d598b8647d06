import { leaseTiming } from '../model/lease-timing.js';

/** What 1,000 requests cost in S3 Standard, us-east-1, in dollars: a PUT or LIST, and a GET. */
export const S3_STANDARD_PRICES = { put: 0.005, get: 0.0004 };

/** A month of 30 days, in milliseconds. */
const MONTH_MS = 30 * 86_400_000;

/** Node ids that are held, and how their leases are renewed. */
interface Renewing {
  readonly nodes: number;
  readonly durationMs: number;
  /**
   * How often the cluster's settings are read, in milliseconds.
   * @default at each renewal
   */
  readonly settingsIntervalMs?: number | undefined;
}

/**
 * The requests that renew all node ids for a month of 30 days, without retries, and without starting and
 * waiting tasks. Each renewal is a PUT (rule 6). The renewals nearest to the interval also read the settings
 * with a GET.
 */
export function monthlyRequests({ nodes, durationMs, settingsIntervalMs = 0 }: Renewing): {
  put: number;
  get: number;
} {
  const { renewEveryMs } = leaseTiming(durationMs);
  const renewals = (nodes * MONTH_MS) / renewEveryMs;
  const renewalsPerLook = Math.max(1, Math.ceil(settingsIntervalMs / renewEveryMs - 0.5));
  return { put: Math.round(renewals), get: Math.round(renewals / renewalsPerLook) };
}
