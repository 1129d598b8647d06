import { ConfigError } from '../base/errors.js';

/**
 * How an id is written: `decimal` without leading zeros, `base32` as 13 of Crockford's digits, `hex` as 16;
 * the last two sort as the ids do.
 */
export type IdFormat = 'decimal' | 'base32' | 'hex';

/** Without I, L, O and U, which are easily misread: https://www.crockford.com/base32.html */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const BASE32_LENGTH = 13;
/** Two digits at a time. */
const PAIRS = Array.from(
  { length: 32 * 32 },
  (_, value) => `${DIGITS.charAt(value >> 5)}${DIGITS.charAt(value & 31)}`,
);
const SIX_DIGITS = 32 ** 6;
const HEX_LENGTH = 16;
const MAX_ID = 2n ** 64n - 1n;

/** Writes an id as a text. */
export function formatId(id: bigint, format: IdFormat): string {
  if (typeof id !== 'bigint' || id < 0n || id > MAX_ID)
    throw new ConfigError('id', id, 'a bigint of 64 bits that is not negative');
  checkFormat(format);
  switch (format) {
    case 'decimal':
      return id.toString();
    case 'hex':
      return id.toString(16).padStart(HEX_LENGTH, '0');
    case 'base32':
      return base32(id);
  }
}

/** @throws {ConfigError} */
export function checkFormat(format: IdFormat): void {
  if (format !== 'decimal' && format !== 'base32' && format !== 'hex')
    throw new ConfigError('format', format, 'decimal, base32 or hex');
}

/**
 * Reads an id. Digits that do not begin with 0 are decimal. Otherwise 13 characters are base 32 (in either
 * case; I and L are read as 1, O as 0), and 16 are hex.
 *
 * @param format the format of the text. @default as described
 * @throws {ConfigError} when the text is no id
 */
export function parseId(text: string, format?: IdFormat): bigint {
  const id = typeof text === 'string' ? read(text.trim(), format) : undefined;
  if (id === undefined || id > MAX_ID) {
    const shown = typeof text === 'string' && text.length > 80 ? `${text.slice(0, 80)}…` : text;
    throw new ConfigError('id', shown, 'a 64-bit id: decimal, 13 base-32 digits, or 16 hex digits');
  }
  return id;
}

function read(text: string, format: IdFormat | undefined): bigint | undefined {
  switch (format === undefined ? guess(text) : format) {
    case 'decimal':
      return /^\d{1,20}$/.test(text) ? BigInt(text) : undefined;
    case 'hex':
      return /^[0-9a-f]{16}$/i.test(text) ? BigInt(`0x${text}`) : undefined;
    case 'base32':
      return /^[0-9a-z]{13}$/i.test(text) ? fromBase32(text) : undefined;
  }
}

function guess(text: string): IdFormat {
  if (/^(?:0|[1-9]\d*)$/.test(text)) return 'decimal';
  return text.length === BASE32_LENGTH ? 'base32' : 'hex';
}

function base32(id: bigint): string {
  const upper = Number(id >> 30n);
  return (
    DIGITS.charAt(Math.floor(upper / SIX_DIGITS)) +
    sixDigits(upper % SIX_DIGITS) +
    sixDigits(Number(id & 0x3fff_ffffn))
  );
}

/** @param value 30 bits */
function sixDigits(value: number): string {
  return `${PAIRS[value >>> 20]}${PAIRS[(value >>> 10) & 0x3ff]}${PAIRS[value & 0x3ff]}`;
}

function fromBase32(text: string): bigint | undefined {
  let id = 0n;
  for (const character of text.toUpperCase().replace(/[IL]/g, '1').replaceAll('O', '0')) {
    const digit = DIGITS.indexOf(character);
    if (digit < 0) return undefined;
    id = (id << 5n) | BigInt(digit);
  }
  return id;
}
