import type { Clock } from '../../base/clock.js';
import { bounded } from '../../store/bounded.js';
import type { CallOptions, Interval, LeaseStore, Listing, ListingPage, StoredObject, WriteResult } from '../../store/lease-store.js';
import { StoreTime } from './store-time.js';

/** How one call of a session is made. */
export interface SessionCall {
  /** How long to wait for the answer, in milliseconds; the session's default unless given. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What a listing of everything is given for each object that it is to show, and at most, in milliseconds: on S3 it is a request for each
 * thousand of them, one after the other, and a file store has to look at each. Several times what either takes.
 */
const LISTING_MS = { perObject: 3, max: 60_000 } as const;

/** What a listing is given, in milliseconds, by a caller that only reads: no lease waits for it. */
export const UNHURRIED_LISTING_MS = 30_000;

/** How late the time may be that a store tells in whole seconds, in milliseconds: some servers make their `Date` header every second or two. */
const LATE_MS = 2_000;

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
  #requestMs: number | undefined;
  #expectedObjects = 0;
  /** The shortest time-out of the next complete listing, in milliseconds: longer than that of one that ran out of time. */
  #listingMs = 0;

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
    this.#answered(sentAt);
    if (object !== undefined) this.#time.learn(object.storeTime, sentAt);
    return object;
  }

  /**
   * How long a request takes where nothing is in its way: as long as the quickest one so far, in milliseconds; undefined before the first
   * answer. A listing of everything is not among them.
   */
  get requestMs(): number | undefined {
    return this.#requestMs;
  }

  /** Notes about how many objects a listing has to show, so that it is given the time for them. */
  expectObjects(count: number): void {
    this.#expectedObjects = Math.max(this.#expectedObjects, count);
  }

  /** How long a listing of everything may take unless a call says otherwise, however little a request may, in milliseconds. */
  get listTimeoutMs(): number {
    return Math.max(this.timeoutMs, this.#listingMs, Math.min(LISTING_MS.max, LISTING_MS.perObject * this.#expectedObjects));
  }

  /**
   * Every object of the store. One that ran out of time makes the next one's time twice as long, up to a minute: the reply may have been lost,
   * and the cluster may be larger than is known.
   *
   * @throws {StoreError} when the store gave no definite answer in {@link listTimeoutMs}
   */
  async list(call: SessionCall = {}): Promise<Listing> {
    const sentAt = this.clock.monotonic();
    const timeoutMs = call.timeoutMs ?? this.listTimeoutMs;
    try {
      const listing = await this.#bounded('listing', { ...call, timeoutMs }, (options) => this.store.list(options));
      this.#time.learn(listing.storeTime, sentAt);
      return listing;
    } catch (error) {
      if (this.clock.monotonic() - sentAt >= timeoutMs) this.#listingMs = Math.min(LISTING_MS.max, 2 * timeoutMs);
      throw error;
    }
  }

  /**
   * A part of the listing, from the first key greater than `after` on; all of it where the store does not list in parts.
   *
   * @throws {StoreError} when the store gave no definite answer in time
   */
  async listPage(after: string | undefined, call: SessionCall = {}): Promise<ListingPage> {
    const { store } = this;
    const { listPage } = store;
    if (listPage === undefined) return { ...(await this.list(call)), more: false };
    const sentAt = this.clock.monotonic();
    const page = await this.#bounded('listing', call, (options) => listPage.call(store, after, options));
    this.#answered(sentAt);
    this.#time.learn(page.storeTime, sentAt);
    return page;
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
    this.#answered(sentAt);
    if (result.status === 'written') this.#time.learn(result.storeTime, sentAt);
    return result;
  }

  /** The store's time now, in milliseconds since the Unix epoch, as far as its replies tell; this host's wall clock takes no part. */
  storeNow(): Interval {
    return this.#time.now();
  }

  /**
   * The latest that it can have been when the store told its time, in milliseconds since the Unix epoch: what must not have been stamped after that.
   * Infinity where it told none.
   */
  latest({ max }: Interval): number {
    return Math.ceil(max) + (this.store.timeStepMs >= 1_000 ? LATE_MS : 0);
  }

  /**
   * How long until a reply can show that an age has grown by `ageMs` since the one of `storeTime`, in milliseconds: a store that cuts its times
   * shows it at its next step.
   */
  untilTold(ageMs: number, storeTime: Interval): number {
    const { timeStepMs } = this.store;
    const told = this.storeNow();
    if (timeStepMs === 0 || !Number.isFinite(storeTime.max) || !Number.isFinite(told.max)) return ageMs;
    const due = Math.ceil((storeTime.min + ageMs) / timeStepMs) * timeStepMs;
    // The store's time is known within bounds: by its lower one the step is certain. A clock that was set must not make this endless.
    return Math.min(Math.max(0, due - told.min), ageMs + 2 * timeStepMs);
  }

  #answered(sentAt: number): void {
    const tookMs = this.clock.monotonic() - sentAt;
    this.#requestMs = Math.min(this.#requestMs ?? tookMs, tookMs);
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
