import type { Clock } from '../clock.js';
import type { ServiceInstance } from '../discovery/services/service-instance.js';

/** One service, followed: what a `ServiceProvider` offers. */
export interface PooledProvider {
  readonly instances: readonly ServiceInstance[];
  readonly ready: Promise<void>;
  readonly stale: { readonly since: number } | undefined;
  pick(): ServiceInstance | undefined;
  close(): void;
}

/** An answer to "any instance of this service". */
export type AnyInstance =
  | { readonly status: 'picked'; readonly instance: ServiceInstance; readonly staleMs: number | undefined }
  /** There is none that may be sent work. */
  | { readonly status: 'none'; readonly staleMs: number | undefined }
  /** The service could not be read in time. */
  | { readonly status: 'unknown' };

export interface ProviderPoolOptions {
  /** Begins to follow a service. */
  readonly open: (name: string) => PooledProvider;
  readonly clock: Clock;
  /** How many services are followed at the most. @default 200 */
  readonly most?: number | undefined;
  /** For how long a service is followed that nobody asks for, in milliseconds. @default 600000 */
  readonly idleMs?: number | undefined;
  /** How long the first reading of a service may take, in milliseconds. @default 2000 */
  readonly readyWithinMs?: number | undefined;
}

interface Entry {
  readonly provider: PooledProvider;
  ready: boolean;
  usedAt: number;
}

/**
 * The services that somebody asks for, each followed from the first question on, so that the next ones need no request and are answered
 * while ZooKeeper is away, too. Those that nobody asks for any more, and those that are too many, are let go.
 */
export class ProviderPool {
  readonly #entries = new Map<string, Entry>();
  readonly #closed = new AbortController();
  readonly #options: Required<{ [Name in keyof ProviderPoolOptions]: NonNullable<ProviderPoolOptions[Name]> }>;
  #sweeping = false;

  constructor({ open, clock, most = 200, idleMs = 600_000, readyWithinMs = 2_000 }: ProviderPoolOptions) {
    this.#options = { open, clock, most, idleMs, readyWithinMs };
  }

  /** How many services are followed. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Any instance of a service. Waits only when the service has not been read yet.
   *
   * @throws {ConfigError} when the name cannot be a service's
   * @throws `signal.reason` when it aborts
   */
  async any(name: string, signal?: AbortSignal): Promise<AnyInstance> {
    if (this.#closed.signal.aborted) return { status: 'unknown' };
    const entry = this.#entryOf(name);
    if (!entry.ready && !(await this.#readyInTime(entry.provider, signal))) return { status: 'unknown' };
    entry.ready = true;
    const { stale } = entry.provider;
    const staleMs = stale && Math.max(0, this.#options.clock.monotonic() - stale.since);
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
    // A Map keeps the order of insertion: the first entry is the one that was asked for the longest time ago.
    if (known) this.#entries.delete(name);
    const entry = known ?? { provider: this.#options.open(name), ready: false, usedAt };
    entry.usedAt = usedAt;
    this.#entries.set(name, entry);
    if (!known && this.#entries.size > this.#options.most) this.#evict(name);
    if (!this.#sweeping) void this.#sweep();
    return entry;
  }

  /** Services without instances go first: whoever asks for names that do not exist must not push out those that do. */
  #evict(except: string): void {
    const others = [...this.#entries].filter(([name]) => name !== except);
    const [name] = others.find(([, { provider }]) => provider.instances.length === 0) ?? others[0] ?? [];
    if (name !== undefined) this.#drop(name);
  }

  #drop(name: string): void {
    this.#entries.get(name)?.provider.close();
    this.#entries.delete(name);
  }

  async #readyInTime({ ready }: PooledProvider, signal: AbortSignal | undefined): Promise<boolean> {
    const { clock, readyWithinMs } = this.#options;
    const over = new AbortController();
    const signals = signal ? [over.signal, signal, this.#closed.signal] : [over.signal, this.#closed.signal];
    const tooLate = clock.sleep(readyWithinMs, AbortSignal.any(signals)).then(
      () => false,
      () => false,
    );
    try {
      const inTime = await Promise.race([ready.then(() => true), tooLate]);
      if (!inTime) signal?.throwIfAborted();
      return inTime;
    } finally {
      over.abort();
    }
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
