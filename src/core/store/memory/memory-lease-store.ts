import { orAborted } from '../../base/abort.js';
import { checked, FUNCTION, maybe } from '../../base/arguments.js';
import type { Clock } from '../../base/clock.js';
import { systemClock } from '../../base/system.js';
import type { Heed } from '../changes.js';
import type {
  LeaseStore,
  Listing,
  ObjectMetadata,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../lease-store.js';
import { checkScratch } from '../store-request.js';
import { MemoryBucket } from './memory-bucket.js';

/** One request, as an interceptor sees it. */
export type MemoryCall =
  | { readonly operation: 'read' | 'discardProbe'; readonly key: string }
  | { readonly operation: 'list' }
  | { readonly operation: 'create'; readonly key: string; readonly body: string }
  | { readonly operation: 'replace'; readonly key: string; readonly body: string; readonly etag: string };

/**
 * Is between a client and the objects, as a network is. `apply` executes the request, in one
 * synchronous step, and returns the reply. An interceptor may wait before it and after it, call it twice (a
 * duplicate delivery), not call it (a request that is lost), or call it and throw (a reply that is lost):
 * what it throws is what the client gets.
 */
export type MemoryIntercept = <Reply>(call: MemoryCall, apply: () => Reply) => Promise<Reply>;

const faultless: MemoryIntercept = async (_, apply) => apply();

/** Settings of a {@link MemoryLeaseStore}. */
export interface MemoryLeaseStoreOptions {
  /** The clock of the store: ages on `monotonic()`, store time from `now()`. @default that of this machine */
  readonly clock?: Clock | undefined;
  /**
   * What its times are cut to, in milliseconds, at least 0: 1000 for whole seconds as on S3, 0 for exact
   * times.
   * @default 1
   */
  readonly resolutionMs?: number | undefined;
  /** The network of this client. @default one without faults or delay */
  readonly intercept?: MemoryIntercept | undefined;
  /** What {@link LeaseStore.remote} says. @default false */
  readonly remote?: boolean | undefined;
}

/**
 * Leases in the memory of this process: for tests and simulations. Each instance is one client;
 * {@link MemoryLeaseStore.connect} gives further ones of the same objects, each with its own network.
 */
export class MemoryLeaseStore implements LeaseStore {
  readonly url = 'memory:';
  readonly remote: boolean;
  readonly pollMs = 500;
  readonly timeStepMs: number;

  /** @param bucket the objects; without it, none yet */
  constructor(
    private readonly options: MemoryLeaseStoreOptions = {},
    private readonly bucket = new MemoryBucket(
      checked(options).clock ?? systemClock,
      options.resolutionMs ?? 1,
    ),
  ) {
    checked(options, { intercept: maybe(FUNCTION) });
    this.remote = options.remote ?? false;
    this.timeStepMs = bucket.resolutionMs;
  }

  /**
   * Another client of the same objects, with the same settings but another network: by default one
   * without faults or delay.
   */
  connect(intercept: MemoryIntercept = faultless): MemoryLeaseStore {
    return new MemoryLeaseStore({ ...this.options, intercept }, this.bucket);
  }

  read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    return this.#call({ operation: 'read', key }, () => this.bucket.read(key), options);
  }

  list(options?: StoreCallOptions): Promise<Listing> {
    return this.#call({ operation: 'list' }, () => this.bucket.list(), options);
  }

  create(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    return this.#call(
      { operation: 'create', key, body },
      () => this.bucket.create(key, body, metadata),
      options,
    );
  }

  replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    return this.#call(
      { operation: 'replace', key, body, etag },
      () => this.bucket.replace(key, body, metadata, etag),
      options,
    );
  }

  /**
   * Resolves at the next write or removal through any client that `heed` wants; rejects with `signal.reason`
   * when `signal` aborts.
   */
  changed(signal: AbortSignal, heed?: Heed): Promise<void> {
    return this.bucket.changes.next(signal, heed);
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    checkScratch(this.url, key);
    await this.#call({ operation: 'discardProbe', key }, () => this.bucket.remove(key), options);
  }

  /** Nothing to give up: the objects exist as long as any client does. */
  async close(): Promise<void> {}

  async #call<Reply>(
    call: MemoryCall,
    apply: () => Reply,
    options: StoreCallOptions | undefined,
  ): Promise<Reply> {
    options?.signal?.throwIfAborted();
    const { intercept = faultless } = this.options;
    return orAborted(intercept(call, apply), options?.signal);
  }
}
