import { ConfigError } from '../base/errors.js';

/** A bound in milliseconds, and the words for it. */
export type Bound = readonly [ms: number, words: string];

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * A whole number in plain digits.
 *
 * @param label the setting as its user knows it
 * @throws {ConfigError} for anything else, and outside of the bounds
 */
export function parseInteger(text: string, label: string, min: number, max: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw new ConfigError(label, text, `a whole number from ${min} to ${max}`);
  return value;
}

/**
 * A time such as `500ms`, `15s`, `2m` or `1h`, in milliseconds.
 *
 * @param label the setting as its user knows it
 * @throws {ConfigError} for anything else, and outside of the bounds
 */
export function parseDuration(text: string, label: string, bounds: { readonly least?: Bound; readonly most: Bound }): number {
  const [, digits, unit = ''] = /^(\d{1,12})(ms|s|m|h)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (digits === undefined || factor === undefined) throw new ConfigError(label, text, 'a time such as 500ms, 15s, 2m or 1h');
  const ms = Number(digits) * factor;
  const { least, most } = bounds;
  if (least && ms < least[0]) throw new ConfigError(label, text, least[1]);
  if (ms > most[0]) throw new ConfigError(label, text, most[1]);
  return ms;
}

/** Milliseconds as {@link parseDuration} reads them, in the greatest unit that divides them. */
export function durationText(ms: number): string {
  const [unit, factor] = Object.entries(UNITS).findLast(([, each]) => ms % each === 0) ?? ['ms', 1];
  return `${ms / factor}${unit}`;
}

/** A host and a port. */
export interface HostPort {
  /** A host name or an IP address, one of IPv6 without its brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * `HOST:PORT`, an IPv6 address in brackets.
 *
 * @throws {ConfigError} for anything else
 */
export function parseHostPort(text: string, label: string): HostPort {
  const [, bracketed, plain, digits = ''] =
    /^(?:\[([0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?)\]|([A-Za-z0-9._-]{1,255})):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535) {
    throw new ConfigError(label, text, 'HOST:PORT such as 127.0.0.1:8080 or [::1]:8080, with a port from 1 to 65535');
  }
  return { host, port };
}
