import type { Interval } from './lease-store.js';

/**
 * HTTP dates are cut to whole seconds: the true time is up to this much later, in milliseconds, their finest
 * unit.
 */
const CUT_MS = 999;

/** A difference of clocks that every server accepts, in milliseconds; they refuse from some minutes on. */
const HARMLESS_SKEW_MS = 60_000;

/**
 * The time in an HTTP date (RFC 9110, 5.6.7), in milliseconds since the Unix epoch; NaN for anything else. A date
 * without a zone, which `Date.parse` takes as local time, would invent an age, and so would the zero of Unix or Go,
 * which stands for no time.
 */
export function parseHttpDate(header = ''): number {
  const isHttpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} (?!0|1970)\d{4} \d{2}:\d{2}:\d{2} GMT$/.test(
    header,
  );
  return isHttpDate ? Date.parse(header) : Number.NaN;
}

/**
 * The server's time when it formed a reply, from its `Date` header, in milliseconds since the Unix epoch.
 * Unbounded if the header is missing.
 */
export function storeTime(dateHeader: string | undefined): Interval {
  const date = parseHttpDate(dateHeader);
  return Number.isNaN(date)
    ? { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY }
    : { min: date, max: date + CUT_MS };
}

/**
 * Whether a time that this host has used is far from the server's, by the `Date` header of its reply. False
 * if one of them is unknown.
 * @param used NaN if it is unknown
 */
export function isClockWrong(dateHeader: string | undefined, used: number): boolean {
  return Math.abs(parseHttpDate(dateHeader) - used) > HARMLESS_SKEW_MS;
}

/**
 * How old an object was when a reply was formed, from the `Date` and `Last-Modified` headers of that same
 * reply, in milliseconds. Both are cut to whole seconds, so their difference is off by less than one second
 * either way. Unknown is `{ min: 0, max: Infinity }`.
 */
export function ageFromHeaders(
  dateHeader: string | undefined,
  lastModifiedHeader: string | undefined,
): Interval {
  return ageBetween(parseHttpDate(lastModifiedHeader), dateHeader, CUT_MS);
}

/**
 * How old a listed object was when the page was formed. Some servers list milliseconds, others whole seconds
 * written as `.000`: a time without a fraction is taken as cut.
 */
export function ageFromListing(dateHeader: string | undefined, lastModified: Date | undefined): Interval {
  const modified = lastModified?.getTime() ?? Number.NaN;
  return ageBetween(modified, dateHeader, cutOf(modified));
}

/** When a listed object was written, in milliseconds since the Unix epoch. */
export function timeFromListing(lastModified: Date | undefined): Interval {
  const min = lastModified?.getTime() ?? Number.NEGATIVE_INFINITY;
  return { min, max: lastModified ? min + cutOf(min) : Number.POSITIVE_INFINITY };
}

const cutOf = (modified: number) => (modified % 1000 === 0 ? CUT_MS : 0);

function ageBetween(modified: number, dateHeader: string | undefined, modifiedCut: number): Interval {
  const age = parseHttpDate(dateHeader) - modified;
  if (Number.isNaN(age)) return { min: 0, max: Number.POSITIVE_INFINITY };
  // A server whose times contradict each other (written after it was read) has reported nothing that a
  // take-over could rest on: min is 0.
  return { min: Math.max(0, age - modifiedCut), max: Math.max(CUT_MS, age + CUT_MS) };
}
