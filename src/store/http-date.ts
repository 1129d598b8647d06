import type { Interval } from './lease-store.js';

/**
 * HTTP dates are cut to whole seconds: the true time is up to this much later, in milliseconds, their finest
 * unit.
 */
export const CUT_MS = 999;

const UNKNOWN_TIME: Interval = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY };

/**
 * The server's time when it formed a reply, from its `Date` header, in milliseconds since the Unix epoch.
 * Unbounded when it did not tell.
 */
export function storeTime(dateHeader: string | undefined): Interval {
  const date = parseHttpDate(dateHeader);
  return date === undefined ? UNKNOWN_TIME : { min: date, max: date + CUT_MS };
}

/**
 * The format of HTTP (RFC 9110, 5.6.7). `Date.parse` alone would also take dates without a zone, as local
 * time, and so make up an age.
 */
export function parseHttpDate(header: string | undefined): number | undefined {
  if (
    header === undefined ||
    !/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(header)
  )
    return undefined;
  const time = Date.parse(header);
  return Number.isNaN(time) ? undefined : time;
}
