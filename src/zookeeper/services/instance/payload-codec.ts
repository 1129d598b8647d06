import { checkArguments, having } from '../../../core/base/arguments.js';
import { ConfigError } from '../../../core/base/errors.js';
import { MAX_NESTING } from '../../../core/base/fields.js';
import { Kind, shortened, wrongValue } from '../shortened.js';
import type { ServiceInstance, UriSpec } from './service-instance.js';
import { springUriSpec } from './uri-spec.js';

/**
 * The payloads of a service's instances, to JSON and back. A payload that only one side understands makes an
 * instance unreadable for the other: agree on it with the Java services, if there are any.
 */
export interface PayloadCodec<P> {
  /**
   * The value for `JSON.stringify`. An object's `@class`, if any, must be on the class path of every Java
   * reader.
   */
  encode(payload: P): unknown;

  /**
   * The opposite, given parsed JSON, with the text of its digits for an integer beyond ±(2^53 − 1); never
   * undefined or null.
   *
   * @throws an error whose message says why it cannot be understood: the instance counts as unreadable then
   */
  decode(json: unknown): P;
}

export const PAYLOAD = having('a codec with the methods encode and decode', 'encode', 'decode');

/** Payloads as the JSON that they are, `@class` included. Nothing is checked. */
export const jsonPayload: PayloadCodec<unknown> = {
  encode: (payload) => payload,
  decode: (json) => json,
};

/** The form of a Java class name in a type that is the first item of an array: `["java.lang.Long", 7]`. */
const CLASS_NAME = /^[\p{L}_$][\p{L}\p{N}_$]*(?:\.[\p{L}_$][\p{L}\p{N}_$]*)+$/u;

/**
 * A payload as it will be read back. `JSON.stringify` silently leaves out values that JSON cannot contain;
 * this refuses them.
 *
 * @param value the result of a codec; of objects with a `toJSON`, its result
 * @param label the name of its setting for the user
 * @throws {ConfigError} when JSON cannot contain it, or Java's readers could not read it
 */
export function payloadJson(value: unknown, label = 'instance.payload'): unknown {
  const json = plain(value, label, label, new Set());
  const isTyped = (items: unknown[]) =>
    items.length === 2 && typeof items[0] === 'string' && CLASS_NAME.test(items[0]);
  if (Array.isArray(json) && !isTyped(json))
    throw new ConfigError(
      label,
      new Kind('an array'),
      'an object, a text, a number or a boolean (Java reads no array without its class)',
    );
  const type = classOf(json);
  if (type !== undefined && (typeof type !== 'string' || type === '' || /\s/.test(type)))
    throw wrongValue(`${label}.@class`, type, 'the name of a class that every Java reader has');
  return json;
}

/** The class that an object names, whatever it is; undefined where it names none. */
export function classOf(json: unknown): unknown {
  return Object.hasOwn(Object(json), '@class')
    ? (json as { readonly '@class': unknown })['@class']
    : undefined;
}

/** A copy of a value that is nothing but JSON. `above` are the objects around it. */
function plain(value: unknown, label: string, root: string, above: Set<object>): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new ConfigError(label, value, 'a finite number: JSON has no other');
    // It may have been another number before it was parsed.
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    throw new ConfigError(
      label,
      value,
      'a whole number from -(2^53 - 1) to 2^53 - 1, or a greater one as a text',
    );
  }
  if (typeof value !== 'object') throw wrongValue(label, value, 'something that JSON can hold');
  if (above.has(value))
    throw new ConfigError(label, new Kind('an object that contains itself'), 'something that JSON can hold');
  if (above.size >= MAX_NESTING - 1)
    throw new ConfigError(root, new Kind('more'), `fewer than ${MAX_NESTING} levels of objects and arrays`);
  above.add(value);
  const copy = plainObject(value, label, (item, itsLabel) => plain(item, itsLabel, root, above));
  above.delete(value);
  return copy;
}

function plainObject(
  value: object,
  label: string,
  copied: (item: unknown, label: string) => unknown,
): unknown {
  if ('toJSON' in value && typeof value.toJSON === 'function') return copied(value.toJSON(), label);
  if (Array.isArray(value)) return Array.from(value, (item, index) => copied(item, `${label}[${index}]`));
  // Of any realm's `Object`, or of none: a `Map`, say, would become `{}`.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw new ConfigError(
      label,
      new Kind(`a ${value.constructor?.name}`),
      'plain objects, arrays and values (or a toJSON method)',
    );
  if (Object.getOwnPropertySymbols(value).length > 0)
    throw new ConfigError(label, new Kind('a symbol'), 'texts as keys');
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, copied(item, `${label}.${shortened(key)}`)]),
  );
}

/** The classes that every Java reader takes for a map. */
export const MAP_CLASSES: readonly unknown[] = [
  'java.util.TreeMap',
  'java.util.HashMap',
  'java.util.LinkedHashMap',
];
/** The classes that every Java reader has for a payload with its class before it: `["java.lang.Long", 7]`. */
const TYPED_CLASSES: readonly unknown[] = ['java.util.ArrayList', 'java.lang.Long'];

/**
 * Checks that every Java reader has the class that a payload names, or that it is Spring's with all that
 * Spring reads.
 *
 * @throws {ConfigError} that names the field of the payload
 */
export function checkPayloadClass(payload: unknown): void {
  const type = classOf(payload);
  if (Array.isArray(payload)) {
    if (TYPED_CLASSES.includes(payload[0])) return;
    throw wrongValue(
      'instance.payload[0]',
      payload[0],
      `${TYPED_CLASSES.join(' or ')}, as Java reads no other array`,
    );
  }
  if (isSpringPayload(payload)) springInstancePayload(payload as SpringInstanceJson);
  else if (type !== undefined && !MAP_CLASSES.includes(type))
    throw wrongValue(
      'instance.payload.@class',
      type,
      'java.util.TreeMap or another map, which every Java reader has',
    );
}

/**
 * The payload that a Spring Boot application with Spring Cloud Zookeeper registers, and expects of every
 * instance of its services.
 */
export interface SpringInstance {
  /** Its application context's id, `orders-1` for example; it need not be the instance's. */
  readonly id: string;
  /** The application's name, as a rule the service's. */
  readonly name: string;
  /** The values of `spring.cloud.zookeeper.discovery.metadata`: texts. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** The same as JSON, with the class by which Spring's reader knows it. */
export interface SpringInstanceJson extends SpringInstance {
  readonly '@class': typeof SPRING_CLASS;
}

export const SPRING_CLASS = 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance';

/**
 * The payload of an instance that Spring Cloud Zookeeper can read. It casts the payloads: one instance with
 * an object of another kind, or with a text, makes the whole service unreadable for it. An instance without a
 * payload has no metadata.
 *
 * @throws {ConfigError} when id, name or metadata are not texts
 */
export function springInstancePayload(instance: SpringInstance): SpringInstanceJson {
  checkArguments({ instance });
  const { id, name, metadata } = instance;
  checkText(id, 'id');
  checkText(name, 'name');
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw wrongValue('instance.payload.metadata', metadata, 'an object of texts');
  for (const [key, value] of Object.entries(metadata)) checkText(value, `metadata.${shortened(key)}`);
  return { '@class': SPRING_CLASS, id, name, metadata };
}

function checkText(value: unknown, field: string) {
  if (typeof value !== 'string') throw wrongValue(`instance.payload.${field}`, value, 'a text');
}

/** Whether JSON is a payload of Spring's class, in whatever shape. */
export function isSpringPayload(json: unknown): boolean {
  return classOf(json) === SPRING_CLASS;
}

/**
 * The uriSpec of an instance with Spring's payload that has none.
 *
 * @throws {ConfigError} when it has no port: Spring throws for the whole service then
 */
export function uriSpecForSpring(instance: ServiceInstance): UriSpec {
  if (instance.port === undefined && instance.sslPort === undefined)
    throw new ConfigError(
      'instance.port',
      instance.port,
      'a port or an sslPort (Spring cannot read a service with an instance that has neither)',
    );
  return springUriSpec(instance);
}

/**
 * The state of an instance, of which only `enabled` may be picked. `out of service` is by the status in its
 * metadata, as Spring's load balancer sees it: there is an `instance_status` other than UP.
 */
export function instanceState({
  enabled,
  payload,
}: ServiceInstance): 'enabled' | 'disabled' | 'out of service' {
  if (!enabled) return 'disabled';
  const { metadata } = Object(payload) as { readonly metadata?: unknown };
  const { instance_status: status } = Object(metadata) as { readonly instance_status?: unknown };
  const isUp = typeof status !== 'string' || status.trim() === '' || status.toUpperCase() === 'UP';
  return isUp ? 'enabled' : 'out of service';
}

/**
 * Writes and reads Spring's payloads. Foreign ones are understood as far as they go: fields that are missing
 * are empty, metadata that are no texts become their JSON. A payload that is no object of Spring's class
 * makes the instance unreadable, as it is for Spring.
 */
export const springPayload: PayloadCodec<SpringInstance> = {
  encode: springInstancePayload,

  decode(json) {
    if (!isSpringPayload(json)) throw new Error(`its class is not ${SPRING_CLASS}`);
    const { id, name, metadata } = json as Partial<Record<string, unknown>>;
    const texts = Object.entries(Object(metadata)).map(([key, value]) => [key, textOf(value)] as const);
    return { id: textOf(id), name: textOf(name), metadata: Object.fromEntries(texts) };
  },
};

function textOf(json: unknown): string {
  if (json == null) return '';
  return typeof json === 'string' ? json : JSON.stringify(json);
}
