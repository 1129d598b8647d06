import type { Clock, RandomSource } from '../clock.js';
import { ConfigError } from '../errors.js';
import type { Lease } from '../lease/lease.js';
import { type AnnouncedEndpoint, checkEndpoints } from './announcement-endpoints.js';
import { checkPayload, type PayloadType } from './announcement-payload.js';
import { hostAddress } from './host-address.js';
import { encodeInstance } from './services/instance-codec.js';
import { newInstance } from './services/new-instance.js';
import { jsonPayload } from './services/payload-codec.js';
import type { ServiceInstance } from './services/service-instance.js';
import { checkBasePath, DEFAULT_BASE_PATH } from './services/service-path.js';
import { shortened } from './services/shortened.js';
import { springInstancePayload } from './services/spring-payload.js';
import type { TreeEntry } from './tree-paths.js';

export type { AnnouncedEndpoint, PayloadType };

/** What a node says of itself in the tree. */
export interface Announcement {
  /** The service that it is an instance of; a znode's name. It is registered for Curator's service discovery too, under its task's id. @default none */
  readonly service?: string | undefined;
  /** Host name or IP address, without a port. @default the host's first address that others can reach, where it is registered and where there is a port */
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  /** The port for TLS. Only Curator's instance tells of it. @default none */
  readonly sslPort?: number | undefined;
  /**
   * What the instance says of itself for Curator's readers: an object that JSON can hold, of at most 64 KiB. `nodeId` and `version` are added,
   * and must not be given; an `@class` must be one of Java's maps.
   *
   * @default nothing but these
   */
  readonly payload?: Readonly<Record<string, unknown>> | undefined;
  /** With `spring` all values become texts, and there has to be a port. @default 'map' */
  readonly payloadType?: PayloadType | undefined;
  /** How the URL of the instance is made: `{scheme}://{address}:{port}/orders`. @default none; Spring's own with its payload */
  readonly uriSpec?: string | undefined;
  /** The parent of all services that Curator's service discovery knows of, within the chroot. @default '/services', Spring Cloud's */
  readonly basePath?: string | undefined;
  /** The endpoints that the service offers, with fields of their own. @default none */
  readonly endpoints?: readonly AnnouncedEndpoint[] | undefined;
}

/** What an announcement adds to the JSON of every znode. */
export function announcedFields({ service, address, port }: Announcement): Record<string, unknown> {
  return {
    ...(service !== undefined && { service }),
    ...(address !== undefined && { address }),
    ...(port !== undefined && { port }),
  };
}

/** What sends work to the node, as entries of the discovery tree and their further fields. */
export function routingEntries(announcement: Announcement): readonly (readonly [TreeEntry, Readonly<Record<string, unknown>>])[] {
  const { service, endpoints = [], port, address = port === undefined ? undefined : hostAddress() } = announcement;
  // A port alone leads nowhere.
  const fields = announcedFields({ service, address, port });
  const entries = endpoints.map(
    ({ endpoint, key, fields: more }) =>
      [
        { kind: 'endpoint', endpoint, key, service },
        // Its own win: it may listen elsewhere than its service.
        { ...fields, ...more },
      ] as const,
  );
  return service === undefined ? entries : [[{ kind: 'service', service }, fields], ...entries];
}

/**
 * The same for Curator's service discovery: an instance that goes with the session; undefined where no service is announced.
 *
 * @throws {ConfigError} that names the field of the announcement (`taskId` for the task's id) which its readers could not read
 */
export function routingInstance(
  announcement: Announcement,
  { id: nodeId, version, taskId }: Pick<Lease, 'id' | 'version' | 'taskId'>,
  sources: { readonly clock: Pick<Clock, 'now'>; readonly random: Pick<RandomSource, 'hex'> },
): ServiceInstance | undefined {
  const { service: name, address = hostAddress(), port, sslPort, payload = {}, payloadType = 'map', uriSpec } = announcement;
  if (name === undefined) return undefined;
  const fields = { ...checkPayload(payload, payloadType, 'payload'), nodeId, version };
  const written = payloadType === 'spring' ? springInstancePayload({ id: taskId, name, metadata: texts(fields) }) : fields;
  return named(() => newInstance<unknown>({ name, id: taskId, address, port, sslPort, payload: written, uriSpec }, sources));
}

/**
 * Checks, before a node id is taken for nothing, that it could be announced.
 *
 * @throws {ConfigError} that names the field of the announcement (`taskId` for the task's id), when a name cannot be a znode's, or the instance
 * not be written or not be read by others
 */
export function checkAnnouncement(announcement: Announcement, taskId: string): void {
  const { payload = {}, payloadType = 'map', basePath = DEFAULT_BASE_PATH, endpoints = [] } = announcement;
  checkBasePath(basePath);
  if (payloadType !== 'map' && payloadType !== 'spring') throw new ConfigError('payloadType', shortened(payloadType), "'map' or 'spring'");
  checkPayload(payload, payloadType, 'payload');
  const sources = { clock: { now: () => 0 }, random: { hex: () => '' } };
  // The largest numbers there can be: with them it is longest.
  const held = { id: 65_527, version: Number.MAX_SAFE_INTEGER, taskId };
  const instance = routingInstance(announcement, held, sources);
  if (instance !== undefined) named(() => encodeInstance(instance, jsonPayload));
  checkEndpoints(endpoints);
}

/** How fields of the instance are called in the announcement that they come from. */
const FIELDS: Readonly<Partial<Record<string, string>>> = {
  'instance.name': 'service',
  'instance.id': 'taskId',
  'instance.address': 'address',
  'instance.port': 'port',
  'instance.sslPort': 'sslPort',
  'instance.uriSpec': 'uriSpec',
  // All else is bounded: it is the payload that makes it too large.
  instance: 'payload',
};

/** Errors in the words of the announcement. */
function named<T>(made: () => T): T {
  try {
    return made();
  } catch (error) {
    const field = error instanceof ConfigError ? FIELDS[error.setting] : undefined;
    throw error instanceof ConfigError && field !== undefined ? new ConfigError(field, error.value, error.expected) : error;
  }
}

function texts(fields: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}
