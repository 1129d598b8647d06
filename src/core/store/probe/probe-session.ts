import { withTimeout } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { concurrently } from '../../base/concurrently.js';
import { fieldOf } from '../../base/fields.js';
import { type Retry, retrying } from '../../base/retry.js';
import {
  type Interval,
  type LeaseStore,
  type Listing,
  type StoreCallOptions,
  type StoredObject,
  StoreError,
  type WriteResult,
} from '../lease-store.js';
import { bounded } from '../store-request.js';

/** The store refused a conditional write for its condition, or does not take such a request at all. */
type Refusal = { readonly status: 'conflict' } | { readonly status: 'rejected'; readonly error: StoreError };

/** The store failed or gave no answer: whether the write was applied is for a read to say. */
type Unsure = { readonly status: 'unsure'; readonly error: StoreError };

/** What a conditional write of a probe came to. */
export type ProbedWrite = { readonly status: 'written'; readonly etag: string } | Refusal | Unsure;

/**
 * How long one request may take, in milliseconds. A probe has to end, also where the driver underneath is
 * stuck.
 */
const REQUEST_TIMEOUT_MS = 5_000;
/** The same for a listing, which in a large cluster is many requests. */
const LIST_TIMEOUT_MS = 30_000;
/**
 * How long a store may be away before a probe gives up, in milliseconds.
 */
const STORE_AWAY_MS = 10_000;
/**
 * How long a write that was given up is waited for before its object is removed, in milliseconds: a file is
 * written to its end.
 */
const SETTLE_MS = 1_000;
/** How often a write that nothing speaks against may be refused before that is what the store does. */
const ATTEMPTS = 8;
/** How many scratch objects are removed at once. */
const REMOVALS = 8;

/** An object that a probe wrote, and when. */
export interface WrittenObject {
  readonly status: 'written';
  readonly key: string;
  readonly body: string;
  readonly etag: string;
  /** Just before the write was sent and just after its reply, in milliseconds on the monotonic clock. */
  readonly wroteBetween: readonly [number, number];
}

/** What a probe is made with. */
export interface ProbeSessionOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal?: AbortSignal | undefined;
  /**
   * Until when a store that is away is asked again, in milliseconds on the monotonic clock; ten seconds for
   * each request in any case.
   */
  readonly until?: number | undefined;
  /** Called with each failure that is followed by another attempt. */
  readonly onFailure?: ((error: StoreError, pauseMs: number) => void) | undefined;
}

/**
 * The requests of one probe: on scratch keys only, with their latency, and what they say of the store's
 * clock.
 */
export class ProbeSession {
  /** Milliseconds that each request took which ran alone. */
  readonly latenciesMs: number[] = [];
  requests = 0;
  /** The store's clock minus `clock.now()`, in milliseconds: what all replies together leave possible. */
  clockOffsetMs: Interval = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY };
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  /** How the store calls its two conditions. */
  readonly terms: { readonly absent: string; readonly match: string };
  readonly #keys = new Set<string>();
  /** Writes that the store has not ended, given up or not. */
  readonly #underWay = new Set<Promise<unknown>>();
  #inFlight = 0;
  #answered = false;
  readonly #retry: Retry;

  constructor(
    readonly store: LeaseStore,
    private readonly options: ProbeSessionOptions,
  ) {
    this.clock = options.clock;
    this.signal = options.signal;
    const { onFailure } = options;
    this.#retry = retrying({
      timeoutMs: STORE_AWAY_MS,
      ...options,
      // A store that has never answered is not waited for: its address may be wrong.
      mayPass: (error) =>
        error instanceof StoreError && error.transient && (this.#answered || error.fault === 'unavailable'),
      onFailure: (error, _attempt, pauseMs) => onFailure?.(error as StoreError, pauseMs),
    });
    const isS3 = store.url.startsWith('s3:');
    this.terms = {
      absent: isS3 ? 'If-None-Match' : 'create-if-absent',
      match: isS3 ? 'If-Match' : 'replace-if-unchanged',
    };
  }

  /** A key that was never used. */
  newKey(): string {
    return `probe-${this.options.random.hex(8)}.json`;
  }

  /**
   * Creates an object to try something on, after a refusal under another key. Resolves to the object, or to
   * the last refusal. @throws {@link StoreError} when the store gave no answer
   */
  establish(body: string): Promise<WrittenObject | Refusal> {
    return this.#untilTaken(async () => {
      const key = this.newKey();
      const before = this.clock.monotonic();
      let write = await this.create(key, body);
      if (write.status === 'unsure') {
        const object = await this.read(key);
        const isApplied = object?.body === body;
        write = isApplied ? { status: 'written', etag: object.etag } : await this.create(key, body);
      }
      return write.status === 'written'
        ? { ...write, key, body, wroteBetween: [before, this.clock.monotonic()] }
        : write;
    });
  }

  /**
   * Replaces an object that no other task knows, and finds out what came of that. What was refused is tried
   * again: a store may refuse for a moment. Resolves to what was written, or to the last refusal. @throws
   * {@link StoreError} when the store gave no answer
   */
  replaceSurely(key: string, body: string, etag: string): Promise<Exclude<ProbedWrite, Unsure>> {
    return this.#untilTaken(async () => {
      const write = await this.replace(key, body, etag);
      // An attempt before, of which nothing was heard, may have been applied.
      const object = write.status === 'conflict' ? await this.read(key) : undefined;
      return object?.body === body ? { status: 'written', etag: object.etag } : write;
    });
  }

  /** @throws {@link StoreError} when the store cannot be reached, is missing or denies access */
  create(key: string, body: string): Promise<ProbedWrite> {
    return this.#write(key, (options) => this.store.create(key, body, { probe: 'true' }, options));
  }

  /** @throws {@link StoreError} as {@link create} does */
  replace(key: string, body: string, etag: string): Promise<ProbedWrite> {
    return this.#write(key, (options) => this.store.replace(key, body, { probe: 'true' }, etag, options));
  }

  /** Reads, again while the store is busy. @throws {@link StoreError} when it gave no answer */
  read(key: string): Promise<StoredObject | undefined> {
    return this.#retry(() => this.#timed((options) => this.store.read(key, options)));
  }

  /** @throws {@link StoreError} when the store gave no answer */
  list(): Promise<Listing> {
    return this.#retry(() => this.#timed((options) => this.store.list(options), LIST_TIMEOUT_MS));
  }

  /**
   * Removes every key that may have been written to. Resolves with the keys that are left, and why; never
   * rejects.
   */
  async cleanUp(): Promise<{ readonly key: string; readonly error: unknown }[]> {
    // Not given up with the probe: its scratch objects go as well when it is aborted.
    const bounds = {
      clock: this.clock,
      timeoutMs: REQUEST_TIMEOUT_MS,
      what: `${this.store.url}: tidying up`,
    };
    const left: { key: string; error: unknown }[] = [];
    let failedInARow = 0;
    if (this.#underWay.size > 0) await withTimeout(this.clock, SETTLE_MS, Promise.allSettled(this.#underWay));
    await concurrently([...this.#keys], REMOVALS, async (key) => {
      // A store that fails to remove eight in a row would not remove the others either.
      if (failedInARow >= REMOVALS) return void left.push({ key, error: left.at(-1)?.error });
      try {
        await bounded(bounds, (options) => this.store.discardProbe(key, options));
        failedInARow = 0;
      } catch (error) {
        failedInARow += 1;
        left.push({ key, error });
      }
    });
    return left;
  }

  async #write(key: string, run: (options: StoreCallOptions) => Promise<WriteResult>): Promise<ProbedWrite> {
    try {
      const result = await this.#timed((options) => {
        const write = run(options);
        this.#underWay.add(write);
        const ended = () => this.#underWay.delete(write);
        write.then(ended, ended);
        return write;
      });
      this.#keys.add(key);
      return result;
    } catch (error) {
      if (!(error instanceof StoreError && error.outcome === 'not-applied')) this.#keys.add(key);
      if (!(error instanceof StoreError) || this.signal?.aborted) throw error;
      if (error.transient) return { status: 'unsure', error };
      if (error.fault === 'rejected' || error.fault === 'unsupported') return { status: 'rejected', error };
      throw error;
    }
  }

  /** Repeats a write that nothing speaks against, while it is refused. */
  #untilTaken<W extends { readonly status: 'written' }>(
    write: () => Promise<W | Refusal | Unsure>,
  ): Promise<W | Refusal> {
    let refused = 0;
    return this.#retry(async () => {
      for (;;) {
        const result = await write();
        if (result.status === 'unsure') throw result.error;
        if (result.status !== 'conflict') return result;
        refused += 1;
        if (refused === ATTEMPTS) return result;
      }
    });
  }

  async #timed<T>(
    run: (options: StoreCallOptions) => Promise<T>,
    timeoutMs = REQUEST_TIMEOUT_MS,
  ): Promise<T> {
    this.requests += 1;
    this.#inFlight += 1;
    const alone = this.#inFlight === 1;
    const startedAt = this.clock.monotonic();
    const nowBefore = this.clock.now();
    try {
      const result = await bounded(
        { clock: this.clock, timeoutMs, signal: this.signal, what: `${this.store.url}: probing` },
        run,
      );
      this.#answered = true;
      if (alone && this.#inFlight === 1) this.latenciesMs.push(this.clock.monotonic() - startedAt);
      this.#learnTime(result, nowBefore);
      return result;
    } finally {
      this.#inFlight -= 1;
    }
  }

  #learnTime(reply: unknown, nowBefore: number) {
    const time = fieldOf(reply, 'storeTime') as Interval | undefined;
    if (time === undefined) return;
    const heard = { min: time.min - this.clock.now(), max: time.max - nowBefore };
    const both = {
      min: Math.max(heard.min, this.clockOffsetMs.min),
      max: Math.min(heard.max, this.clockOffsetMs.max),
    };
    // Replies that exclude each other: one of the clocks was set meanwhile, and the later word counts.
    this.clockOffsetMs = both.min <= both.max ? both : heard;
  }
}
