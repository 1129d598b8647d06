import { orAborted } from '../../src/core/base/abort.js';
import type { Clock, RandomSource } from '../../src/core/base/clock.js';
import type {
  LeaseStore,
  Listing,
  ListingPage,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../../src/core/store/lease-store.js';
import type { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { NO_REQUESTS, type RequestCount } from './request-count.js';
import { drawLatencyMs, type Operation } from './s3-latency.js';

/** Keys of one page of a listing. */
const PAGE = 1_000;

export interface ShapedStoreOptions {
  readonly bucket: MemoryBucket;
  readonly clock: Clock;
  /** Decides how long each request takes. */
  readonly random: RandomSource;
  /** Whether its conditions have to be put to the test before anybody relies on them, as those of S3. */
  readonly remote: boolean;
  /** Called for each write that is sent. */
  readonly onWrite?: (key: string) => void;
}

/**
 * One client of objects in memory that are as far away as S3: each request takes its time, and reaches the
 * objects half-way. It is as S3 is in all else that the engine can see: whole seconds, no notification
 * of changes, a page of a listing is a request.
 *
 * Not shaped: S3 answers 503 to thousands of requests a second below one prefix, and the requests of one
 * client wait for a connection.
 */
export class ShapedStore implements LeaseStore {
  readonly url = 'memory: as far away as S3';
  readonly remote: boolean;
  readonly pollMs = 1_200;
  readonly timeStepMs: number;
  #requests = NO_REQUESTS;
  #crashed = false;

  constructor(private readonly options: ShapedStoreOptions) {
    this.remote = options.remote;
    this.timeStepMs = options.bucket.resolutionMs;
  }

  /** All that were sent so far. */
  get requests(): RequestCount {
    return this.#requests;
  }

  read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    return this.#request('get', () => this.options.bucket.read(key), options);
  }

  async list(options?: StoreCallOptions): Promise<Listing> {
    const first = await this.listPage(undefined, options);
    const objects = [...first.objects];
    for (let page = first; page.more; ) {
      page = await this.listPage(objects.at(-1)?.key, options);
      for (const object of page.objects) objects.push(object);
    }
    return { objects, storeTime: first.storeTime };
  }

  listPage(after: string | undefined, options?: StoreCallOptions): Promise<ListingPage> {
    return this.#request('list', () => this.options.bucket.page(after, PAGE), options);
  }

  create(
    key: string,
    body: string,
    metadata: Readonly<Record<string, string>>,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    this.options.onWrite?.(key);
    return this.#request('put', () => this.options.bucket.create(key, body, metadata), options);
  }

  replace(
    key: string,
    body: string,
    metadata: Readonly<Record<string, string>>,
    etag: string,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    this.options.onWrite?.(key);
    return this.#request('put', () => this.options.bucket.replace(key, body, metadata, etag), options);
  }

  discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    return this.#request('delete', () => this.options.bucket.remove(key), options);
  }

  /** There is nothing to give up. */
  async close(): Promise<void> {}

  /**
   * Its host crashes: nothing that is under way, or sent later, reaches the objects, and there are no more
   * answers.
   */
  crash(): void {
    this.#crashed = true;
  }

  async #request<Reply>(
    operation: Operation,
    apply: () => Reply,
    options: StoreCallOptions | undefined,
  ): Promise<Reply> {
    options?.signal?.throwIfAborted();
    return orAborted(this.#roundTrip(operation, apply), options?.signal);
  }

  async #roundTrip<Reply>(operation: Operation, apply: () => Reply): Promise<Reply> {
    this.#requests = { ...this.#requests, [operation]: this.#requests[operation] + 1 };
    const halfMs = drawLatencyMs(operation, this.options.random) / 2;
    await this.options.clock.sleep(halfMs);
    if (this.#crashed) return new Promise<Reply>(() => undefined);
    const reply = apply();
    await this.options.clock.sleep(halfMs);
    return reply;
  }
}
