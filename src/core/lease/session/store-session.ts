import {
  checkArguments,
  checked,
  LEFT_MS,
  maybe,
  NAME,
  OBJECT,
  STORE,
  TEXT,
  whole,
} from '../../base/arguments.js';
import type { Clock } from '../../base/clock.js';
import type {
  Interval,
  LeaseStore,
  Listing,
  ListingPage,
  ListOptions,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../../store/lease-store.js';
import { bounded } from '../../store/store-request.js';
import { StoreTime } from './store-time.js';

/** How one call of a session is made. */
export interface SessionCall {
  /** How long to wait for the answer, in milliseconds; the session's default unless given. */
  readonly timeoutMs?: number | undefined;
  /** See `Bounds.wholeMs`. */
  readonly wholeMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How a listing of a session is made. */
export interface SessionListing extends SessionCall, Pick<ListOptions, 'folders'> {}

/** How a write of a session is made. */
export interface SessionWrite extends SessionCall {
  /** The age from which on other tasks may take what is written, in milliseconds: see `WriteOptions`. */
  readonly expiresAfterMs?: number | undefined;
}

/**
 * The timeout of a complete listing, for each object and at most, in milliseconds: several times what S3 or a
 * file store takes.
 */
const LISTING_MS = { perObject: 3, max: 60_000 } as const;

/** The pause of a store that suggests none, in milliseconds. */
const POLL_MS = 1_200;

/** The timeout of a listing for which no lease waits, in milliseconds. */
export const UNHURRIED_LISTING_MS = 30_000;

/**
 * How late a store's time in whole seconds may be, in milliseconds: some servers update their `Date` header
 * every second or two.
 */
const LATE_MS = 2_000;

const KEY = { key: NAME };

/** By name: what the engine adds to a call may be any number. */
const checkCall = (call: SessionCall) => checked(call, {}, 'call', ['timeoutMs', 'signal']);

/**
 * A task's session with a store. Every call has a timeout on the injected clock, every reply narrows the
 * known store time, and every request is counted. A call that is given up rejects at once, with a
 * `StoreError` of unknown outcome, even if the driver is stuck.
 */
export class StoreSession {
  /** Requests made so far. */
  requests = 0;
  /**
   * The time of the quickest request so far, except complete listings, in milliseconds; undefined before the
   * first answer.
   */
  requestMs: number | undefined;

  readonly #time: StoreTime;
  #expectedObjects = 0;
  /** How long the last complete listing took, or its timeout if it ran out of time, in milliseconds. */
  #lastListingMs = 0;

  constructor(
    readonly store: LeaseStore,
    readonly clock: Clock,
    /** Milliseconds. */
    public timeoutMs: number,
  ) {
    checkArguments({ store, clock, timeoutMs }, { store: STORE });
    this.#time = new StoreTime(clock);
  }

  /**
   * The object of that key, or undefined when there is none.
   * @throws {StoreError} when the store gave no definite answer in time
   */
  async read(key: string, call: SessionCall = {}): Promise<StoredObject | undefined> {
    checkArguments({ key }, KEY);
    checkCall(call);
    const sentAt = this.clock.monotonic();
    const object = await this.#bounded(`reading ${key}`, call, (options) => this.store.read(key, options));
    this.#answered(sentAt);
    if (object !== undefined) this.#time.learn(object.storeTime, sentAt);
    return object;
  }

  /** The pause before another read that waits for a change, in milliseconds. */
  get pollMs(): number {
    return this.store.pollMs ?? POLL_MS;
  }

  /** Sets how many objects a listing is expected to show, for its timeout. */
  expectObjects(count: number): void {
    checkArguments({ count }, { count: whole(0) });
    this.#expectedObjects = Math.max(this.#expectedObjects, count);
  }

  /** The timeout of a complete listing unless a call says otherwise, in milliseconds. */
  get listTimeoutMs(): number {
    const longMs = Math.max(2 * this.#lastListingMs, LISTING_MS.perObject * this.#expectedObjects);
    return Math.max(this.timeoutMs, Math.min(LISTING_MS.max, longMs));
  }

  /**
   * Every object of the store. A listing gets twice the time of the one before it, up to a minute: the cluster
   * may be larger than is known.
   *
   * @throws {StoreError} when the store gave no definite answer in {@link listTimeoutMs}
   */
  async list(call: SessionListing = {}): Promise<Listing> {
    checkCall(call);
    const sentAt = this.clock.monotonic();
    const timeoutMs = call.timeoutMs ?? this.listTimeoutMs;
    const tookMs = () => this.clock.monotonic() - sentAt;
    try {
      const listing = await this.#bounded('listing', { ...call, timeoutMs }, (options) =>
        this.store.list({ ...options, folders: call.folders }),
      );
      this.#lastListingMs = tookMs();
      this.#time.learn(listing.storeTime, sentAt);
      return listing;
    } catch (error) {
      if (tookMs() >= timeoutMs) this.#lastListingMs = timeoutMs;
      throw error;
    }
  }

  /**
   * A page of the listing, from the first key greater than `after` on; all of it if the store does not list
   * in pages.
   *
   * @throws {StoreError} when the store gave no definite answer in time
   */
  async listPage(after: string | undefined, call: SessionListing = {}): Promise<ListingPage> {
    checkArguments({ after }, { after: maybe(TEXT) });
    checkCall(call);
    const { store } = this;
    const { listPage } = store;
    if (listPage === undefined) return { ...(await this.list(call)), more: false };
    const sentAt = this.clock.monotonic();
    const page = await this.#bounded('listing', call, (options) =>
      listPage.call(store, after, { ...options, folders: call.folders }),
    );
    this.#answered(sentAt);
    this.#time.learn(page.storeTime, sentAt);
    return page;
  }

  /** Conditional write: with an etag, replace; without one, create. */
  async write(
    key: string,
    object: { body: string; metadata: Readonly<Record<string, string>> },
    etag: string | undefined,
    call: SessionWrite = {},
  ): Promise<WriteResult> {
    checkArguments({ key, object, etag }, { ...KEY, etag: maybe(TEXT) });
    checked(object, { body: TEXT, metadata: OBJECT }, 'object', []);
    checkCall(call);
    const sentAt = this.clock.monotonic();
    const { expiresAfterMs } = call;
    const result = await this.#bounded(`writing ${key}`, call, (options) =>
      etag === undefined
        ? this.store.create(key, object.body, object.metadata, { ...options, expiresAfterMs })
        : this.store.replace(key, object.body, object.metadata, etag, { ...options, expiresAfterMs }),
    );
    this.#answered(sentAt);
    if (result.status === 'written') this.#time.learn(result.storeTime, sentAt);
    return result;
  }

  /**
   * The epoch of the store, or undefined where it reports none.
   * @throws {StoreError} when the store gave no definite answer in time
   */
  async epoch(call: SessionCall = {}): Promise<string | undefined> {
    checkCall(call);
    const { store } = this;
    return store.epoch && this.#bounded('reading its epoch', call, async (options) => store.epoch?.(options));
  }

  /**
   * The store's time now, in milliseconds since the Unix epoch, as its replies bound it. This host's wall
   * clock is not used.
   */
  storeNow(): Interval {
    return this.#time.now();
  }

  /**
   * The latest possible time of a store whose reply had this time, in milliseconds since the Unix epoch;
   * infinity if it had none.
   */
  latest(interval: Interval): number {
    checkArguments({ interval });
    const { max } = interval;
    return Math.ceil(max) + (this.store.timeStepMs >= 1_000 ? LATE_MS : 0);
  }

  /**
   * How long until a reply can show that an age has grown by `ageMs` since the reply with that age, in
   * milliseconds.
   */
  untilTold(ageMs: number, object: Pick<StoredObject, 'age' | 'storeTime'>): number {
    checkArguments({ ageMs, object }, { ageMs: LEFT_MS });
    const { age, storeTime } = object;
    const { timeStepMs } = this.store;
    const now = this.storeNow();
    if (timeStepMs === 0 || ![age, storeTime, now].every(({ max }) => Number.isFinite(max))) return ageMs;
    const due = Math.ceil((storeTime.min + ageMs) / timeStepMs) * timeStepMs;
    // The store's time is known within bounds. By the lower bound the step is certain. A clock that was set
    // must not make the wait endless.
    return Math.min(Math.max(0, due - now.min), ageMs + 2 * timeStepMs);
  }

  #answered(sentAt: number): void {
    const tookMs = this.clock.monotonic() - sentAt;
    this.requestMs = Math.min(this.requestMs ?? tookMs, tookMs);
  }

  #bounded<T>(
    what: string,
    { timeoutMs = this.timeoutMs, wholeMs, signal }: SessionCall,
    run: (options: StoreCallOptions) => Promise<T>,
  ): Promise<T> {
    if (!signal?.aborted) this.requests += 1;
    const bounds = {
      clock: this.clock,
      timeoutMs: Math.max(0, timeoutMs),
      wholeMs,
      noAnswer: this.store.noAnswer?.bind(this.store),
      signal,
      what: `${this.store.url}: ${what}`,
    };
    return bounded(bounds, run);
  }
}
