import { ConfigError } from '../base/errors.js';
import { type HostPort, parseHostPort, parseInteger } from './values.js';

/** What a health check asks: a URL, which has to answer with 2xx, or a port, which has to accept a connection. */
export type CheckTarget = { readonly kind: 'http'; readonly url: string } | ({ readonly kind: 'tcp' } & HostPort);

/** When a service counts as able to work. */
export interface CheckSettings {
  readonly target: CheckTarget;
  /** From one check to the next, and how long one may take, in milliseconds, 100 to 600,000. @default 2000 */
  readonly intervalMs: number;
  /** How many checks in a row have to say so before the service goes out, or comes back. @default 3 */
  readonly threshold: number;
}

const TARGET = 'http://HOST:PORT/PATH, https://HOST:PORT/PATH, tcp:PORT or tcp:HOST:PORT';

/** @throws {ConfigError} for anything but a target */
export function parseCheckTarget(text: string, label: string): CheckTarget {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return { kind: 'http', url: new URL(text).href };
  const [, address] = /^tcp:(?!\/\/)(.*)$/.exec(text) ?? [];
  if (address === undefined) throw new ConfigError(label, text, TARGET);
  // By this name both of the host's loopback addresses are tried.
  if (/^\d+$/.test(address)) return { kind: 'tcp', host: 'localhost', port: parseInteger(address, label, 1, 65_535) };
  if (!address.includes(':')) throw new ConfigError(label, text, TARGET);
  return { kind: 'tcp', ...parseHostPort(address, label) };
}
