import { ConfigError, explain } from '../../errors.js';
import { parseExactJson } from '../exact-json.js';
import { FieldProblem, readFlag, readPort, readServiceType, readText, readTime, readUriSpec } from './instance-fields.js';
import { checkInstance } from './new-instance.js';
import type { PayloadCodec } from './payload-codec.js';
import { MAX_NESTING, payloadJson } from './payload-json.js';
import type { ServiceInstance } from './service-instance.js';
import { Kind, shortened } from './shortened.js';
import { isSpringPayload, springUriSpec } from './spring-payload.js';

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
