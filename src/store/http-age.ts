import { CUT_MS, parseHttpDate } from './http-date.js';
import type { Interval } from './lease-store.js';

const UNKNOWN_AGE: Interval = { min: 0, max: Number.POSITIVE_INFINITY };

/**
 * How old an object was when a reply was formed, from the `Date` and `Last-Modified` headers of that same
 * reply, in milliseconds. Both are cut to whole seconds, so their difference is off by less than one second
 * either way. Unknown is `{ min: 0, max: Infinity }`.
 */
export function ageFromHeaders(
  dateHeader: string | undefined,
  lastModifiedHeader: string | undefined,
): Interval {
  const date = parseHttpDate(dateHeader);
  const modified = parseHttpDate(lastModifiedHeader);
  return date === undefined || modified === undefined ? UNKNOWN_AGE : ageBetween(date, modified, CUT_MS);
}

/**
 * How old a listed object was when the page was formed. Some servers list milliseconds, others whole seconds
 * written as `.000`: a time without a fraction is taken as cut.
 */
export function ageFromListing(dateHeader: string | undefined, lastModified: Date | undefined): Interval {
  const date = parseHttpDate(dateHeader);
  const modified = lastModified?.getTime();
  if (date === undefined || modified === undefined || Number.isNaN(modified)) return UNKNOWN_AGE;
  return ageBetween(date, modified, modified % 1000 === 0 ? CUT_MS : 0);
}

function ageBetween(date: number, modified: number, modifiedCut: number): Interval {
  // A server whose times contradict each other (written after it was read) has told nothing that a take-over
  // could rest on: min is 0.
  return { min: Math.max(0, date - modified - modifiedCut), max: Math.max(CUT_MS, date - modified + CUT_MS) };
}
