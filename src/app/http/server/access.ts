import { createHash, timingSafeEqual } from 'node:crypto';
import { checkArguments, checked, FLAG, having, maybe, NAME } from '../../../core/base/arguments.js';
import { ConfigError, explain } from '../../../core/base/errors.js';
import { readFollowing, SMALL_FILE } from '../../../core/base/files.js';
import {
  checkListenAddress,
  formatListenAddress,
  isLoopback,
  type ListenAddress,
} from '../../../core/settings/listen-address.js';
import { HttpProblem, unavailable } from '../problem.js';

/** Which clients may change anything. */
export type WriteAccess =
  | { readonly kind: 'nobody' }
  /** Clients that send `Authorization: Bearer` with the right token. */
  | { readonly kind: 'token'; readonly token: BearerToken }
  /** Every client that reaches the server, except a browser's page of another origin. */
  | { readonly kind: 'anybody' };

/** The same for a page, which changes nothing without a token. */
export type PageAccess = Exclude<WriteAccess, { readonly kind: 'anybody' }>;

/**
 * Which clients may change anything on a server that listens there: those with the token where there is one,
 * otherwise those on this machine.
 *
 * @param label the setting that the address comes from, as its user knows it
 * @throws {ConfigError} when others can reach it, and neither a token nor being read-only protects it
 */
export function writeAccess(
  listen: ListenAddress,
  options: { readonly readOnly?: boolean | undefined; readonly token?: BearerToken | undefined },
  label: string,
): WriteAccess {
  checkListenAddress(listen, 'listen');
  checkArguments({ label });
  checked(options, { readOnly: maybe(FLAG), token: maybe(having('a token', 'admits')) });
  if (options.readOnly) return { kind: 'nobody' };
  if (options.token) return { kind: 'token', token: options.token };
  if (isLoopback(listen.host)) return { kind: 'anybody' };
  throw new ConfigError(
    label,
    formatListenAddress(listen),
    'a loopback address such as 127.0.0.1:7070, or a bearer token file, or read-only, with it (any client that reaches it could register and unregister instances otherwise)',
  );
}

/**
 * Which clients may change anything through a page: none unless that was asked for, and then those with the
 * token.
 *
 * @param label the setting that asks for it, as its user knows it
 * @throws {ConfigError} when that is asked for without a token
 */
export function pageAccess(
  allowWrites: boolean | undefined,
  token: BearerToken | undefined,
  label: string,
): PageAccess {
  if (!allowWrites) return { kind: 'nobody' };
  if (token === undefined)
    throw new ConfigError(
      label,
      true,
      'a bearer token file with it (a page changes nothing without a token)',
    );
  return { kind: 'token', token };
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
  if (token === undefined)
    throw unauthorized(`an "Authorization: Bearer …" header is needed ${why}`, 'Bearer');
  if (!(await right.admits(token)))
    throw unauthorized('the token is not the right one', 'Bearer error="invalid_token"');
}

function unauthorized(message: string, challenge: string) {
  return new HttpProblem('unauthorized', message, { 'www-authenticate': challenge });
}

/**
 * Refuses a request that names another host. A page in a browser may have its own name resolved to a loopback
 * address (DNS rebinding): it would be of the same origin then, but cannot hide the name.
 *
 * @param names the names and addresses of the server in addition to those of loopback, in lower case
 * @throws {HttpProblem} `forbidden`
 */
export function checkHost(request: Request, names: ReadonlySet<string>): void {
  const { host: asked } = new URL(request.url);
  for (const host of new Set([asked, request.headers.get('host') ?? asked])) {
    const name = hostName(host);
    if (name === undefined || !(isLoopback(name) || names.has(name)))
      throw new HttpProblem(
        'forbidden',
        `host: expected a name of this machine, such as localhost, got ${JSON.stringify(host)}`,
      );
  }
}

/**
 * Refuses pages of another origin. Browsers send the origin of the page with every PUT and DELETE, but not with
 * every GET: an image has none. There they say how far away the page is. Other programs send neither.
 *
 * @throws {HttpProblem} `forbidden`
 */
export function checkOrigin(request: Request): void {
  const site = request.headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none')
    throw new HttpProblem(
      'forbidden',
      `sec-fetch-site: expected no page of another origin, got ${JSON.stringify(site)}`,
    );
  const origin = request.headers.get('origin');
  if (origin === null || (URL.canParse(origin) && new URL(origin).host === new URL(request.url).host)) return;
  throw new HttpProblem(
    'forbidden',
    `origin: expected no page of another origin, got ${JSON.stringify(origin)}`,
  );
}

function hostName(host: string) {
  const url = `http://${host}/`;
  if (!URL.canParse(url)) return undefined;
  const { hostname, username, pathname } = new URL(url);
  if (username !== '' || pathname !== '/') return undefined;
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.toLowerCase();
}

/** Checks whether a token is the right one. */
export interface BearerToken {
  /**
   * Takes as long for a wrong token as for the right one.
   *
   * @throws {HttpProblem} `unavailable` when the right one is not known for the time being
   */
  admits(token: string): Promise<boolean>;
}

/** RFC 6750, and long enough not to be found by trying. */
const TOKEN = /^[A-Za-z0-9._~+/-]{16,1024}={0,4}$/;
const EXPECTED = 'a file that holds one token of 16 to 1024 letters, digits and -._~+/ on one line';
const NO_TOKEN = 'the file with the token cannot be read, or holds none: no client is let in';

/** A token in a file, which is read again for every request: it can be replaced at any time. */
export class BearerTokenFile implements BearerToken {
  private constructor(private readonly path: string) {}

  /**
   * @param label the setting that the path comes from, as its user knows it
   * @throws {ConfigError} when the file cannot be read, or holds no token
   */
  static async open(path: string, label: string): Promise<BearerTokenFile> {
    checkArguments({ label });
    checkArguments({ [label]: path }, { [label]: NAME });
    let text: string;
    try {
      text = await read(path);
    } catch (cause) {
      throw new ConfigError(label, path, `${EXPECTED} (it cannot be read: ${explain(cause)})`);
    }
    const problem = problemWith(text);
    if (problem !== undefined) throw new ConfigError(label, path, `${EXPECTED} (${problem})`);
    return new BearerTokenFile(path);
  }

  async admits(token: string): Promise<boolean> {
    const text = await read(this.path).catch(() => undefined);
    // The file may just be being replaced: neither the old token nor an empty one may get through meanwhile.
    if (text === undefined || problemWith(text) !== undefined) throw unavailable(NO_TOKEN, 5);
    return timingSafeEqual(digest(token), digest(text.trim()));
  }
}

function digest(text: string) {
  return createHash('sha256').update(text).digest();
}

function problemWith(text: string) {
  const token = text.trim();
  if (token === '') return 'it is empty';
  if (/\s/.test(token)) return 'it holds more than one word';
  return TOKEN.test(token) ? undefined : 'its token is too short, too long, or has other characters';
}

/**
 * Waiting for the other end of a pipe would take one of the process' four threads for files with each request.
 */
const read = async (path: string) => (await readFollowing(path, SMALL_FILE)).toString();
