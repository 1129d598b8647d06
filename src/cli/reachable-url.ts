import { formatListenAddress, type ListenAddress } from '../http/listen-address.js';

const EVERYWHERE: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/** The URL, without a slash at the end, by which programs on the same host reach a server: one that listens everywhere is reached by loopback. */
export function reachableUrl({ host, port }: ListenAddress): string {
  return `http://${formatListenAddress({ host: EVERYWHERE.get(host) ?? host, port })}`;
}
