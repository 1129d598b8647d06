import { anySignal } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import type { ServiceCall } from '../../services/service-directory.js';
import type { ServiceInstance } from '../../services/service-instance.js';
import { ZooKeeperError } from '../../zookeeper/zookeeper-error.js';

/** One service, followed: what a `ServiceProvider` offers. */
export interface PooledProvider {
  readonly instances: readonly ServiceInstance[];
  readonly ready: Promise<void>;
  readonly stale: { readonly since: number } | undefined;
  /** One of the instances, or undefined where there is none. */
  pick(): ServiceInstance | undefined;
  /** Follows the service no longer. */
  close(): void;
}

/** An answer to "any instance of this service". */
export type AnyInstance =
  | { readonly status: 'picked'; readonly instance: ServiceInstance; readonly staleMs: number | undefined }
  /** There is none that may be sent work. */
  | { readonly status: 'none'; readonly staleMs: number | undefined }
  /** The service could not be read in time. */
  | { readonly status: 'unknown' };

/** How a {@link ProviderPool} follows services, and how many. */
export interface ProviderPoolOptions {
  /** Begins to follow a service. */
  readonly open: (name: string) => PooledProvider;
  /**
   * Whether there is such a service at all, for a name that is not followed yet: only those that exist are followed, since to follow one costs
   * ZooKeeper a watch that stays with the session. @default every name is taken for a service
   */
  readonly exists?: ((name: string, call: ServiceCall) => Promise<boolean>) | undefined;
  readonly clock: Clock;
  /** Maximum number of services that are followed. @default 200 */
  readonly most?: number | undefined;
  /** For how long a service is followed without requests for it, in milliseconds. @default 600000 */
  readonly idleMs?: number | undefined;
  /** How long the first question about a service may take, in milliseconds. @default 2000 */
  readonly readyWithinMs?: number | undefined;
}

interface Entry {
  readonly provider: PooledProvider;
  /** Aborts once the service has been read: the requests meanwhile wait for that. */
  readonly read: AbortController;
  usedAt: number;
}

/**
 * The services that clients ask for. Each is followed from the first request on: the next ones need no request to ZooKeeper and are answered while
 * it is away, too. Services without requests, and those beyond the maximum, are dropped.
 */
export class ProviderPool {
  readonly #entries = new Map<string, Entry>();
  readonly #closed = new AbortController();
  readonly #options: Required<{ [Name in keyof ProviderPoolOptions]: NonNullable<ProviderPoolOptions[Name]> }>;
  #sweeping = false;

  constructor({ open, exists = async () => true, clock, most = 200, idleMs = 600_000, readyWithinMs = 2_000 }: ProviderPoolOptions) {
    this.#options = { open, exists, clock, most, idleMs, readyWithinMs };
  }

  /** How many services are followed. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Any instance of a service. Waits only when the service is not followed, or has not been read yet.
   *
   * @throws {ConfigError} when the name cannot be a service's
   * @throws `signal.reason` when it aborts
   */
  async any(name: string, signal?: AbortSignal): Promise<AnyInstance> {
    const { clock, readyWithinMs } = this.#options;
    const deadline = clock.monotonic() + readyWithinMs;
    const found = this.#entries.has(name) ? 'found' : await this.#look(name, { timeoutMs: readyWithinMs, signal });
    if (found === 'none') return { status: 'none', staleMs: undefined };
    if (found === 'unknown' || this.#closed.signal.aborted) return { status: 'unknown' };
    const entry = this.#entryOf(name);
    if (!(await this.#readInTime(entry, deadline - clock.monotonic(), signal))) return { status: 'unknown' };
    const { stale } = entry.provider;
    const staleMs = stale && Math.max(0, clock.monotonic() - stale.since);
    const instance = entry.provider.pick();
    return instance === undefined ? { status: 'none', staleMs } : { status: 'picked', instance, staleMs };
  }

  /** Follows no service any more. Idempotent. */
  close(): void {
    this.#closed.abort();
    for (const name of [...this.#entries.keys()]) this.#drop(name);
  }

  #entryOf(name: string): Entry {
    const usedAt = this.#options.clock.monotonic();
    const known = this.#entries.get(name);
    const entry = known ?? this.#open(name, usedAt);
    // A Map keeps the order of insertion: the first entry is the one that was asked for the longest time ago.
    if (known) this.#entries.delete(name);
    entry.usedAt = usedAt;
    this.#entries.set(name, entry);
    if (!known && this.#entries.size > this.#options.most) this.#evict(name);
    if (!this.#sweeping) void this.#sweep();
    return entry;
  }

  #open(name: string, usedAt: number): Entry {
    const entry = { provider: this.#options.open(name), read: new AbortController(), usedAt };
    void entry.provider.ready.then(() => entry.read.abort());
    return entry;
  }

  /** Whether there is such a service, asking ZooKeeper without leaving a watch there. */
  async #look(name: string, call: ServiceCall): Promise<'found' | 'none' | 'unknown'> {
    if (this.#closed.signal.aborted) return 'unknown';
    try {
      return (await this.#options.exists(name, call)) ? 'found' : 'none';
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof ZooKeeperError) return 'unknown';
      throw error;
    }
  }

  /** Services without instances go first: requests for names that do not exist must not push out those that do. */
  #evict(except: string): void {
    const others = [...this.#entries].filter(([name]) => name !== except);
    const [name] = others.find(([, { provider }]) => provider.instances.length === 0) ?? others[0] ?? [];
    if (name !== undefined) this.#drop(name);
  }

  #drop(name: string): void {
    this.#entries.get(name)?.provider.close();
    this.#entries.delete(name);
  }

  async #readInTime({ read }: Entry, withinMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (read.signal.aborted) return true;
    signal?.throwIfAborted();
    const over = anySignal(read.signal, this.#closed.signal, signal);
    await this.#options.clock.sleep(withinMs, over.signal).catch(() => {});
    over.release();
    if (read.signal.aborted) return true;
    signal?.throwIfAborted();
    return false;
  }

  async #sweep(): Promise<void> {
    const { clock, idleMs } = this.#options;
    this.#sweeping = true;
    try {
      while (this.#entries.size > 0) {
        const [oldest] = this.#entries.values();
        await clock.sleep((oldest?.usedAt ?? 0) + idleMs - clock.monotonic(), this.#closed.signal);
        for (const [name, { usedAt }] of this.#entries) if (clock.monotonic() - usedAt >= idleMs) this.#drop(name);
      }
    } catch {
      // Closed: nothing is followed any more.
    } finally {
      this.#sweeping = false;
    }
  }
}
