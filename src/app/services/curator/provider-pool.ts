import { anySignal } from '../../../core/base/abort.js';
import { checkArguments, checked, FUNCTION, maybe, whole } from '../../../core/base/arguments.js';
import type { Clock } from '../../../core/base/clock.js';
import { ZooKeeperError } from '../../../zookeeper/client/zookeeper.js';
import type { ServiceInstance } from '../../../zookeeper/services/instance/service-instance.js';
import type { ServiceCall } from '../../../zookeeper/services/service-directory.js';
import type { ServiceProvider } from '../../../zookeeper/services/service-provider.js';

/** One service, followed. */
export type PooledProvider = Pick<ServiceProvider, 'instances' | 'ready' | 'stale' | 'pick' | 'close'>;

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
   * Whether there is such a service: only then is it followed, which costs ZooKeeper a watch that stays with
   * the session.
   * @default it is
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

/** A service that is followed. */
interface Entry {
  readonly provider: PooledProvider;
  /** Aborts once the service has been read: the requests meanwhile wait for that. */
  readonly read: AbortController;
  /** Aborts when it is followed no longer. */
  readonly dropped: AbortController;
  usedAt: number;
}

/**
 * The services that clients ask for. Each is followed from the first request on: the next ones need no
 * request to ZooKeeper and are answered while it is away, too. Services without requests, and those beyond
 * the maximum, are dropped.
 */
export class ProviderPool {
  readonly #entries = new Map<string, Entry>();
  #isClosed = false;

  constructor(private readonly options: ProviderPoolOptions) {
    const { clock } = checked(options, { open: FUNCTION, exists: maybe(FUNCTION), most: maybe(whole(1)) });
    checkArguments({ clock });
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
    checkArguments({ name });
    checked({ signal });
    const { clock, readyWithinMs: timeoutMs = 2_000 } = this.options;
    const deadline = clock.monotonic() + timeoutMs;
    const exists = await this.#exists(name, { timeoutMs, signal });
    if (exists === false) return { status: 'none', staleMs: undefined };
    if (exists === undefined || this.#isClosed) return { status: 'unknown' };
    const entry = this.#use(name);
    if (!entry.read.signal.aborted) await this.#reading(entry, deadline, signal);
    if (!entry.read.signal.aborted) return { status: 'unknown' };
    const { stale } = entry.provider;
    const staleMs = stale && Math.max(0, clock.monotonic() - stale.since);
    const instance = entry.provider.pick();
    return instance === undefined ? { status: 'none', staleMs } : { status: 'picked', instance, staleMs };
  }

  /** Follows no service any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    for (const name of this.#entries.keys()) this.#drop(name);
  }

  /**
   * Whether there is such a service, asking ZooKeeper without leaving a watch there; undefined where it does
   * not answer.
   */
  async #exists(name: string, call: ServiceCall): Promise<boolean | undefined> {
    if (this.#entries.has(name)) return true;
    if (this.#isClosed) return undefined;
    try {
      return (await this.options.exists?.(name, call)) ?? true;
    } catch (error) {
      call.signal?.throwIfAborted();
      // One that may not be read is there.
      if (error instanceof ZooKeeperError) return error.fault === 'no-auth' ? true : undefined;
      throw error;
    }
  }

  #use(name: string): Entry {
    const { clock, most = 200 } = this.options;
    const entry = this.#entries.get(name) ?? this.#open(name);
    entry.usedAt = clock.monotonic();
    // A Map keeps the order of insertion: the first entry is the one that was asked for the longest time ago.
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    if (this.#entries.size > most) this.#evict(name);
    return entry;
  }

  #open(name: string): Entry {
    const entry = {
      provider: this.options.open(name),
      read: new AbortController(),
      dropped: new AbortController(),
      usedAt: 0,
    };
    void entry.provider.ready.then(() => entry.read.abort());
    void this.#dropWhenIdle(name, entry);
    return entry;
  }

  /**
   * Services without instances go first: requests for names that do not exist must not push out existing
   * ones.
   */
  #evict(except: string): void {
    const others = [...this.#entries].filter(([name]) => name !== except);
    const [name] = others.find(([, { provider }]) => provider.instances.length === 0) ?? others[0] ?? [];
    if (name !== undefined) this.#drop(name);
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    entry?.provider.close();
    entry?.dropped.abort();
  }

  /** Ends when the service has been read, at the deadline, or when the service is dropped. */
  async #reading({ read, dropped }: Entry, deadline: number, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.options;
    const over = anySignal(read.signal, dropped.signal, signal);
    await clock.sleep(deadline - clock.monotonic(), over.signal).catch(() => {});
    over.release();
    if (!read.signal.aborted) signal?.throwIfAborted();
  }

  async #dropWhenIdle(name: string, entry: Entry): Promise<void> {
    const { clock, idleMs = 600_000 } = this.options;
    for (let left = idleMs; left > 0; left = entry.usedAt + idleMs - clock.monotonic()) {
      await clock.sleep(left, entry.dropped.signal).catch(() => {});
      if (entry.dropped.signal.aborted) return;
    }
    this.#drop(name);
  }
}
