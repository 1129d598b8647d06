import { isIP } from 'node:net';
import { checkArguments, having, isPort, MAX_PORT, whole } from '../../../core/base/arguments.js';
import { type Clock, type RandomSource, randomUuid } from '../../../core/base/clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { checkZnodeName } from '../../client/znode-path.js';
import { wrongValue } from '../shortened.js';
import type { ServiceInstance, ServiceType, UriPart, UriSpec } from './service-instance.js';
import { parseUriSpec, springUriSpec } from './uri-spec.js';

/**
 * The fields of a new instance. Name and id are znode's names of at most 255 bytes, the address is without
 * scheme, port and brackets. By default the id is a random UUID, the time is now, the type is `DYNAMIC`, it
 * is enabled, the uriSpec is Spring's if there is a port and no payload, and all else is absent.
 */
export type ServiceInstanceInit<P = unknown> = {
  readonly name: string;
  readonly address: string;
  /** In parts, or as a text: `{scheme}://{address}:{port}/orders`. */
  readonly uriSpec?: UriSpec | string | undefined;
} & {
  readonly [Field in Exclude<keyof ServiceInstance<P>, 'name' | 'address' | 'uriSpec'>]?:
    | ServiceInstance<P>[Field]
    | undefined;
};

/** In the order of Curator's enumeration. */
export const SERVICE_TYPES: readonly ServiceType[] = ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'];

/**
 * The names of a service's instances must fit into one answer of a server, 1 MB: some 4,000 of the longest.
 */
const MAX_NAME_BYTES = 255;
const MAX_ADDRESS_LENGTH = 253;

/** Where the time and the id of a new instance come from. */
export interface InstanceSources {
  readonly clock: Pick<Clock, 'now'>;
  readonly random: Pick<RandomSource, 'hex'>;
}

/** An instance to be registered. Nothing is written; the payload is checked when it is. */
export function newInstance<P = unknown>(
  init: ServiceInstanceInit<P>,
  sources: InstanceSources,
): ServiceInstance<P> {
  checkArguments({ instance: init, sources });
  const { clock, random } = sources;
  checkArguments(
    { clock, random },
    { clock: having('a clock', 'now'), random: having('a source of random numbers', 'hex') },
  );
  const instance: ServiceInstance<P> = {
    name: init.name,
    id: init.id ?? randomUuid(random),
    address: init.address,
    port: init.port,
    sslPort: init.sslPort,
    payload: init.payload,
    registrationTimeUTC: init.registrationTimeUTC ?? Math.max(0, Math.trunc(clock.now())),
    serviceType: init.serviceType ?? 'DYNAMIC',
    uriSpec: uriSpecOf(init),
    enabled: init.enabled === undefined ? true : init.enabled,
  };
  checkInstance(instance);
  return instance;
}

/** An instance without a payload is for all readers, and Spring's URI is empty without a uriSpec. */
function uriSpecOf(init: ServiceInstanceInit): UriSpec | undefined {
  const { uriSpec, payload, port, sslPort } = init;
  if (typeof uriSpec === 'string') return parseUriSpec(uriSpec, 'instance.uriSpec');
  const isForAll = payload === undefined && (port ?? sslPort) !== undefined;
  return uriSpec ?? (isForAll ? springUriSpec(init) : undefined);
}

/**
 * Checks everything except the payload: what ZooKeeper refuses, what Curator's readers cannot read, and what
 * no client can connect to.
 *
 * @throws {ConfigError} that names the first wrong field, its value, and the expected form
 */
export function checkInstance(instance: ServiceInstance): void {
  checkArguments({ instance });
  checkServiceName(instance.name, 'instance.name');
  checkServiceName(instance.id, 'instance.id');
  checkAddress(instance.address, 'instance.address');
  checkPort(instance.port, 'instance.port');
  checkPort(instance.sslPort, 'instance.sslPort');
  const { registrationTimeUTC, serviceType, uriSpec, enabled } = instance;
  if (!whole(0).is(registrationTimeUTC))
    throw wrongValue(
      'instance.registrationTimeUTC',
      registrationTimeUTC,
      'whole milliseconds since the Unix epoch',
    );
  if (!SERVICE_TYPES.includes(serviceType))
    throw wrongValue('instance.serviceType', serviceType, `one of ${SERVICE_TYPES.join(', ')}`);
  if (typeof enabled !== 'boolean') throw wrongValue('instance.enabled', enabled, 'true or false');
  if (uriSpec !== undefined) checkUriSpec(uriSpec);
}

/**
 * @param label where the name, or an instance's id, comes from, as its user knows it
 * @throws {ConfigError} when no service, or no instance, can have it
 */
export function checkServiceName(name: unknown, label = 'service name'): void {
  if (typeof name !== 'string' || name === '') throw wrongValue(label, name, 'a name');
  const bytes = Buffer.byteLength(name);
  if (bytes > MAX_NAME_BYTES) throw wrongValue(label, name, `at most ${MAX_NAME_BYTES} bytes, not ${bytes}`);
  checkZnodeName(name, label);
}

/**
 * @param label where the address comes from, as its user knows it
 * @throws {ConfigError} when no client could connect to it
 */
export function checkAddress(address: unknown, label: string): void {
  if (typeof address !== 'string' || !isHost(address))
    throw wrongValue(label, address, 'a host name or an IP address, without scheme, port and brackets');
  if (address === '0.0.0.0' || address === '::')
    throw new ConfigError(
      label,
      address,
      'an address that others can connect to (this one means all of a host’s own)',
    );
}

/** Docker's networks have host names with "_". A zone ("%eth0") means nothing on other hosts. */
function isHost(text: string) {
  if (isIP(text) !== 0) return !text.includes('%');
  if (
    text.length > MAX_ADDRESS_LENGTH ||
    !/^[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N}_-]|\.(?!\.|$))*\.?$/u.test(text)
  )
    return false;
  // Parsers of URLs read a name that ends with a number as an IPv4 address.
  return !/(?:^|\.)\d+\.?$/.test(text);
}

function checkPort(port: unknown, label: string) {
  if (port !== undefined && !isPort(port))
    throw wrongValue(label, port, `a whole number from 1 to ${MAX_PORT}, or none`);
}

function checkUriSpec(uriSpec: UriSpec) {
  const parts: unknown = uriSpec?.parts;
  const isPart = (part: Partial<UriPart> | null) =>
    typeof part?.value === 'string' && typeof part.variable === 'boolean';
  if (!Array.isArray(parts) || !parts.every(isPart))
    throw wrongValue(
      'instance.uriSpec',
      uriSpec,
      'its parts, each with a value and whether it is a variable',
    );
}
