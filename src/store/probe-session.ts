import type { Clock } from '../clock.js';
import { bounded } from './bounded.js';
import {
  type CallOptions,
  type Interval,
  type LeaseStore,
  type Listing,
  type StoredObject,
  StoreError,
  type WriteResult,
} from './lease-store.js';

/** What a conditional write of a probe came to. */
export type ProbedWrite =
  | { readonly status: 'written'; readonly etag: string }
  | { readonly status: 'conflict' }
  /** The store asked for patience or failed: whether the write was applied is for a read to say. */
  | { readonly status: 'unsure'; readonly error: StoreError }
  /** The store does not take such a request at all. */
  | { readonly status: 'rejected'; readonly error: StoreError };

/** How long one request may take, in milliseconds. A probe has to end, also where the driver underneath is stuck. */
const REQUEST_TIMEOUT_MS = 5_000;
/** The same for a listing, which in a large cluster is many requests. */
const LIST_TIMEOUT_MS = 30_000;
const READ_ATTEMPTS = 3;
const READ_PAUSE_MS = 200;

/** The requests of one probe: on scratch keys only, with their latency, and what they say of the store's clock. */
export class ProbeSession {
  /** Milliseconds that each request took which ran alone. */
  readonly latenciesMs: number[] = [];
  requests = 0;
  /** The store's clock minus `clock.now()`, in milliseconds: what all replies together leave possible. */
  clockOffsetMs: Interval = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY };
  readonly #keys = new Set<string>();

  constructor(
    readonly store: LeaseStore,
    readonly clock: Clock,
    readonly signal: AbortSignal | undefined,
  ) {}

  /** @throws {@link StoreError} when the store cannot be reached, is missing or denies access */
  create(key: string, body: string): Promise<ProbedWrite> {
    this.#keys.add(key);
    return this.#write((options) => this.store.create(key, body, { probe: 'true' }, options));
  }

  /** @throws {@link StoreError} as {@link create} does */
  replace(key: string, body: string, etag: string): Promise<ProbedWrite> {
    this.#keys.add(key);
    return this.#write((options) => this.store.replace(key, body, { probe: 'true' }, etag, options));
  }

  /** Reads, with patience for a store that is busy. @throws {@link StoreError} when it gave no answer */
  read(key: string): Promise<StoredObject | undefined> {
    return this.#patiently(() => this.#timed((options) => this.store.read(key, options)));
  }

  /** @throws {@link StoreError} when the store gave no answer */
  list(): Promise<Listing> {
    return this.#patiently(() => this.#timed((options) => this.store.list(options), LIST_TIMEOUT_MS));
  }

  /** Removes every key that was written to. Resolves with those that are left, and why; never rejects. */
  async cleanUp(): Promise<{ readonly key: string; readonly error: unknown }[]> {
    const keys = [...this.#keys];
    // Not given up with the probe: whoever aborts it does not want the litter either.
    const bounds = { clock: this.clock, timeoutMs: REQUEST_TIMEOUT_MS, what: `${this.store.url}: tidying up` };
    const results = await Promise.allSettled(keys.map((key) => bounded(bounds, (options) => this.store.discardProbe(key, options))));
    return results.flatMap((result, index) => (result.status === 'rejected' ? [{ key: keys[index] ?? '', error: result.reason }] : []));
  }

  async #write(run: (options: CallOptions) => Promise<WriteResult>): Promise<ProbedWrite> {
    try {
      return await this.#timed(run);
    } catch (error) {
      if (error instanceof StoreError && error.fault === 'unavailable') return { status: 'unsure', error };
      if (error instanceof StoreError && error.fault === 'rejected') return { status: 'rejected', error };
      throw error;
    }
  }

  async #patiently<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof StoreError) || error.fault !== 'unavailable' || attempt === READ_ATTEMPTS) throw error;
        await this.clock.sleep(READ_PAUSE_MS, this.signal);
      }
    }
  }

  #inFlight = 0;

  async #timed<T>(run: (options: CallOptions) => Promise<T>, timeoutMs = REQUEST_TIMEOUT_MS): Promise<T> {
    this.requests++;
    this.#inFlight++;
    const alone = this.#inFlight === 1;
    const startedAt = this.clock.monotonic();
    const nowBefore = this.clock.now();
    try {
      const bounds = { clock: this.clock, timeoutMs, signal: this.signal, what: `${this.store.url}: probing` };
      const result = await bounded(bounds, run);
      if (alone && this.#inFlight === 1) this.latenciesMs.push(this.clock.monotonic() - startedAt);
      this.#learnTime(result, nowBefore);
      return result;
    } finally {
      this.#inFlight--;
    }
  }

  #learnTime(reply: unknown, nowBefore: number): void {
    if (typeof reply !== 'object' || reply === null || !('storeTime' in reply)) return;
    const told = reply.storeTime as Interval;
    const heard = { min: told.min - this.clock.now(), max: told.max - nowBefore };
    const both = { min: Math.max(heard.min, this.clockOffsetMs.min), max: Math.min(heard.max, this.clockOffsetMs.max) };
    // Replies that exclude each other: one of the clocks was set meanwhile, and the later word counts.
    this.clockOffsetMs = both.min <= both.max ? both : heard;
  }
}
