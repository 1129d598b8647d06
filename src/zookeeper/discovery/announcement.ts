import { checkArguments, checked, NAME } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { isObject } from '../../core/base/fields.js';
import { hostAddress } from '../../core/base/host/facts.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { encodeInstance } from '../services/instance/instance-codec.js';
import { type InstanceSources, newInstance } from '../services/instance/new-instance.js';
import {
  jsonPayload,
  MAP_CLASSES,
  payloadJson,
  springInstancePayload,
} from '../services/instance/payload-codec.js';
import type { ServiceInstance } from '../services/instance/service-instance.js';
import { checkBasePath, DEFAULT_BASE_PATH } from '../services/service-path.js';
import { Kind, shortened, wrongValue } from '../services/shortened.js';
import { entryPath, type TreeEntry } from './layout.js';

/**
 * How the payload of an instance is written: as a map, or as Spring Cloud Zookeeper writes and reads its own.
 */
export type PayloadType = 'map' | 'spring';

/** An endpoint, under a key where several nodes implement it differently. */
export interface AnnouncedEndpoint {
  readonly endpoint: string;
  readonly key?: string | undefined;
  /**
   * Further fields of the znode's JSON, which override `service`, `address` and `port` of the announcement:
   * an endpoint may listen elsewhere than its service. They cannot replace `taskId`, `nodeId` and `version`.
   * At most 64 KiB of JSON. @default none
   */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
}

/** The announcement of a node in the tree. */
export interface Announcement {
  /**
   * The service that it is an instance of; a znode's name. It is registered for Curator's service discovery
   * too, under its task's id.
   * @default none
   */
  readonly service?: string | undefined;
  /**
   * Host name or IP address, without a port.
   * @default the host's first address that others can reach, where it is registered and where there is a port
   */
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  /** The port for TLS. Only Curator's instance contains it. @default none */
  readonly sslPort?: number | undefined;
  /**
   * The payload of the instance for Curator's readers: an object that JSON can contain, of at most 64 KiB.
   * `nodeId` and `version` are added, and must not be given; an `@class` must be one of Java's maps.
   * @default only these with a `payloadType`; else no payload, so that Curator and Spring can read it
   */
  readonly payload?: Readonly<Record<string, unknown>> | undefined;
  /** With `spring` all values become texts, and a port is required. @default 'map' for a `payload` */
  readonly payloadType?: PayloadType | undefined;
  /**
   * How the URL of the instance is made: `{scheme}://{address}:{port}/orders`.
   * @default none; Spring's own with its payload
   */
  readonly uriSpec?: string | undefined;
  /**
   * The parent of all services that Curator's service discovery knows of, within the chroot.
   * @default '/services', Spring Cloud's
   */
  readonly basePath?: string | undefined;
  /** The endpoints that the service offers, with their own fields. @default none */
  readonly endpoints?: readonly AnnouncedEndpoint[] | undefined;
}

/** The fields that an announcement adds to the JSON of every znode, which leaves out undefined ones. */
export function announcedFields({
  service,
  port,
  // A port alone leads nowhere.
  address = port === undefined ? undefined : hostAddress(),
}: Announcement): Record<string, unknown> {
  return { service, address, port };
}

/** The entries of the discovery tree that send work to the node, with their further fields. */
export function routingEntries(
  announcement: Announcement,
): readonly (readonly [TreeEntry, Readonly<Record<string, unknown>>])[] {
  const { service, endpoints = [] } = announcement;
  const fields = announcedFields(announcement);
  const entries = endpoints.map(
    ({ fields: own, ...names }) =>
      [
        { kind: 'endpoint', ...names, service },
        { ...fields, ...own },
      ] as const,
  );
  return service === undefined ? entries : [[{ kind: 'service', service }, fields], ...entries];
}

/**
 * The same for Curator's service discovery: an instance that goes with the session; undefined where no
 * service is announced.
 *
 * @throws {ConfigError} that names the field of the announcement (`taskId` for the task's id) which its
 * readers could not read
 */
export function routingInstance(
  announcement: Announcement,
  { id: nodeId, version, taskId }: Pick<Lease, 'id' | 'version' | 'taskId'>,
  sources: InstanceSources,
): ServiceInstance | undefined {
  const { service: name, address = hostAddress(), port, sslPort, uriSpec } = announcement;
  if (name === undefined) return undefined;
  const { payload: given = {}, payloadType = 'map' } = announcement;
  const fields = { ...checkPayload(given, payloadType, 'payload'), nodeId, version };
  const written =
    payloadType === 'spring' ? springInstancePayload({ id: taskId, name, metadata: texts(fields) }) : fields;
  // None by default: no class is readable for both Spring's applications and other Java programs.
  const payload = (announcement.payload ?? announcement.payloadType) === undefined ? undefined : written;
  return renamed(FIELDS, () =>
    newInstance<unknown>({ name, id: taskId, address, port, sslPort, payload, uriSpec }, sources),
  );
}

/**
 * Checks an announcement before a node id is acquired.
 *
 * @throws {ConfigError} that names its field (`taskId` for the task's id), when a name cannot be a znode's,
 * or other readers could not read it
 */
export function checkAnnouncement(announcement: Announcement, taskId: string): void {
  const {
    payload = {},
    payloadType = 'map',
    basePath = DEFAULT_BASE_PATH,
    endpoints = [],
  } = checked(announcement, {}, 'announcement');
  checkArguments({ taskId }, { taskId: NAME });
  checkBasePath(basePath);
  if (payloadType !== 'map' && payloadType !== 'spring')
    throw wrongValue('payloadType', payloadType, "'map' or 'spring'");
  checkPayload(payload, payloadType, 'payload');
  const sources = { clock: { now: () => 0 }, random: { hex: () => '' } };
  // With the largest possible numbers, so that it is longest.
  const held = { id: 65_527, version: Number.MAX_SAFE_INTEGER, taskId };
  const instance = routingInstance(announcement, held, sources);
  if (instance !== undefined) renamed(FIELDS, () => encodeInstance(instance, jsonPayload));
  checkEndpoints(endpoints);
}

/**
 * Maximum size of a payload, or of the fields of an endpoint, as JSON: every reader loads those of all nodes.
 */
const MAX_BYTES = 65_536;

/** Fields that are added to every payload. */
const OWN_FIELDS: readonly string[] = ['nodeId', 'version'];

/**
 * The payload of a node in addition to its id and version, as the JSON that is written; for a value with a
 * `toJSON`, the result of that.
 *
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} when JSON cannot contain it, Java's readers could not read it, or it contains a field
 * that is added to it
 */
export function checkPayload(
  payload: unknown,
  type: PayloadType,
  label: string,
): Readonly<Record<string, unknown>> {
  const refused = (shown: unknown, why: string) =>
    new ConfigError(label, shown, `a JSON object such as {"weight":5}${why}`);
  const noArray = () => refused(new Kind('an array'), ' (Java services cannot read an array)');
  if (Array.isArray(payload)) throw noArray();
  const json = payloadJson(payload, label);
  if (Array.isArray(json)) throw noArray();
  const text = JSON.stringify(json);
  const expected = (why: string) => refused(shortened(text), why);
  if (!isObject(json)) throw expected('');
  const own = [...OWN_FIELDS, ...(type === 'spring' ? ['@class'] : [])].find((name) =>
    Object.hasOwn(json, name),
  );
  if (own !== undefined) throw expected(` without ${own}, which is added to it`);
  if (Object.hasOwn(json, '@class') && !MAP_CLASSES.includes(json['@class'])) {
    throw expected(' whose @class, if there is one, is java.util.TreeMap or another map');
  }
  if (Buffer.byteLength(text) > MAX_BYTES) throw expected(` of at most ${MAX_BYTES} bytes`);
  return json;
}

/** The names in the announcement of an instance's fields. */
const FIELDS: Readonly<Partial<Record<string, string>>> = {
  'instance.name': 'service',
  'instance.id': 'taskId',
  'instance.address': 'address',
  'instance.port': 'port',
  'instance.sslPort': 'sslPort',
  'instance.uriSpec': 'uriSpec',
  // All other fields are bounded: only the payload can make it too large.
  instance: 'payload',
};

/** Makes something; a {@link ConfigError} of a setting in `names` is thrown under the name there. */
function renamed<T>(names: Readonly<Partial<Record<string, string>>>, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const name = error instanceof ConfigError ? names[error.setting] : undefined;
    throw error instanceof ConfigError && name !== undefined
      ? new ConfigError(name, error.value, error.expected)
      : error;
  }
}

function texts(fields: Readonly<Record<string, unknown>>) {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, text(value)]));
}

const ENDPOINT_FIELDS: readonly string[] = [
  'endpoint',
  'key',
  'fields',
] satisfies (keyof AnnouncedEndpoint)[];

/**
 * Checks endpoints, also for callers without TypeScript. The error names the first that is wrong as
 * `endpoints[0].key`.
 */
function checkEndpoints(endpoints: unknown) {
  if (!Array.isArray(endpoints))
    throw wrongValue('endpoints', endpoints, "an array such as [{ endpoint: 'pay' }]");
  for (const [index, given] of endpoints.entries()) {
    const label = `endpoints[${index}]`;
    if (!isObject(given)) throw wrongValue(label, given, "an object such as { endpoint: 'pay' }");
    const other = Object.keys(given).find((name) => !ENDPOINT_FIELDS.includes(name));
    if (other !== undefined) throw wrongValue(label, other, `one of ${ENDPOINT_FIELDS.join(', ')}`);
    const { endpoint, key, fields } = given;
    if (typeof endpoint !== 'string') throw wrongValue(`${label}.endpoint`, endpoint, 'a name');
    if (key !== undefined && typeof key !== 'string')
      throw wrongValue(`${label}.key`, key, 'a name, or none');
    renamed({ endpoint: `${label}.endpoint`, 'endpoint key': `${label}.key` }, () =>
      entryPath({ kind: 'endpoint', endpoint, key }, 0),
    );
    if (fields !== undefined) checkFields(fields, `${label}.fields`);
  }
}

function checkFields(fields: unknown, label: string) {
  if (!isObject(fields)) throw wrongValue(label, fields, 'an object');
  // It would replace the whole JSON, and leave out who announces it.
  if (typeof fields.toJSON === 'function')
    throw wrongValue(label, fields, 'an object without a method toJSON');
  let text: string;
  try {
    text = JSON.stringify(fields);
  } catch {
    throw wrongValue(label, fields, 'something that JSON can hold');
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_BYTES) throw wrongValue(label, text, `at most ${MAX_BYTES} bytes of JSON, not ${bytes}`);
}
