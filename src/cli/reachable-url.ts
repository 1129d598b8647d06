import { formatListenAddress, type ListenAddress } from '../http/listen-address.js';

/** The URL, without a slash at the end, by which programs on the same host reach a server: one that listens everywhere is reached by loopback. */
export function reachableUrl({ host, port }: ListenAddress): string {
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return `http://${formatListenAddress({ host: everywhere[host] ?? host, port })}`;
}
