import { isIPv4, isIPv6 } from 'node:net';
import {
  checkArguments,
  checked,
  checkPlain,
  isPort,
  MAX_PORT,
  TEXT,
  whole,
} from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { splitServers } from '../../core/base/server-list.js';
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
 * 2181 by default. The same chroot behind each server is one chroot.
 *
 * @param label the name of its setting for the user
 * @throws {ConfigError} naming the problem
 */
export function parseConnectString(text: string, label: string): ConnectString {
  checkArguments({ label });
  checkPlain(text, label);
  const fail = (why: string) => {
    // The wrong part is quoted, and may be part of a password.
    const shown = text.includes('@')
      ? 'without credentials: digest:USER:PASSWORD is a separate setting'
      : why;
    return new ConfigError(label, text, `${FORM} (${shown})`);
  };
  if (text === '') throw fail('it is empty');
  if (text.startsWith('/')) throw fail('no server is named');
  const [scheme] = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text) ?? [];
  if (scheme !== undefined) throw fail(`no ${scheme} in front of the servers`);
  const list = splitServers(text, 'chroot');
  if (typeof list === 'string') throw fail(list);
  const servers = list.servers.map((item) => {
    const server = parseServer(item);
    if (typeof server === 'string') throw fail(server);
    return server;
  });
  const chroot = list.path;
  if (/\s/.test(chroot)) throw fail(`the chroot ${JSON.stringify(chroot)}: it has no blanks`);
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
  const parts = /^(?:\[(?<ipv6>[^\]]*)\]|(?<name>[^:[\]]*))(?::(?<port>.*))?$/s.exec(item)?.groups;
  if (!parts || isIPv6(item) || isIPv6(item.replace(/:[0-9]*$/, '')))
    return `the server ${JSON.stringify(item)}: an IPv6 address stands in brackets, as in [::1]:${DEFAULT_PORT}`;
  const { ipv6, name, port } = parts;
  const host = ipv6 ?? name ?? '';
  if (ipv6 === undefined ? !isHost(host) : !isIPv6(host)) return `${JSON.stringify(host)} is no host`;
  if (port === undefined) return { host, port: DEFAULT_PORT };
  if (!/^[0-9]{1,5}$/.test(port) || !isPort(Number(port)))
    return `${JSON.stringify(port)} is no port, 1 to 65535`;
  return { host, port: Number(port) };
}

/** A name may have underscores, which resolvers of containers take. */
function isHost(host: string) {
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
  // Another type of value may hold a password, too: it is not shown either.
  const given = TEXT.is(text) ? text : '';
  const shown = given.startsWith('digest:') ? 'digest:…' : '…';
  checkPlain(given, label, shown);
  const [scheme, user, ...rest] = given.split(':');
  const password = rest.join(':');
  if (scheme !== 'digest' || user === undefined || user === '' || password === '') {
    throw new ConfigError(label, shown, 'digest:USER:PASSWORD, the digest scheme being the only one');
  }
  return { scheme, user, password };
}

/** The data that are sent to the servers. */
export function authData({ user, password }: DigestAuth): Buffer {
  return Buffer.from(`${user}:${password}`, 'utf8');
}
