import { ConfigError } from '../base/errors.js';
import { Kind, shortened } from './shortened.js';
import { isSpringPayload, type SpringInstance, springInstancePayload } from './spring-payload.js';

/** Jackson's own bound, from its version 2.15 on; Debian's has it earlier. The instance itself is one level of it. */
export const MAX_NESTING = 1_000;

/** How a class of Java's is written where a type is told as the first item of an array: `["java.lang.Long", 7]`. */
const CLASS_NAME = /^[\p{L}_$][\p{L}\p{N}_$]*(?:\.[\p{L}_$][\p{L}\p{N}_$]*)+$/u;

/**
 * A payload as it will be read back. `JSON.stringify` silently leaves out what JSON cannot hold; this refuses it.
 *
 * @param value what a codec made of the payload; of objects that have a `toJSON`, the result of that
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} when JSON cannot hold it, or Java's readers could not read it
 */
export function payloadJson(value: unknown, label = 'instance.payload'): unknown {
  const json = plain(value, label, { root: label, above: new Set() });
  if (Array.isArray(json) && !isTyped(json)) {
    throw new ConfigError(label, new Kind('an array'), 'an object, a text, a number or a boolean (Java reads no array without its class)');
  }
  if (isFields(json) && Object.hasOwn(json, '@class')) {
    const type = json['@class'];
    if (typeof type !== 'string' || type === '' || /\s/.test(type)) {
      throw new ConfigError(`${label}.@class`, shortened(type), 'the name of a class that every Java reader has');
    }
  }
  return json;
}

function isTyped(items: readonly unknown[]): boolean {
  return items.length === 2 && typeof items[0] === 'string' && CLASS_NAME.test(items[0]);
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The walk through a payload: its label, and the objects around the present value. */
interface Walk {
  readonly root: string;
  readonly above: Set<object>;
}

/** A copy of a value that is nothing but JSON. */
function plain(value: unknown, label: string, walk: Walk): unknown {
  const { root, above } = walk;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new ConfigError(label, value, 'a finite number: JSON has no other');
    // It may have been another one before it was parsed.
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    throw new ConfigError(label, value, 'a whole number from -(2^53 - 1) to 2^53 - 1, or a greater one as a text');
  }
  if (typeof value !== 'object') throw new ConfigError(label, shortened(value), 'something that JSON can hold');
  if (above.has(value)) throw new ConfigError(label, new Kind('an object that contains itself'), 'something that JSON can hold');
  if (above.size >= MAX_NESTING - 1)
    throw new ConfigError(root, new Kind('more'), `fewer than ${MAX_NESTING} levels of objects and arrays`);
  above.add(value);
  const copy = plainObject(value, label, walk);
  above.delete(value);
  return copy;
}

function plainObject(value: object, label: string, walk: Walk): unknown {
  if ('toJSON' in value && typeof value.toJSON === 'function') return plain(value.toJSON(), label, walk);
  if (Array.isArray(value)) return Array.from(value, (item, index) => plain(item, `${label}[${index}]`, walk));
  if (!isPlain(value))
    throw new ConfigError(label, new Kind(`a ${value.constructor?.name}`), 'plain objects, arrays and values (or a toJSON method)');
  if (Object.getOwnPropertySymbols(value).length > 0) throw new ConfigError(label, new Kind('a symbol'), 'texts as keys');
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item, `${label}.${shortened(key)}`, walk)]));
}

/** Of any realm's `Object`, or of none: a `Map`, say, would become `{}`. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The classes that every Java reader takes for a map. */
export const MAP_CLASSES: readonly unknown[] = ['java.util.TreeMap', 'java.util.HashMap', 'java.util.LinkedHashMap'];
/** How every Java reader has a payload that is told with its class before it: `["java.lang.Long", 7]`. */
const TYPED_CLASSES: readonly unknown[] = ['java.util.ArrayList', 'java.lang.Long'];

/**
 * Checks that the class which a payload names, if it names one, is there for every Java reader, or is Spring's with all that Spring reads.
 *
 * @throws {ConfigError} that names the field of the payload
 */
export function checkPayloadClass(payload: unknown): void {
  if (typeof payload !== 'object' || payload === null) return;
  if (Array.isArray(payload)) {
    if (!TYPED_CLASSES.includes(payload[0])) {
      throw new ConfigError('instance.payload[0]', shortened(payload[0]), `${TYPED_CLASSES.join(' or ')}, as Java reads no other array`);
    }
  } else if (isSpringPayload(payload)) {
    springInstancePayload(payload as unknown as SpringInstance);
  } else if (Object.hasOwn(payload, '@class')) {
    const type = (payload as { '@class': unknown })['@class'];
    if (!MAP_CLASSES.includes(type)) {
      throw new ConfigError('instance.payload.@class', shortened(type), 'java.util.TreeMap or another map, which every Java reader has');
    }
  }
}
