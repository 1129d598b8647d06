import { type LookupOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { checkArguments, checked, FUNCTION, kind, maybe } from '../../../core/base/arguments.js';
import type { ServiceInstance } from '../instance/service-instance.js';
import { type InstancePicker, type InstanceTarget, noInstance, pickTarget } from './instance-target.js';
import { canonicalHost } from './routing-options.js';

const nodeLookup = systemLookup as LookupFunction;

/** Options of {@link serviceLookup}. */
export interface ServiceLookupOptions {
  /**
   * Resolves the host names that are not services, and the instances whose addresses are host names.
   * @default `dns.lookup` of Node
   */
  readonly lookup?: LookupFunction | undefined;
}

/** Providers by the host names of their services. */
export type ProvidersByHost = ReadonlyMap<string, InstancePicker>;

/**
 * A `lookup` for `http.request`, `https.request` and `net.connect`: the host name of a service becomes the
 * address of one of its instances, picked for each new connection.
 *
 * **It gives no port**: Node asks it for an address only. It is for services whose instances all listen on
 * one known port. It does not learn whether the connection was made, so it notes no errors. Otherwise use
 * `serviceRequestOptions` or `serviceDispatcher`. Node does not call it for connections that are kept alive
 * (the global agent's are); with `agent: false` each request gets a connection. With `https`, the certificate
 * must bear the service's host name.
 *
 * @param providers one provider, for its service's name as the host name, or a map of host names; other names
 * are resolved as ever
 * @throws ConfigError when a name cannot be a host name
 */
export function serviceLookup(
  providers: InstancePicker | ProvidersByHost,
  options: ServiceLookupOptions = {},
): LookupFunction {
  const { lookup = nodeLookup } = checked(options, { lookup: maybe(FUNCTION) });
  checkArguments(
    { providers },
    {
      providers: kind(
        'a provider, or a map of providers by their hosts',
        (value) => value instanceof Map || 'pick' in Object(value),
      ),
    },
  );
  const byHost = new Map<string, InstancePicker>();
  if ('pick' in providers) byHost.set(canonicalHost(providers.name, true), providers);
  else for (const [host, provider] of providers) byHost.set(canonicalHost(host), provider);

  return (hostname, lookupOptions, callback) => {
    const provider = byHost.get(hostname.toLowerCase());
    if (provider === undefined) return lookup(hostname, lookupOptions, callback);
    const family = familyOf(lookupOptions);
    // An address of the other family is of no use to the caller; a name may have addresses of both.
    const tried = new Set<ServiceInstance>();
    const fits = ({ hostname: address }: InstanceTarget) =>
      family === 0 || [0, family].includes(isIP(address));
    const picked = pickTarget(provider, tried, fits);
    if (picked === undefined) return queueMicrotask(() => callback(noInstance(provider, tried, fits), []));
    const { hostname: address } = picked.target;
    // Node's own calls back with an IP address as it is.
    return isIP(address) === 0
      ? lookup(address, lookupOptions, callback)
      : nodeLookup(address, lookupOptions, callback);
  };
}

function familyOf({ family }: LookupOptions): 0 | 4 | 6 {
  if (family === 4 || family === 'IPv4') return 4;
  return family === 6 || family === 'IPv6' ? 6 : 0;
}

/**
 * Where one request goes, in the terms of `http.request` and `https.request`. The protocol says which of the
 * two.
 */
export interface ServiceRequestOptions<P = unknown>
  extends Pick<InstanceTarget, 'protocol' | 'hostname' | 'port'> {
  /**
   * The instance that was picked: give it to the provider's `noteError` when the request fails because of it.
   */
  readonly instance: ServiceInstance<P>;
  /** The given path, after the one in the instance's uriSpec where there is one. */
  readonly path: string;
}

/**
 * Picks an instance for one request of `http.request` or `https.request`:
 *
 * ```ts
 * const options = serviceRequestOptions(provider, '/items/7');
 * const { request } = options.protocol === 'https:' ? https : http;
 * request({ ...options, method: 'GET' }).on('error', () => provider.noteError(options.instance)).end();
 * ```
 *
 * An agent that keeps connections alive keeps them for each instance. Nothing is repeated, and only the
 * caller notes errors.
 *
 * @param path begins with a slash; may have a query
 * @param except instances that are not picked: the ones that have failed this request before
 * @throws NoInstanceError when there is none
 */
export function serviceRequestOptions<P>(
  provider: InstancePicker<P>,
  path = '/',
  except: ReadonlySet<ServiceInstance<P>> = new Set(),
): ServiceRequestOptions<P> {
  checkArguments({ provider, path, except });
  const tried = new Set(except);
  const picked = pickTarget(provider, tried);
  if (picked === undefined) throw noInstance(provider, tried);
  const { protocol, hostname, port, basePath } = picked.target;
  return { instance: picked.instance, protocol, hostname, port, path: basePath + path };
}
