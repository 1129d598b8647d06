import { Damage } from './regular-file.js';

/** What is known of one decision besides the body: the content of a seat's `record`, and of the `next` that names the seat. */
export interface SeatRecord {
  /** The folder of the decision, `<generation>-<random hex>`. */
  readonly seat: string;
  /** Of the body, in hex. */
  readonly sha256: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** When the write began. */
  readonly stamp: Stamp;
}

/** A time on a boot clock. */
export interface Stamp {
  /** Which clock, see `BootClock.id`. */
  readonly clock: string;
  /** Milliseconds on it. */
  readonly ms: number;
}

/** The name of a seat: the fixed first one, or any later one. */
export const SEAT_NAME = /^(?:0|[1-9][0-9]{0,14}-[0-9a-f]{8,64})$/;

/** How many decisions came before that of this seat. */
export function generationOf(seat: string): number {
  return Number.parseInt(seat, 10);
}

/** The record as it is written: one line of JSON, so that people can read it. */
export function encodeRecord(record: SeatRecord): string {
  return `${JSON.stringify(record)}\n`;
}

/**
 * The record in a text; fields that it does not know are left out.
 *
 * @param path where the text comes from
 * @param generation which the seat must be of
 * @throws {@link Damage} when it is none
 */
export function decodeRecord(text: string, path: string, generation: number): SeatRecord {
  const { seat, sha256, metadata, stamp } = fieldsOf(parse(text));
  const { clock, ms } = fieldsOf(stamp);
  const values = Object.entries(fieldsOf(metadata));
  const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string';
  if (
    typeof seat !== 'string' ||
    !SEAT_NAME.test(seat) ||
    generationOf(seat) !== generation ||
    typeof sha256 !== 'string' ||
    typeof clock !== 'string' ||
    typeof ms !== 'number' ||
    !values.every(isText)
  ) {
    throw new Damage(path, 'damaged');
  }
  return { seat, sha256, metadata: Object.fromEntries(values), stamp: { clock, ms } };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
