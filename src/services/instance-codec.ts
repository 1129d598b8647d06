import { ConfigError, explain } from '../base/errors.js';
import { parseExactJson } from '../base/exact-json.js';
import { checkInstance, SERVICE_TYPES } from './new-instance.js';
import type { PayloadCodec } from './payload-codec.js';
import { MAX_NESTING, payloadJson } from './payload-json.js';
import type { ServiceInstance, ServiceType, UriPart, UriSpec } from './service-instance.js';
import { Kind, shortened } from './shortened.js';
import { isSpringPayload, springUriSpec } from './spring-payload.js';
import { parseUriSpec } from './uri-spec.js';

/** A server accepts no packet above 1 MB unless told so; the path and what else stands in it need room too. */
const MAX_WRITTEN_BYTES = 900_000;
/** ZooKeeper's own bound. Servers can be told another, but nobody means such an instance. */
const MAX_READ_BYTES = 1_048_576;

/** A byte order mark is left out. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** What stands in an instance's znode. */
export type DecodedInstance<P> =
  | { readonly status: 'readable'; readonly instance: ServiceInstance<P> }
  /** No instance that anybody could use; `problem` is the rest of the sentence "<path> …". */
  | { readonly status: 'unreadable'; readonly problem: string };

/** An instance's znode, the names being those of its path. */
export interface InstanceZnode {
  /** The service's. */
  readonly name: string;
  /** The instance's, with the digits of a sequential one. */
  readonly id: string;
  readonly data: Buffer;
}

/**
 * The JSON that Curator 5 writes for the same instance, byte for byte in UTF-8 (but that JSON in JavaScript has no numbers like `1.0`), with
 * `enabled` only where it is false: readers older than that field refuse it. With a payload of Spring's it has a uriSpec in any case.
 *
 * @throws {ConfigError} that names the first field that is wrong, the payload included, or the whole where it is too large for a znode
 */
export function encodeInstance<P>(instance: ServiceInstance<P>, payload: PayloadCodec<P>): string {
  checkInstance(instance);
  const { name, id, address, port, sslPort, registrationTimeUTC, serviceType, enabled } = instance;
  const told = instance.payload === undefined ? null : payloadJson(payload.encode(instance.payload));
  const usual = isSpringPayload(told) ? springUriSpec(instance) : undefined;
  const { uriSpec = usual } = instance;
  const json = {
    name,
    id,
    address,
    port: port ?? null,
    sslPort: sslPort ?? null,
    payload: told,
    registrationTimeUTC,
    serviceType,
    uriSpec: uriSpec === undefined ? null : { parts: uriSpec.parts.map(({ value, variable }) => ({ value, variable })) },
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
function withJavaEscapes(json: string): string {
  return json.replace(/\\(?:u[0-9a-f]{4}|.)|[\ud800-\udfff]/g, (match) => {
    if (match.length === 1) return `\\u${match.charCodeAt(0).toString(16).toUpperCase()}`;
    return match.length === 2 ? match : `\\u${match.slice(2).toUpperCase()}`;
  });
}

/**
 * Understands whatever Curator does: unknown fields, missing ones (name and id are the znode's then), ports as texts. `"enabled":null` is
 * false. Where the JSON's name and id differ from the znode's they are told, for so does Curator. Never throws. Not understood, though
 * Curator does: other encodings than UTF-8, and anything behind the JSON. An integer beyond ±(2^53 − 1) is the text of its digits.
 */
export function decodeInstance<P>({ name, id, data }: InstanceZnode, payload: PayloadCodec<P>): DecodedInstance<P> {
  try {
    const fields = parseFields(data);
    const { enabled } = fields;
    const instance: ServiceInstance<P> = {
      name: readText(fields.name, 'name') || name,
      id: readText(fields.id, 'id') || id,
      address: readText(fields.address, 'address') || undefined,
      port: readPort(fields.port, 'port'),
      sslPort: readPort(fields.sslPort, 'sslPort'),
      payload: readPayload(fields.payload, payload),
      registrationTimeUTC: readTime(fields.registrationTimeUTC, 'registrationTimeUTC'),
      serviceType: readServiceType(fields.serviceType, 'serviceType'),
      uriSpec: readUriSpec(fields.uriSpec, 'uriSpec'),
      enabled: enabled === undefined ? true : readFlag(enabled, 'enabled'),
    };
    return { status: 'readable', instance };
  } catch (error) {
    return {
      status: 'unreadable',
      problem: error instanceof FieldProblem ? error.problem : `cannot be read: ${shortened(explain(error))}`,
    };
  }
}

function parseFields(data: Buffer): Partial<Record<string, unknown>> {
  if (data.length === 0) throw new FieldProblem('is empty');
  if (data.length > MAX_READ_BYTES) throw new FieldProblem(`holds more than ${MAX_READ_BYTES} bytes`);
  let text: string;
  try {
    text = UTF8.decode(data);
  } catch {
    throw new FieldProblem('is not UTF-8');
  }
  if (isNestedTooDeeply(text)) throw new FieldProblem(`has more than ${MAX_NESTING} levels of JSON`);
  let fields: unknown;
  try {
    fields = parseExactJson(text);
  } catch {
    throw new FieldProblem('is not JSON');
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) throw new FieldProblem('is not a JSON object');
  return fields;
}

function readPayload<P>(json: unknown, payload: PayloadCodec<P>): P | undefined {
  if (json === undefined || json === null) return undefined;
  try {
    return payload.decode(json);
  } catch (error) {
    throw new FieldProblem(`has a payload of another kind: ${shortened(explain(error))}`);
  }
}

/** Told before it is parsed: what is deep exhausts the stack of whoever walks it. */
function isNestedTooDeeply(json: string): boolean {
  if (json.length <= MAX_NESTING) return false;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < json.length; i += 1) {
    const character = json[i];
    if (quoted && character === '\\') i += 1;
    else if (character === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth > MAX_NESTING) return true;
  }
  return false;
}

/** What somebody's JSON holds cannot be taken for what the field is. `problem` is the rest of the sentence "<path> …". */
class FieldProblem extends Error {
  constructor(readonly problem: string) {
    super(problem);
  }
}

/** The longest excerpt of somebody's data in a message. */
const SHOWN = 60;
const MAX_PORT = 65_535;
const MAX_INT = 2 ** 31;
const MAX_LONG = 2 ** 63;

function unusable(field: string, value: unknown): FieldProblem {
  const kind = Array.isArray(value) ? 'an array' : typeof value === 'object' && value !== null ? 'an object' : undefined;
  const text = kind ?? JSON.stringify(value);
  return new FieldProblem(`has no usable "${field}": ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`);
}

/** Jackson takes numbers and booleans for texts too. */
function readText(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw unusable(field, value);
}

/** A whole number, the fraction cut off; texts are understood, an empty one as none. */
function readWhole(value: unknown, field: string, limit: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === 'string' ? parseWhole(value.trim()) : value;
  if (number === undefined) return undefined;
  if (typeof number !== 'number' || !(Math.abs(number) < limit)) throw unusable(field, value);
  return Math.trunc(number);
}

function parseWhole(text: string): number | undefined {
  if (text === '' || text === 'null') return undefined;
  return /^[+-]?\d{1,20}$/.test(text) ? Number(text) : Number.NaN;
}

/** Curator reads any number; one that is no port is as good as none. */
function readPort(value: unknown, field: string): number | undefined {
  const port = readWhole(value, field, MAX_INT);
  return port === undefined || port < 1 || port > MAX_PORT ? undefined : port;
}

function readTime(value: unknown, field: string): number {
  return readWhole(value, field, MAX_LONG) ?? 0;
}

/** As Jackson reads what is a boolean in Java: null, and an empty text, as false. */
function readFlag(value: unknown, field: string): boolean {
  if (value === null) return false;
  if (typeof value === 'boolean') return value;
  if (Number.isInteger(value)) return value !== 0;
  const text = typeof value === 'string' ? value.trim() : undefined;
  if (text === 'true' || text === 'True' || text === 'TRUE') return true;
  if (text === 'false' || text === 'False' || text === 'FALSE' || text === '') return false;
  throw unusable(field, value);
}

/** By its exact name, or by its number, which Jackson takes too. */
function readServiceType(value: unknown, field: string): ServiceType {
  if (value === undefined || value === null) return 'DYNAMIC';
  const name = typeof value === 'string' ? value.trim() : value;
  const type = SERVICE_TYPES.find((each, index) => name === each || name === index || name === String(index));
  if (type === undefined) throw unusable(field, value);
  return type;
}

/** Curator's constructor takes a text too. */
function readUriSpec(value: unknown, field: string): UriSpec | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') {
    try {
      return parseUriSpec(value);
    } catch {
      throw unusable(field, value);
    }
  }
  if (typeof value !== 'object' || Array.isArray(value)) throw unusable(field, value);
  const { parts } = value as { parts?: unknown };
  if (parts === undefined || parts === null) return { parts: [] };
  if (!Array.isArray(parts)) throw unusable(`${field}.parts`, parts);
  return { parts: parts.map((part: unknown) => readPart(part, `${field}.parts`)) };
}

function readPart(part: unknown, field: string): UriPart {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) throw unusable(field, part);
  const { value, variable } = part as { value?: unknown; variable?: unknown };
  return { value: readText(value, field) ?? '', variable: variable === undefined ? false : readFlag(variable, field) };
}
