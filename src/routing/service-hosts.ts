import { ConfigError } from '../errors.js';

/** Which URLs are meant for the service: those with one of these host names, whatever their port, or `any`. */
export type ServiceHosts = readonly string[] | 'any';

/**
 * Tells the requests that are meant for a service from all others.
 *
 * @param hosts host names; undefined for the service's own name
 * @throws ConfigError when one of them cannot be the host of a URL
 */
export function hostMatcher(name: string, hosts: ServiceHosts | undefined): (hostname: string) => boolean {
  if (hosts === 'any') return () => true;
  const accepted = new Set((hosts ?? [name]).map((host) => canonicalHost(host, hosts === undefined)));
  return (hostname) => accepted.has(hostname);
}

/** The same for the origin of a request: no origin at all is meant for the service. */
export function originMatcher(matches: (hostname: string) => boolean): (origin: string | URL | undefined) => boolean {
  // Nearly always the same one again.
  let last: string | undefined;
  let lastMatches = false;
  return (origin) => {
    if (origin === undefined) return true;
    if (typeof origin !== 'string') return matches(origin.hostname);
    if (origin !== last) {
      lastMatches = URL.canParse(origin) && matches(new URL(origin).hostname);
      last = origin;
    }
    return lastMatches;
  };
}

/** A host name as a URL has it: in lower case, in ASCII. */
export function canonicalHost(host: string, isName = false): string {
  const text = `http://${host}/`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // A URL does not tell its default port.
  if (url === undefined || /:\d*$/.test(host) || url.href !== `http://${url.hostname}/`) {
    const why = isName ? ', since the name of the service cannot be the host of a URL' : '';
    throw new ConfigError('hosts', host, `a host name without a port${why}`);
  }
  return url.hostname;
}
