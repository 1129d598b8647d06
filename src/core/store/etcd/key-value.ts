import { parsed, textsOf } from '../../base/fields.js';
import type { Interval, ObjectMetadata } from '../lease-store.js';

/**
 * A key with its value, as the gateway shows it: bytes in base64, numbers as texts, and what is zero or empty
 * left out.
 */
export interface EtcdKeyValue {
  readonly key?: string;
  readonly value?: string;
  readonly mod_revision?: string;
}

/** The field of the metadata's line that is {@link DecodedValue.markedForMs}, and no metadata. */
const MARKED = 'marked-for-ms';

export function toBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export function fromBase64(base64 = ''): string {
  return Buffer.from(base64, 'base64').toString();
}

/** The first key after all that begin with `prefix`, which ends with a slash. */
export function endOf(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}

/** What a value says. */
export interface DecodedValue {
  readonly body: string;
  readonly metadata: ObjectMetadata;
  /**
   * Set where this very write put a mark as well: for how long, at least, the mark stays after the write
   * began, in milliseconds.
   */
  readonly markedForMs: number | undefined;
}

/** An object as a value, for people to read: a line with the metadata in JSON, and the body below it. */
export function encodeValue(body: string, metadata: ObjectMetadata, markedForMs?: number): string {
  const facts = markedForMs === undefined ? metadata : { ...metadata, [MARKED]: String(markedForMs) };
  return toBase64(`${JSON.stringify(facts)}\n${body}`);
}

/** The object in a value. What was not written here has no metadata: all of it is the body. */
export function decodeValue(base64: string | undefined): DecodedValue {
  const text = fromBase64(base64);
  const end = text.indexOf('\n');
  const facts = end < 0 ? undefined : textsOf(parsed(text.slice(0, end)));
  if (facts === undefined) return { body: text, metadata: {}, markedForMs: undefined };
  const { [MARKED]: marked, ...metadata } = facts;
  const markedForMs = marked !== undefined && /^[1-9]\d{0,14}$/.test(marked) ? Number(marked) : undefined;
  return { body: text.slice(end + 1), metadata, markedForMs };
}

/**
 * The key that is put with an object by a write of it, and removed by etcd some time later. It comes right
 * after the object's in the order of keys.
 */
export function markOf(key: string): string {
  return `${key}~`;
}

export function isMark(key: string): boolean {
  return key.endsWith('~');
}

/**
 * The age of an object, as of one revision of etcd's data. etcd does not report when a key was written. But if
 * the mark of the current value's write is gone, the time of the mark has passed.
 */
export function ageOf({ markedForMs }: DecodedValue, isMarked: boolean): Interval {
  return { min: markedForMs === undefined || isMarked ? 0 : markedForMs + 1, max: Number.POSITIVE_INFINITY };
}
