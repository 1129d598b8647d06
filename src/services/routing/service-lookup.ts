import { type LookupOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import type { ServiceInstance } from '../service-instance.js';
import { type InstancePicker, type InstanceTarget, noInstance, pickTarget } from './instance-target.js';
import { canonicalHost } from './routing-options.js';

/** Options of {@link serviceLookup}. */
export interface ServiceLookupOptions {
  /** Resolves the host names that are not services, and the instances whose addresses are host names. @default `dns.lookup` of Node */
  readonly lookup?: LookupFunction | undefined;
}

/** Providers by the host names that stand for their services. */
export type ProvidersByHost = ReadonlyMap<string, InstancePicker>;

/**
 * A `lookup` for `http.request`, `https.request` and `net.connect`: the host name of a service becomes the address of one of its instances, picked
 * for each new connection.
 *
 * **It gives no port**: Node asks it for an address only. It is for services whose instances all listen on one known port. For others use
 * `serviceRequestOptions` or `serviceDispatcher`.
 *
 * It does not learn whether the connection was made, so it notes no errors. Node does not call it for connections that are kept alive, as the
 * global agent does from Node 19 on; with `agent: false` each request gets a connection. With `https`, the certificate must bear the service's host name.
 *
 * @param providers one provider, for its service's name as the host name, or a map of host names; other names are resolved as ever
 * @throws ConfigError when a name cannot be a host name
 */
export function serviceLookup(providers: InstancePicker | ProvidersByHost, options: ServiceLookupOptions = {}): LookupFunction {
  const { lookup = systemLookup as LookupFunction } = options;
  const byHost = new Map<string, InstancePicker>();
  if ('pick' in providers) byHost.set(canonicalHost(providers.name, true), providers);
  else for (const [host, provider] of providers) byHost.set(canonicalHost(host), provider);

  return (hostname, lookupOptions, callback) => {
    const provider = byHost.get(hostname.toLowerCase());
    if (provider === undefined) return lookup(hostname, lookupOptions, callback);
    const family = familyOf(lookupOptions);
    // Of the other family, an address is of no use to the one who asks; a name may have addresses of both.
    const tried = new Set<ServiceInstance>();
    const fits = ({ hostname: address }: InstanceTarget) => family === 0 || [0, family].includes(isIP(address));
    const picked = pickTarget(provider, tried, fits);
    if (picked === undefined) return queueMicrotask(() => callback(noInstance(provider, tried, fits), []));
    const address = picked.target.hostname;
    const version = isIP(address);
    if (version === 0) return lookup(address, lookupOptions, callback);
    // As late as the system's own: callers have their listeners in place then.
    queueMicrotask(() => {
      if (lookupOptions.all) callback(null, [{ address, family: version }]);
      else callback(null, address, version);
    });
  };
}

function familyOf({ family }: LookupOptions): 0 | 4 | 6 {
  if (family === 4 || family === 'IPv4') return 4;
  return family === 6 || family === 'IPv6' ? 6 : 0;
}
