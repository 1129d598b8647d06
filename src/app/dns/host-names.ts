import type { Clock } from '../../core/base/clock.js';
import { NameResolver } from '../../zookeeper/client/connection/name-resolver.js';
import { type DnsView, type Facts, factsOf, isHost } from './zone.js';

/** How long the addresses of a host name are kept, and that there are none, in milliseconds. */
const KEPT_MS = 30_000;
const NONE_KEPT_MS = 1_000;
/** How long a lookup may take, in milliseconds. */
const TIMEOUT_MS = 2_000;

/** The addresses of host names, as this machine's resolver finds them, by `/etc/hosts` too. */
export class HostNames implements Pick<DnsView, 'addressesOf'> {
  readonly #known = new Map<string, Facts<readonly string[]>>();
  readonly #closed = new AbortController();

  constructor(
    private readonly clock: Clock,
    private readonly resolver = new NameResolver(),
  ) {}

  addressesOf(host: string): Facts<readonly string[]> {
    const facts = this.#known.get(host) ?? { kind: 'pending', again: this.#resolve(host) };
    this.#known.set(host, facts);
    return facts;
  }

  close(): void {
    this.#closed.abort();
  }

  async #resolve(host: string): Promise<void> {
    const { clock } = this;
    const { signal } = this.#closed;
    const call = { clock, limitMs: TIMEOUT_MS, signal };
    const resolution = await this.resolver.resolve(host, call).catch(() => undefined);
    const addresses = resolution?.status === 'found' ? resolution.addresses.filter(isHost) : undefined;
    this.#known.set(host, factsOf(addresses));
    const keep = () => undefined;
    clock.sleep(addresses ? KEPT_MS : NONE_KEPT_MS, signal).then(() => this.#known.delete(host), keep);
  }
}
