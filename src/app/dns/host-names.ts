import type { Clock } from '../../core/base/clock.js';
import { NameResolver } from '../../zookeeper/client/connection/name-resolver.js';
import { type Facts, factsOf, isHost } from './zone.js';

/** How long the addresses of a host name are kept, and that there are none, in milliseconds. */
const KEPT_MS = 30_000;
const NONE_KEPT_MS = 1_000;
/** How long a lookup may take, in milliseconds. */
const TIMEOUT_MS = 2_000;

/** The addresses of host names, as this machine's resolver finds them, by `/etc/hosts` too. */
export function hostNames(clock: Clock, resolver = new NameResolver()) {
  /** With those that are being looked up. */
  const known = new Map<string, Facts<readonly string[]>>();
  const closed = new AbortController();
  const resolve = async (host: string): Promise<void> => {
    const { signal } = closed;
    const call = { clock, limitMs: TIMEOUT_MS, signal };
    const resolution = await resolver.resolve(host, call).catch(() => undefined);
    const addresses = resolution?.status === 'found' ? resolution.addresses.filter(isHost) : undefined;
    known.set(host, factsOf(addresses));
    const keep = () => undefined;
    clock.sleep(addresses ? KEPT_MS : NONE_KEPT_MS, signal).then(() => known.delete(host), keep);
  };
  return {
    addressesOf(host: string): Facts<readonly string[]> {
      const facts = known.get(host) ?? { kind: 'pending', again: resolve(host) };
      known.set(host, facts);
      return facts;
    },
    close: () => closed.abort(),
  };
}
