import { checkArguments, checked, kind, listOf, maybe, TEXT, whole } from '../../../core/base/arguments.js';
import { ConfigError } from '../../../core/base/errors.js';

/**
 * Which URLs are meant for the service: those with one of these host names, whatever their port, or `any`.
 */
export type ServiceHosts = readonly string[] | 'any';

/** How requests are sent to the instances of a service. */
export interface RoutingOptions {
  /**
   * The host names, without ports, of the URLs that are meant for the service; `any` for all URLs. Requests
   * to other hosts, redirects too, pass through. The port of the URL does not matter. With `https://` nothing
   * is sent without TLS; with `http://` the instance decides.
   *
   * @default the name of the service, as in `http://orders/…`
   */
  readonly hosts?: ServiceHosts | undefined;
  /** To how many instances a request is sent at most, the first one included, 1 … 16. @default 3 */
  readonly maxAttempts?: number | undefined;
  /**
   * The status codes, 500 … 599, that count as the instance's failure: another instance is tried if the
   * request may be repeated. The caller gets the answer of the last one.
   *
   * @default [502, 503, 504]
   */
  readonly retryStatuses?: readonly number[] | undefined;
  /**
   * How long an instance may take to begin its answer, in milliseconds, 1 or more; a request's own wins.
   * @default that of the dispatcher: 300 s
   */
  readonly headersTimeoutMs?: number | undefined;
}

const STATUSES = 'status codes, 500 … 599';

const KINDS = {
  hosts: maybe(
    kind("an array of host names, or 'any'", (value) => value === 'any' || listOf(TEXT).is(value)),
  ),
  maxAttempts: maybe(kind('an integer, 1 … 16', whole(1, 16).is)),
  retryStatuses: maybe(kind(STATUSES, Array.isArray)),
  headersTimeoutMs: maybe(
    kind('milliseconds, 1 or more', (value) => Number.isFinite(value) && (value as number) >= 1),
  ),
};

/** The options, checked, with their defaults. */
export type RoutingSettings = ReturnType<typeof checkRoutingOptions>;

/** @throws ConfigError for an option that is out of its range */
export function checkRoutingOptions(name: string, options: RoutingOptions) {
  const {
    hosts,
    maxAttempts = 3,
    retryStatuses = [502, 503, 504],
    headersTimeoutMs,
  } = checked(options, KINDS);
  // One by one: the error shows the wrong one.
  for (const status of retryStatuses)
    checkArguments({ retryStatuses: status }, { retryStatuses: kind(STATUSES, whole(500, 599).is) });
  return {
    isMeant: originMatcher(name, hosts),
    maxAttempts,
    retryStatuses: new Set(retryStatuses),
    headersTimeoutMs,
  };
}

/**
 * Matches the requests that are meant for a service, by their origin. A request without an origin is meant
 * for it.
 *
 * @param hosts host names; undefined for the service's own name
 * @throws ConfigError when one of them cannot be the host of a URL
 */
function originMatcher(
  name: string,
  hosts: ServiceHosts | undefined,
): (origin: string | URL | undefined) => boolean {
  const all = hosts === 'any';
  const accepted = new Set(
    all ? [] : (hosts ?? [name]).map((host) => canonicalHost(host, hosts === undefined)),
  );
  return (origin) => {
    if (origin === undefined) return true;
    if (typeof origin === 'string' && !URL.canParse(origin)) return false;
    return all || accepted.has(new URL(origin).hostname);
  };
}

/** A host name as a URL has it: in lower case, in ASCII. */
export function canonicalHost(host: string, isName = false): string {
  const text = `http://${host}/`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // A URL does not show its default port.
  if (url !== undefined && !/:\d*$/.test(host) && url.href === `http://${url.hostname}/`) return url.hostname;
  const why = isName ? ', since the name of the service cannot be the host of a URL' : '';
  throw new ConfigError('hosts', host, `a host name without a port${why}`);
}
