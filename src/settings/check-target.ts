import { ConfigError } from '../base/errors.js';
import { type ListenAddress, parseListenAddress } from './listen-address.js';
import { parseInteger } from './values.js';

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
    return { kind: 'tcp', host: 'localhost', port: parseInteger(address, label, 1, 65_535) };
  if (!address.includes(':')) throw new ConfigError(label, text, TARGET);
  return { kind: 'tcp', ...parseListenAddress(address, label, 1) };
}
