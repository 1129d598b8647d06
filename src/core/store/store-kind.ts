import { isPort } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import { splitServers } from '../base/server-list.js';
import type { Setting } from '../settings/setting.js';
import type { LeaseStore } from './lease-store.js';

/** The URL of a store, taken apart. What else it has depends on its kind. */
export interface ParsedUrl {
  /** In its normal form. */
  readonly url: string;
}

/** What a parser knows of a URL in addition to its text. */
interface GivenUrl {
  readonly scheme: string;
  /** The setting that names the store. */
  readonly setting: string;
  readonly fail: Fail;
}

/** The settings that one kind of store has alone, and the option of the library with the same content. */
export interface OwnSettings {
  /** A field of `StoreAccess`: an object. */
  readonly option: string;
  /** Each with the option `<option>.<field>`. */
  readonly settings: Readonly<Record<string, Setting>>;
  /**
   * The scheme with TLS. Its files are the settings `<option>-ca`, `-cert` and `-key`, and of no use with
   * another scheme.
   */
  readonly tlsScheme?: string;
}

/** What a kind of store says of itself. Its module loads no SDK. */
export interface StoreKind<Options extends object = object> {
  /** The schemes of its URLs; the first one names the kind. */
  readonly schemes: readonly [string, ...string[]];
  /** Its URL, for messages. What precedes the last segment is the root of the store, such as a bucket. */
  readonly form: string;
  /** What `endpoint` is for this kind, for the help. @default the kind has none */
  readonly endpoint?: string;
  /** What `region` is about, for the help. @default the kind has none */
  readonly region?: string;
  /** Who shares the store: this process alone, or this host. @default all hosts that reach its server */
  readonly sharedBy?: 'process' | 'host';
  readonly own?: OwnSettings;
  /**
   * Of a cloud: where its prices are listed. Its requests are signed with the time of this host.
   * @default requests cost nothing
   */
  readonly cloudPrices?: string;
  /** What 1,000 requests cost there, in dollars: a write, and a read. @default those of S3 */
  readonly prices?: { readonly put: number; readonly get: number };
  /** Names of warnings by its SDK that errors report anyway. */
  readonly muted?: readonly string[];

  /**
   * Takes a URL apart. Its normal form is the given one without a slash at the end, unless the result has
   * another `url`.
   *
   * @param text what follows the scheme, and its slashes where the form has them
   * @throws {ConfigError} with what is wrong with it
   */
  parse(text: string, given: GivenUrl): Partial<Options> & Partial<ParsedUrl>;

  /**
   * Loads the driver and opens the store. Resolves before the store has been reached.
   * @throws {ConfigError} when an option cannot be used, or a package is not installed
   */
  open(options: Options): Promise<LeaseStore>;
}

/** Throws, with what was expected. */
type Fail = (expected: string) => never;

/** The first segment of a path, and the rest without the slash between them. */
export function splitPath(path: string): readonly [first: string, rest: string] {
  const [first = '', ...rest] = path.split('/');
  return [first, rest.join('/')];
}

/**
 * Takes `HOST[:PORT][,HOST[:PORT]]…/PATH` apart.
 *
 * @param what the path is called
 * @param defaultPort that of a server without one
 */
export function parseServers(text: string, what: string, defaultPort: number, form: string, fail: Fail) {
  const list = splitServers(text, what);
  if (typeof list === 'string') return fail(`${form} (${list})`);
  const servers = list.servers.map((server) => {
    const [, host = '', digits] = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i.exec(server) ?? [];
    const port = Number(digits ?? defaultPort);
    if (host === '' || !isPort(port) || !URL.canParse(`http://${host}`))
      fail(
        `servers, each HOST or HOST:PORT (an IPv6 address in brackets), with commas between them, in ${form}`,
      );
    return { host: host.replace(/[[\]]/g, ''), port, address: `${host}:${port}` };
  });
  return { servers, path: list.path.slice(1) };
}

/**
 * A prefix without a slash at its end.
 *
 * @param within what it separates fleets in: then it must not be empty
 */
export function parsePrefix(rest: string, form: string, fail: Fail, within?: string): string {
  const prefix = rest.replace(/\/$/, '');
  if (prefix === '' && within) fail(`a prefix, which nothing else in the ${within} uses, in ${form}`);
  if (prefix === '') return prefix;
  // A query or fragment would silently become a part of every key, which is never what its writer meant.
  if (/[?#\s\p{Cc}]/u.test(prefix)) fail(`a prefix without blanks, control characters, ? and # in ${form}`);
  if (prefix.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
    fail(`a prefix without empty, . and .. segments in ${form}`);
  }
  // Keys have 1,024 bytes; what is left is for the names of the objects.
  if (Buffer.byteLength(prefix) > 900) fail(`a prefix of at most 900 bytes in ${form}`);
  return prefix;
}

/** The prefix as the end of a URL. */
export function below(prefix: string): string {
  return prefix === '' ? '' : `/${prefix}`;
}

/** Whether the name of a bucket is an IPv4 address, which buckets must not have. */
export function isAddress(name: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(name);
}

/** @throws {ConfigError} unless it is the URL of one server, without credentials */
export function checkEndpoint(endpoint: string, label: string): void {
  const url = /^https?:\/\//i.test(endpoint) && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  // A password in a URL ends up in process lists and logs; and the SDK would not use it.
  if (url && (url.username !== '' || url.password !== '')) {
    const expected = 'no credentials in the URL: they come from the default chain of the cloud';
    throw new ConfigError(label, `${url.protocol}//…@${url.host}`, expected);
  }
  if (url === undefined || url.hostname.includes(',') || url.search !== '' || url.hash !== '')
    throw new ConfigError(label, endpoint, 'an http or https URL such as http://127.0.0.1:9000');
}
