import type { Clock } from '../base/clock.js';
import type {
  ObjectMetadata,
  StoreCallOptions,
  StoredObject,
  WriteOptions,
  WriteResult,
} from './lease-store.js';
import { checkScratch, type Operation, type StoreRequest } from './store-request.js';

/** The settings that all object stores have. */
export interface ObjectStoreOptions {
  /** Without a slash at either end; empty for the whole bucket or container. */
  readonly prefix: string;
  readonly clock: Clock;
  /**
   * The time limit of one request, in milliseconds, including credentials and the body of the reply. A
   * listing makes one request per page.
   */
  readonly requestTimeoutMs: number;
  /** See {@link LeaseStore.pollMs}, in milliseconds. @default 1200 */
  readonly pollMs?: number | undefined;
}

/** The content of a conditional write. */
export interface ConditionalWrite extends Pick<StoredObject, 'key' | 'body' | 'metadata'> {
  /** The etag that the object must have; undefined if the object must be absent. */
  readonly etag?: string;
}

/** What the drivers share: the properties of a remote store, and one method for both conditional writes. */
export abstract class StoreDriver {
  readonly remote: boolean = true;
  readonly timeStepMs: number = 1_000;
  protected readonly keyPrefix: string;

  /** @param url as its user wrote it */
  constructor(
    readonly url: string,
    prefix: string,
    readonly pollMs = 1_200,
  ) {
    this.keyPrefix = prefix === '' ? '' : `${prefix}/`;
  }

  create(key: string, body: string, metadata: ObjectMetadata, options?: WriteOptions): Promise<WriteResult> {
    return this.write(this.request('create', key), { key, body, metadata }, options);
  }

  replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: WriteOptions,
  ): Promise<WriteResult> {
    return this.write(this.request('replace', key), { key, body, metadata, etag }, options);
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    checkScratch(this.url, key);
    await this.discard(key, options);
  }

  protected request<Of extends Operation>(operation: Of, key?: string): StoreRequest<Of> {
    return { operation, url: this.url, key };
  }

  protected abstract write(
    request: StoreRequest,
    content: ConditionalWrite,
    options: WriteOptions | undefined,
  ): Promise<WriteResult>;

  /** Removes an object, if there is one. */
  protected abstract discard(key: string, options: StoreCallOptions | undefined): Promise<unknown>;
}
