import type { Clock, RandomSource } from '../clock.js';
import { ConfigError } from '../errors.js';
import type { Lease } from '../lease/lease.js';
import { hostAddress } from './host-address.js';
import { newInstance } from './services/new-instance.js';
import { payloadJson } from './services/payload-json.js';
import type { ServiceInstance } from './services/service-instance.js';
import { checkBasePath, DEFAULT_BASE_PATH } from './services/service-path.js';
import { springInstancePayload } from './services/spring-payload.js';
import { entryPath, type TreeEntry } from './tree-paths.js';

/** How the payload of an instance is written: as a map, or as Spring Cloud Zookeeper writes and reads its own. */
export type PayloadType = 'map' | 'spring';

/** What a node says of itself in the tree. */
export interface Announcement {
  /** The service that it is an instance of; a znode's name. It is registered for Curator's service discovery too, under its task's id. @default none */
  readonly service?: string | undefined;
  /** Host name or IP address, without a port. @default the host's first address that others can reach, where it is registered and where there is a port */
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  /** The port for TLS. Only Curator's instance tells of it. @default none */
  readonly sslPort?: number | undefined;
  /** What the instance says of itself for Curator's readers: an object that JSON can hold. `nodeId` and `version` are added. @default nothing but these */
  readonly payload?: Readonly<Record<string, unknown>> | undefined;
  /** With `spring` all values become texts. @default 'map' */
  readonly payloadType?: PayloadType | undefined;
  /** The parent of all services that Curator's service discovery knows of, within the chroot. @default '/services', Spring Cloud's */
  readonly basePath?: string | undefined;
  /** The endpoints that the service offers, with fields of their own. @default none */
  readonly endpoints?: readonly AnnouncedEndpoint[] | undefined;
}

/** An endpoint, under a key where several nodes implement it differently. */
export interface AnnouncedEndpoint {
  readonly endpoint: string;
  readonly key?: string | undefined;
  /** Stand in the znode's JSON. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
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
        { ...fields, ...more },
      ] as const,
  );
  return service === undefined ? entries : [[{ kind: 'service', service }, fields], ...entries];
}

/**
 * The same for Curator's service discovery: an instance that goes with the session; undefined where no service is announced.
 *
 * @throws {ConfigError} when a field is none that its readers could read
 */
export function routingInstance(
  announcement: Announcement,
  { id: nodeId, version, taskId }: Pick<Lease, 'id' | 'version' | 'taskId'>,
  sources: { readonly clock: Pick<Clock, 'now'>; readonly random: Pick<RandomSource, 'hex'> },
): ServiceInstance | undefined {
  const { service: name, address = hostAddress(), port, sslPort, payload = {}, payloadType = 'map' } = announcement;
  if (name === undefined) return undefined;
  const fields = { ...payload, nodeId, version };
  const written = payloadType === 'spring' ? springInstancePayload({ id: taskId, name, metadata: texts(fields) }) : fields;
  return newInstance<unknown>({ name, id: taskId, address, port, sslPort, payload: written }, sources);
}

/**
 * Checks, before a node id is taken for nothing, that it could be announced.
 *
 * @throws {ConfigError} when a name cannot be a znode's, or the instance not be read by others
 */
export function checkAnnouncement(announcement: Announcement, taskId: string): void {
  const { payload, payloadType = 'map', basePath = DEFAULT_BASE_PATH } = announcement;
  checkBasePath(basePath);
  if (payloadType !== 'map' && payloadType !== 'spring') throw new ConfigError('payloadType', payloadType, "'map' or 'spring'");
  if (payload !== undefined) checkPayload(payload);
  for (const [entry] of routingEntries(announcement)) entryPath(entry, 0);
  routingInstance(announcement, { id: 0, version: 1, taskId }, { clock: { now: () => 0 }, random: { hex: () => '' } });
}

function checkPayload(payload: unknown): void {
  const json = payloadJson(payload);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new ConfigError('payload', typeof payload, 'an object');
  for (const name of ['nodeId', 'version']) {
    if (Object.hasOwn(json, name)) throw new ConfigError('payload', name, `a payload without ${name}, which is added to it`);
  }
}

function texts(fields: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}
