import type { Clock } from '../base/clock.js';
import { NameResolver } from '../zookeeper/connection/name-resolver.js';
import { type DnsView, isHost, type Known } from './zone.js';

/** How long the addresses of a host name are kept, and that there are none, in milliseconds. */
const KEPT_MS = 30_000;
const NONE_KEPT_MS = 1_000;
/** How long a lookup may take, in milliseconds. */
const TIMEOUT_MS = 2_000;

/** The addresses of host names, as this machine's resolver finds them, by `/etc/hosts` too. */
export class HostNames implements Pick<DnsView, 'addressesOf'> {
  readonly #known = new Map<
    string,
    { readonly addresses: Known<readonly string[]>; readonly until: number }
  >();
  readonly #closed = new AbortController();

  constructor(
    private readonly clock: Clock,
    private readonly resolver = new NameResolver(),
  ) {}

  addressesOf(host: string): Known<readonly string[]> {
    const now = this.clock.monotonic();
    const known = this.#known.get(host);
    if (known && now < known.until) return known.addresses;
    for (const [each, { until }] of this.#known) if (until <= now) this.#known.delete(each);
    const addresses = this.#resolve(host);
    this.#known.set(host, { addresses, until: Number.POSITIVE_INFINITY });
    return addresses;
  }

  close(): void {
    this.#closed.abort();
  }

  async #resolve(host: string): Promise<void> {
    const { clock } = this;
    const call = { clock, limitMs: TIMEOUT_MS, signal: this.#closed.signal };
    const resolution = await this.resolver.resolve(host, call).catch(() => undefined);
    const addresses = resolution?.status === 'found' ? resolution.addresses.filter(isHost) : undefined;
    const keptMs = addresses === undefined ? NONE_KEPT_MS : KEPT_MS;
    this.#known.set(host, { addresses, until: clock.monotonic() + keptMs });
  }
}
