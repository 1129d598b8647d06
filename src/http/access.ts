import { ConfigError } from '../base/errors.js';
import { formatListenAddress, isLoopback, type ListenAddress } from '../settings/listen-address.js';
import type { BearerToken } from './bearer-token.js';
import { HttpProblem } from './problem.js';

/** Who may change anything. */
export type WriteAccess =
  /** No client. */
  | { readonly kind: 'nobody' }
  /** Clients that send `Authorization: Bearer` with the right token. */
  | { readonly kind: 'token'; readonly token: BearerToken }
  /** Every client that reaches the server, except a browser's page of another origin. */
  | { readonly kind: 'anybody' };

/**
 * Which clients may change anything on a server that listens there: those with the token where there is one, otherwise those on this machine.
 *
 * @param label the setting that the address comes from, as its user knows it
 * @throws {ConfigError} when others can reach it, and neither a token nor being read-only protects it
 */
export function writeAccess(
  listen: ListenAddress,
  options: { readonly readOnly?: boolean | undefined; readonly token?: BearerToken | undefined },
  label: string,
): WriteAccess {
  if (options.readOnly) return { kind: 'nobody' };
  if (options.token) return { kind: 'token', token: options.token };
  if (isLoopback(listen.host)) return { kind: 'anybody' };
  throw new ConfigError(
    label,
    formatListenAddress(listen),
    'a loopback address such as 127.0.0.1:7070, or a bearer token file, or read-only, beside it (whoever reaches it could register and unregister instances otherwise)',
  );
}

/** @throws {HttpProblem} when the client may not change anything */
export async function checkWrite(access: WriteAccess, request: Request): Promise<void> {
  if (access.kind === 'nobody') throw new HttpProblem('forbidden', 'this server is read-only');
  // A page of another origin cannot send the token: browsers ask first, and are refused.
  if (access.kind === 'anybody') return checkOrigin(request);
  await checkBearer(access.token, request, 'to change anything');
}

/**
 * @param why what the token is needed for, for the message to a client without one
 * @throws {HttpProblem} `unauthorized` unless the right token is sent
 */
export async function checkBearer(right: BearerToken, request: Request, why: string): Promise<void> {
  const [, token] = /^Bearer +([^\s,]{1,2048}) *$/i.exec(request.headers.get('authorization') ?? '') ?? [];
  if (token === undefined) throw unauthorized('Bearer', `an "Authorization: Bearer …" header is needed ${why}`);
  if (!(await right.admits(token))) throw unauthorized('Bearer error="invalid_token"', 'the token is not the right one');
}

/**
 * Refuses a request that names another host. A page in a browser may have its own name resolved to a loopback address (DNS rebinding): it would
 * be of the same origin then, but cannot hide the name.
 *
 * @param names the names and addresses that the server goes by beside those of loopback, in lower case
 * @throws {HttpProblem} `forbidden`
 */
export function checkHost(request: Request, names: ReadonlySet<string>): void {
  const header = request.headers.get('host');
  const hosts = [new URL(request.url).host, ...(header === null ? [] : [header])];
  for (const host of hosts) {
    const name = hostName(host);
    if (name === undefined || !(isLoopback(name) || names.has(name)))
      throw new HttpProblem('forbidden', `host: expected a name of this machine, such as localhost, got ${JSON.stringify(host)}`);
  }
}

/** Browsers send the origin of the page with every PUT and DELETE; other programs send none. */
function checkOrigin(request: Request): void {
  const origin = request.headers.get('origin');
  if (origin === null || (URL.canParse(origin) && new URL(origin).host === new URL(request.url).host)) return;
  throw new HttpProblem('forbidden', `origin: expected no page of another origin, got ${JSON.stringify(origin)}`);
}

function unauthorized(challenge: string, message: string): HttpProblem {
  return new HttpProblem('unauthorized', message, { 'www-authenticate': challenge });
}

function hostName(host: string): string | undefined {
  const url = `http://${host}/`;
  if (!URL.canParse(url)) return undefined;
  const { hostname, username, pathname } = new URL(url);
  if (username !== '' || pathname !== '/') return undefined;
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.toLowerCase();
}
