import { BYTES, checkArguments, checked, isPort, TEXT } from '../../../core/base/arguments.js';
import { ConfigError, explain } from '../../../core/base/errors.js';
import { isObject, parseExactJson } from '../../../core/base/fields.js';
import { Kind, shortened } from '../shortened.js';
import { isDubboFolder } from './dubbo-instance.js';
import { checkInstance, SERVICE_TYPES } from './new-instance.js';
import {
  isSpringPayload,
  PAYLOAD,
  type PayloadCodec,
  payloadJson,
  uriSpecForSpring,
} from './payload-codec.js';
import type { ServiceInstance, ServiceType, UriPart, UriSpec } from './service-instance.js';
import { parseUriSpec } from './uri-spec.js';

/** By default a server accepts no packet above 1 MB; the path and the rest of the packet need room too. */
const MAX_WRITTEN_BYTES = 900_000;
/** ZooKeeper's default bound, also where servers accept more. */
const MAX_READ_BYTES = 1_048_576;

/** Leaves out a byte order mark. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** The content of an instance's znode. */
export type DecodedInstance<P> =
  | { readonly status: 'readable'; readonly instance: ServiceInstance<P> }
  /** No usable instance; `problem` is the rest of the sentence "<path> …". */
  | { readonly status: 'unreadable'; readonly problem: string };

/** An instance's znode, with the names in its path. */
export interface InstanceZnode {
  /** The service's. */
  readonly name: string;
  /** The instance's, with the digits of a sequential one. */
  readonly id: string;
  readonly data: Buffer;
}

/**
 * The JSON that Curator 5 writes for the same instance, byte for byte in UTF-8 (except numbers like `1.0`),
 * with `enabled` only where it is false: readers older than that field refuse it. With a payload of Spring's
 * it always has a uriSpec.
 *
 * @throws {ConfigError} that names the first field that is wrong, the payload included, or the whole where it
 * is too large for a znode
 */
export function encodeInstance<P>(instance: ServiceInstance<P>, payload: PayloadCodec<P>): string {
  checkArguments({ payload }, { payload: PAYLOAD });
  checkInstance(instance);
  const { name, id, address, port, sslPort, registrationTimeUTC, serviceType, enabled } = instance;
  const encoded = instance.payload === undefined ? null : payloadJson(payload.encode(instance.payload));
  const { uriSpec = isSpringPayload(encoded) ? uriSpecForSpring(instance) : undefined } = instance;
  const json = {
    name,
    id,
    address,
    port: port ?? null,
    sslPort: sslPort ?? null,
    payload: encoded,
    registrationTimeUTC,
    serviceType,
    uriSpec:
      uriSpec === undefined
        ? null
        : { parts: uriSpec.parts.map(({ value, variable }) => ({ value, variable })) },
    ...(!enabled && { enabled }),
  };
  const text = withJavaEscapes(JSON.stringify(json));
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_WRITTEN_BYTES) {
    throw new ConfigError(
      'instance',
      new Kind(`${bytes} bytes`),
      `at most ${MAX_WRITTEN_BYTES} bytes of JSON: a znode holds no more than 1 MB`,
    );
  }
  return text;
}

/** Jackson writes characters beyond 16 bits as two escapes, and the digits of every escape in upper case. */
function withJavaEscapes(json: string) {
  return json.replace(/\\(?:u[0-9a-f]{4}|.)|[\ud800-\udfff]/g, (match) => {
    if (match.length === 1) return `\\u${match.charCodeAt(0).toString(16).toUpperCase()}`;
    return match.length === 2 ? match : `\\u${match.slice(2).toUpperCase()}`;
  });
}

/**
 * The JSON of an instance with another `enabled`, and everything else unchanged, including unknown fields. Of
 * several members with one name the last counts, here and in Java.
 *
 * @param json the JSON of a readable instance
 */
export function withEnabled(json: string, enabled: boolean): string {
  const head = json
    .trimEnd()
    .slice(0, -1)
    .replace(/,\s*"enabled"\s*:\s*(?:true|false|null)\s*$/, '');
  // Readers older than the field refuse it: where nothing else says so, absent is enabled.
  if (enabled && !Object.hasOwn(Object(parseExactJson(`${head.replace(/^\ufeff/, '')}}`)), 'enabled'))
    return `${head}}`;
  return `${head}${head.trim() === '{' ? '' : ','}"enabled":${enabled}}`;
}

/**
 * Decodes what Curator does: unknown fields, missing ones (name and id are then the znode's), ports as texts, IPv6
 * addresses with a zone, which is left out.
 * `"enabled":null` is false. As in Curator, name and id of the JSON win over the znode's. Unlike in Curator,
 * the text is UTF-8, and nothing follows the JSON. An integer beyond ±(2^53 − 1) is the text of its digits.
 * Never throws.
 */
export function decodeInstance<P>(znode: InstanceZnode, payload: PayloadCodec<P>): DecodedInstance<P> {
  checkArguments({ znode, payload }, { payload: PAYLOAD });
  const { name, id, data } = znode;
  checkArguments({ name, id, data }, { id: TEXT, data: BYTES });
  try {
    const fields = parseFields(data);
    const instance: ServiceInstance<P> = {
      name: readText(fields.name, 'name') || name,
      id: readText(fields.id, 'id') || id,
      address: readText(fields.address, 'address')?.replace(ZONE, '$1') || undefined,
      port: readPort(fields.port, 'port'),
      sslPort: readPort(fields.sslPort, 'sslPort'),
      payload: readPayload(fields.payload, payload),
      registrationTimeUTC: readWhole(fields.registrationTimeUTC, 'registrationTimeUTC', MAX_LONG) ?? 0,
      serviceType: readServiceType(fields.serviceType),
      uriSpec: readUriSpec(fields.uriSpec),
      enabled: fields.enabled === undefined || readFlag(fields.enabled, 'enabled'),
    };
    return { status: 'readable', instance };
  } catch (error) {
    const problem = isDubboFolder(id) ? 'is a folder of a Dubbo interface' : explain(error);
    return { status: 'unreadable', problem };
  }
}

/** The zone that Java adds to each IPv6 address of its host. Only link-local ones need it. */
const ZONE = /^(?!fe[89ab])([\da-f]*:[\da-f:.]*)%.*/i;

/** @throws {Error} whose message is the rest of the sentence "<path> …"; so do all that read a field */
function parseFields(data: Buffer): Partial<Record<string, unknown>> {
  if (data.length === 0) throw new Error('is empty');
  if (data.length > MAX_READ_BYTES) throw new Error(`holds more than ${MAX_READ_BYTES} bytes`);
  const text = orThrow(
    () => new Error('is not UTF-8'),
    () => UTF8.decode(data),
  );
  const fields = orThrow(
    (error) => new Error(error instanceof RangeError ? `has ${error.message}` : 'is not JSON'),
    () => parseExactJson(text),
  );
  if (!isObject(fields)) throw new Error('is not a JSON object');
  return fields;
}

function orThrow<T>(problem: (error: unknown) => Error, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw problem(error);
  }
}

/** The longest excerpt of foreign data in a message. */
const SHOWN = 60;
const MAX_INT = 2 ** 31;
const MAX_LONG = 2 ** 63;

function unusable(field: string, value: unknown) {
  const text = typeof value === 'object' && value !== null ? String(shortened(value)) : JSON.stringify(value);
  return new Error(`has no usable "${field}": ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`);
}

function readPayload<P>(json: unknown, payload: PayloadCodec<P>): P | undefined {
  if (json == null) return undefined;
  try {
    return payload.decode(json);
  } catch (error) {
    throw new Error(`has a payload of another kind: ${shortened(explain(error))}`);
  }
}

/** Jackson takes numbers and booleans for texts too. */
function readText(value: unknown, field: string): string | undefined {
  if (value == null) return undefined;
  if (typeof value === 'object') throw unusable(field, value);
  return String(value);
}

/** A whole number, the fraction cut off; texts are understood, an empty one as none. */
function readWhole(value: unknown, field: string, limit: number): number | undefined {
  const given = typeof value === 'string' ? value.trim() : value;
  if (given == null || given === '' || given === 'null') return undefined;
  const number = typeof given === 'string' && /^[+-]?\d{1,20}$/.test(given) ? Number(given) : given;
  if (typeof number !== 'number' || !(Math.abs(number) < limit)) throw unusable(field, value);
  return Math.trunc(number);
}

/** Curator reads any number; one that is no port counts as none. */
function readPort(value: unknown, field: string) {
  const port = readWhole(value, field, MAX_INT);
  return isPort(port) ? port : undefined;
}

/** As Jackson reads a boolean of Java: null, and an empty text, as false. */
function readFlag(value: unknown, field: string) {
  if (value === null) return false;
  if (typeof value === 'boolean') return value;
  if (Number.isInteger(value)) return value !== 0;
  const text = typeof value === 'string' ? value.trim() : 'unusable';
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)?$/.test(text)) return false;
  throw unusable(field, value);
}

/** By its exact name, or by its number, which Jackson takes too. */
function readServiceType(value: unknown): ServiceType {
  if (value == null) return 'DYNAMIC';
  const name = typeof value === 'string' ? value.trim() : value;
  const type = SERVICE_TYPES.find((each, index) => name === each || name === index || name === String(index));
  if (type === undefined) throw unusable('serviceType', value);
  return type;
}

/** Curator's constructor takes a text too. */
function readUriSpec(value: unknown): UriSpec | undefined {
  if (value == null) return undefined;
  if (typeof value === 'string')
    return orThrow(
      () => unusable('uriSpec', value),
      () => parseUriSpec(value),
    );
  if (!isObject(value)) throw unusable('uriSpec', value);
  const parts = value.parts ?? [];
  if (!Array.isArray(parts)) throw unusable('uriSpec.parts', parts);
  return { parts: parts.map(readPart) };
}

function readPart(part: unknown): UriPart {
  if (!isObject(part)) throw unusable('uriSpec.parts', part);
  const { value, variable } = part;
  return {
    value: readText(value, 'uriSpec.parts') ?? '',
    variable: variable !== undefined && readFlag(variable, 'uriSpec.parts'),
  };
}

/**
 * Receives an instance that is left out, with the rest of the sentence "<path> …". Must not throw and must
 * not block.
 */
export type OnUnreadable = (path: string, problem: string) => void;

/**
 * How many znodes are remembered: a service full of foreign znodes must fill neither the memory nor the log.
 */
const MAX_REPORTS = 1_000;

/**
 * Reports each znode that cannot be understood once, again when its problem is another or when it was
 * readable in between, of at most 1,000 znodes. Several readers of the same znodes may share one.
 */
export class UnreadableReports {
  readonly #problems = new Map<string, string>();

  constructor(private readonly onUnreadable: OnUnreadable | undefined) {
    checked({ onUnreadable });
  }

  /** The given reports, shared, or new ones. */
  static of(given: OnUnreadable | UnreadableReports | undefined): UnreadableReports {
    return given instanceof UnreadableReports ? given : new UnreadableReports(given);
  }

  /**
   * The instance that was read at a path, undefined where there is none. Reports one that cannot be
   * understood.
   */
  instanceOf<P>(path: string, decoded: DecodedInstance<P> | undefined): ServiceInstance<P> | undefined {
    if (decoded?.status === 'unreadable') this.report(path, decoded.problem);
    else this.clear(path);
    return decoded?.status === 'readable' ? decoded.instance : undefined;
  }

  /** It cannot be understood, for this reason. */
  report(path: string, problem: string): void {
    const known = this.#problems.get(path);
    if (known === problem || (known === undefined && this.#problems.size >= MAX_REPORTS)) return;
    this.#problems.set(path, problem);
    this.onUnreadable?.(path, problem);
  }

  /** It can be understood, or has gone. */
  clear(path: string): void {
    this.#problems.delete(path);
  }
}
