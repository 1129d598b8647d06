import type { Clock } from '../clock.js';
import { bounded } from '../store/bounded.js';
import type { CallOptions, Interval, LeaseStore, Listing, StoredObject, WriteResult } from '../store/lease-store.js';
import { StoreTime } from './store-time.js';

/** How one call of a session is made. */
export interface SessionCall {
  /** How long to wait for the answer, in milliseconds; the session's default unless given. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * A store as one task uses it: every call has a time-out on the injected clock, every reply teaches the store's time, and
 * every request is counted.
 *
 * A call that is given up, for lack of time or by its signal, rejects with a `StoreError` of unknown outcome at once, even
 * where the driver underneath is stuck.
 */
export class StoreSession {
  /** Requests made so far. */
  requests = 0;

  readonly #time: StoreTime;

  constructor(
    readonly store: LeaseStore,
    private readonly clock: Clock,
    /** Milliseconds. */
    public timeoutMs: number,
  ) {
    this.#time = new StoreTime(clock);
  }

  /** The object of that key, or undefined when there is none. @throws {StoreError} when the store gave no definite answer in time */
  async read(key: string, call: SessionCall = {}): Promise<StoredObject | undefined> {
    const sentAt = this.clock.monotonic();
    const object = await this.#bounded(`reading ${key}`, call, (options) => this.store.read(key, options));
    if (object !== undefined) this.#time.learn(object.storeTime, sentAt);
    return object;
  }

  /** Every object of the store. @throws {StoreError} when the store gave no definite answer in time */
  async list(call: SessionCall = {}): Promise<Listing> {
    const sentAt = this.clock.monotonic();
    const listing = await this.#bounded('listing', call, (options) => this.store.list(options));
    this.#time.learn(listing.storeTime, sentAt);
    return listing;
  }

  /** Conditional write: with an etag, replace; without one, create. */
  async write(
    key: string,
    object: { body: string; metadata: Readonly<Record<string, string>> },
    etag: string | undefined,
    call: SessionCall = {},
  ): Promise<WriteResult> {
    const sentAt = this.clock.monotonic();
    const result = await this.#bounded(`writing ${key}`, call, (options) =>
      etag === undefined
        ? this.store.create(key, object.body, object.metadata, options)
        : this.store.replace(key, object.body, object.metadata, etag, options),
    );
    if (result.status === 'written') this.#time.learn(result.storeTime, sentAt);
    return result;
  }

  /** The store's time now, in milliseconds since the Unix epoch, as far as its replies tell; this host's wall clock takes no part. */
  storeNow(): Interval {
    return this.#time.now();
  }

  #bounded<T>(what: string, { timeoutMs = this.timeoutMs, signal }: SessionCall, run: (options: CallOptions) => Promise<T>): Promise<T> {
    if (!signal?.aborted) this.requests += 1;
    return bounded(
      {
        clock: this.clock,
        timeoutMs: Math.max(0, timeoutMs),
        signal,
        what: `${this.store.url}: ${what}`,
      },
      run,
    );
  }
}
