import type { RandomSource } from '../../src/core/base/clock.js';

/** A kind of request, as S3 bills it and as it takes its time. */
export type Operation = 'get' | 'put' | 'list' | 'delete';

/** How long one request takes: a logarithmic normal distribution. */
interface Spread {
  /** Milliseconds; half of the requests take longer. */
  readonly medianMs: number;
  /** Milliseconds; one request in a hundred takes longer. */
  readonly p99Ms: number;
}

/**
 * What a client in the region of its bucket sees of S3 Standard, with small objects: a LIST is one page of up
 * to 1,000 keys.
 */
export const S3_LATENCY: Readonly<Record<Operation, Spread>> = {
  get: { medianMs: 20, p99Ms: 100 },
  put: { medianMs: 40, p99Ms: 140 },
  list: { medianMs: 65, p99Ms: 200 },
  delete: { medianMs: 30, p99Ms: 120 },
};

/** Standard deviations between the median and the 99th percentile of a normal distribution. */
const P99_DEVIATIONS = 2.3263;

/** How long the next request of that kind takes, in milliseconds. */
export function drawLatencyMs(operation: Operation, random: RandomSource): number {
  const { medianMs, p99Ms } = S3_LATENCY[operation];
  return medianMs * (p99Ms / medianMs) ** (standardNormal(random) / P99_DEVIATIONS);
}

/** Box and Muller's transformation. */
function standardNormal(random: RandomSource): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
