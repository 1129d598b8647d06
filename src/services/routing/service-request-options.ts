import type { ServiceInstance } from '../service-instance.js';
import { type InstancePicker, noInstance, pickTarget } from './instance-target.js';

/** Where one request goes, in the words of `http.request` and `https.request`. */
export interface ServiceRequestOptions<P = unknown> {
  /** The instance that was picked: give it to the provider's `noteError` when the request fails because of it. */
  readonly instance: ServiceInstance<P>;
  /** Says whether it takes `http` or `https`: Node refuses the other one's options. */
  readonly protocol: 'http:' | 'https:';
  /** A host name or an IP address. */
  readonly hostname: string;
  readonly port: number;
  /** The path that was asked for, after the one in the instance's uriSpec where there is one. */
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
 * As host and port are the instance's, an agent that keeps connections alive keeps them for each instance. Nothing is repeated, and nothing is
 * noted but by the caller.
 *
 * @param path begins with a slash; may have a query
 * @param except instances that are not to be picked: those that have failed this request before
 * @throws NoInstanceError when there is none
 */
export function serviceRequestOptions<P>(
  provider: InstancePicker<P>,
  path = '/',
  except: ReadonlySet<ServiceInstance<P>> = new Set(),
): ServiceRequestOptions<P> {
  const tried = new Set(except);
  const picked = pickTarget(provider, tried);
  if (picked === undefined) throw noInstance(provider, tried);
  const { protocol, hostname, port, basePath } = picked.target;
  return { instance: picked.instance, protocol, hostname, port, path: basePath + path };
}
