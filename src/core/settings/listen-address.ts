import { isIP, isIPv4 } from 'node:net';
import { checkArguments, checked, MAX_PORT, NAME, TEXT, whole } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import { parseInteger } from './setting.js';

/** Where a server listens. */
export interface ListenAddress {
  /** A host name or an IP address; an IPv6 address without brackets. */
  readonly host: string;
  /** 0 for any port that is free. */
  readonly port: number;
}

/** Where a server listens by default: for this machine only. */
export const DEFAULT_LISTEN_ADDRESS: ListenAddress = { host: '127.0.0.1', port: 7070 };

/**
 * Takes `HOST:PORT` apart. An IPv6 address is in brackets.
 *
 * @param label the setting that it comes from, as its user knows it
 * @param minPort 1 for an address to connect to
 * @throws {ConfigError} when it is none
 */
export function parseListenAddress(text: string, label: string, minPort: 0 | 1 = 0): ListenAddress {
  checkArguments({ label, minPort }, { minPort: whole(0, 1) });
  checkArguments({ [label]: text }, { [label]: TEXT });
  const [, bracketed, plain, digits = ''] =
    /^(?:\[([0-9a-fA-F:.]{2,45}(?:%[\w.-]{1,64})?)\]|([A-Za-z0-9._-]{1,253})):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  const bad =
    host === undefined ||
    port < minPort ||
    port > MAX_PORT ||
    (bracketed !== undefined && isIP(bracketed) !== 6);
  // Digits and dots alone are meant as an IP address, and must not be looked up as a name.
  if (bad || (/^[\d.]+$/.test(host) && !isIPv4(host))) {
    const ports = `a port from ${minPort === 0 ? '0 (any that is free)' : minPort} to 65535`;
    throw new ConfigError(label, text, `HOST:PORT such as 127.0.0.1:8080 or [::1]:8080, with ${ports}`);
  }
  return { host, port };
}

/** @throws {ConfigError} */
export const checkListenAddress = (address: ListenAddress, label: string) =>
  checked(address, { host: NAME, port: whole(0, MAX_PORT) }, label);

/** `HOST:PORT` again, with an IPv6 address in brackets. */
export function formatListenAddress(address: ListenAddress): string {
  const { host, port } = checkListenAddress(address, 'address');
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Whether only this machine can reach a host: a loopback address, or the name `localhost`. Other names are
 * not looked up, and count as not.
 */
export function isLoopback(host: string): boolean {
  checkArguments({ host }, { host: TEXT });
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.'));
}

/**
 * The URL, without a slash at the end, by which programs on the same host reach a server: by loopback where
 * it listens on all addresses.
 */
export function reachableUrl({ host, port }: ListenAddress): string {
  const loopback = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${formatListenAddress({ host: loopback, port })}`;
}

/**
 * What a health check asks: a URL, which has to answer with 2xx, or a port, which has to accept a connection.
 */
export type CheckTarget =
  | { readonly kind: 'http'; readonly url: string }
  | ({ readonly kind: 'tcp' } & ListenAddress);

const TARGET = 'http://HOST:PORT/PATH, https://HOST:PORT/PATH, tcp:PORT or tcp:HOST:PORT';

/** @throws {ConfigError} when the text names no target */
export function parseCheckTarget(text: string, label: string): CheckTarget {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return { kind: 'http', url: new URL(text).href };
  const [, address = ''] = /^tcp:(?!\/\/)(.*)$/.exec(text) ?? [];
  // By this name both of the host's loopback addresses are tried.
  if (/^\d+$/.test(address))
    return { kind: 'tcp', host: 'localhost', port: parseInteger(address, label, 1, MAX_PORT) };
  if (!address.includes(':')) throw new ConfigError(label, text, TARGET);
  return { kind: 'tcp', ...parseListenAddress(address, label, 1) };
}
