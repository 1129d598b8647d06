import { parseHttpDate } from './http-date.js';

/** A difference of clocks that no server minds, in milliseconds; they refuse from some minutes on. */
const HARMLESS_SKEW_MS = 60_000;

/**
 * Whether a time that this host has used is far from the server's, by the `Date` header of its reply. False
 * where one of them is unknown.
 */
export function isClockWrong(dateHeader: string | undefined, used: number | undefined): boolean {
  const date = parseHttpDate(dateHeader);
  return date !== undefined && used !== undefined && Math.abs(date - used) > HARMLESS_SKEW_MS;
}
