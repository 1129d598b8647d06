import { isIPv4, isIPv6 } from 'node:net';
import { checkArguments, checked, TEXT, whole } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import { isPort, MAX_PORT } from '../base/ports.js';
import { isReserved, pathProblem } from './znode-path.js';

/** One server. */
export interface ServerAddress {
  /** A host name or an IP address, an IPv6 one without its brackets. */
  readonly host: string;
  readonly port: number;
}

/** The servers of the ensemble, and the root in its tree. */
export interface ConnectString {
  /** At least one, in the order in which they were given. */
  readonly servers: readonly ServerAddress[];
  /** The path that all others are within; empty for the root. */
  readonly chroot: string;
  /** As it was given. */
  readonly text: string;
}

/** The port of a server that is given without one. */
export const DEFAULT_PORT = 2181;

const FORM = 'HOST:PORT[,HOST:PORT]...[/CHROOT]';

/**
 * Parses a connect string: `HOST:PORT[,HOST:PORT]…[/CHROOT]`, with IPv6 addresses in brackets, and the port
 * 2181 by default.
 *
 * @param label the name of its setting for the user
 * @throws {ConfigError} naming the problem
 */
export function parseConnectString(text: string, label: string): ConnectString {
  checkArguments({ label });
  checkArguments({ [label]: text }, { [label]: TEXT });
  const fail = (why: string) => {
    // The wrong part is quoted, and may be part of a password.
    const shown = text.includes('@')
      ? 'without credentials: digest:USER:PASSWORD is a separate setting'
      : why;
    return new ConfigError(label, text, `${FORM} (${shown})`);
  };
  if (text === '') throw fail('it is empty');
  const slash = text.indexOf('/');
  const list = slash < 0 ? text : text.slice(0, slash);
  const chroot = slash < 0 ? '' : text.slice(slash);
  if (list === '') throw fail('no server is named');
  const servers = list.split(',').map((item) => {
    const server = parseServer(item);
    if (typeof server === 'string') throw fail(server);
    return server;
  });
  if (chroot !== '') {
    const problem = chroot === '/' ? 'a path does not end with "/"' : pathProblem(chroot);
    if (problem !== undefined) throw fail(`the chroot ${JSON.stringify(chroot)}: ${problem}`);
    if (isReserved(chroot)) throw fail('the chroot /zookeeper belongs to the servers');
  }
  return { servers, chroot, text };
}

/** A server as people write it, for messages. */
export function formatServer(server: ServerAddress): string {
  const { host, port } = checked(server, { host: TEXT, port: whole(1, MAX_PORT) }, 'server');
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The server, or the problem of the text. */
function parseServer(item: string): ServerAddress | string {
  if (item === '') return 'a server is empty';
  const parts = /^(?:\[(?<ipv6>[^\]]*)\]|(?<name>[^:[\]]*))(?::(?<port>.*))?$/s.exec(item)?.groups;
  if (!parts || isIPv6(item)) return `the server ${JSON.stringify(item)}: an IPv6 address stands in brackets`;
  const { ipv6, name, port } = parts;
  const host = ipv6 ?? name ?? '';
  if (ipv6 === undefined ? !isHost(host) : !isIPv6(host)) return `${JSON.stringify(host)} is no host`;
  if (port === undefined) return { host, port: DEFAULT_PORT };
  if (!/^[0-9]{1,5}$/.test(port) || !isPort(Number(port)))
    return `${JSON.stringify(port)} is no port, 1 to 65535`;
  return { host, port: Number(port) };
}

/** A name may have underscores, which resolvers of containers take. */
function isHost(host: string): boolean {
  if (/^[0-9.]+$/.test(host)) return isIPv4(host);
  return (
    host.length <= 253 &&
    /^[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$/.test(
      host,
    )
  );
}

/** The identity of this client: a name and a password that it sends to the servers. */
export interface DigestAuth {
  readonly scheme: 'digest';
  readonly user: string;
  readonly password: string;
}

/**
 * Takes credentials apart: `digest:USER:PASSWORD`. The password may contain colons. The servers accept any
 * digest: a wrong one shows only when an access control list refuses an operation, as `no-auth`.
 *
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} which never contains the password
 */
export function parseAuth(text: string, label: string): DigestAuth {
  checkArguments({ label });
  // Another type of value may hold a password, too.
  const [scheme, user, ...rest] = typeof text === 'string' ? text.split(':') : [];
  const password = rest.join(':');
  if (scheme !== 'digest' || user === undefined || user === '' || password === '' || /\p{Cc}/u.test(text)) {
    const shown = scheme === 'digest' ? 'digest:…' : '…';
    throw new ConfigError(label, shown, 'digest:USER:PASSWORD, the digest scheme being the only one');
  }
  return { scheme, user, password };
}

/** The data that are sent to the servers. */
export function authData({ user, password }: DigestAuth): Buffer {
  return Buffer.from(`${user}:${password}`, 'utf8');
}
