import type { Clock } from '../base/clock.js';
import { ageFromListing, storeTime } from './http-times.js';
import type {
  LeaseStore,
  Listing,
  ListingPage,
  ObjectMetadata,
  StoreCallOptions,
  StoredObject,
  WriteOptions,
  WriteResult,
} from './lease-store.js';
import { checkScratch, type Operation, type StoreRequest, senseless } from './store-request.js';

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
  /** The server, where the user has named one. */
  readonly endpoint?: string | undefined;
}

/** The content of a conditional write. */
export interface ConditionalWrite extends Pick<StoredObject, 'key' | 'body' | 'metadata'> {
  /** The etag that the object must have; undefined if the object must be absent. */
  readonly etag?: string;
}

/** A page of a listing, and the token that continues it. */
export interface ContinuedPage extends ListingPage {
  readonly token: string | undefined;
}

/** A row of an object store's listing. */
interface Row {
  /** With the prefix. */
  readonly name: string | undefined;
  readonly etag: string | undefined;
  readonly size: number | undefined;
  readonly modified?: Date | undefined;
}

/** What the drivers share: the properties of a remote store, and one method for both conditional writes. */
export abstract class StoreDriver implements Omit<LeaseStore, 'read' | 'list' | 'close'> {
  readonly remote: boolean = true;
  readonly timeStepMs: number = 1_000;
  protected readonly keyPrefix: string;

  /** @param url as its user wrote it */
  constructor(
    readonly url: string,
    prefix: string,
    private readonly endpoint?: string,
  ) {
    this.keyPrefix = prefix === '' ? '' : `${prefix}/`;
  }

  create(key: string, body: string, metadata: ObjectMetadata, options?: WriteOptions): Promise<WriteResult> {
    return this.write(this.request('create', options, key), { key, body, metadata });
  }

  replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: WriteOptions,
  ): Promise<WriteResult> {
    return this.write(this.request('replace', options, key), { key, body, metadata, etag });
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    checkScratch(this.url, key);
    await this.discard(this.request('discard', options, key), key);
  }

  protected request(operation: Operation, options: WriteOptions | undefined, key?: string): StoreRequest {
    return { ...options, operation, url: this.url, key, endpoint: this.endpoint };
  }

  /**
   * A page of an object store's listing.
   * @param date the `Date` header of the reply
   */
  protected pageOf(date: string | undefined, rows: readonly Row[], token: string | undefined): ContinuedPage {
    const objects = rows.flatMap(({ name, etag, size = 0, modified }) => {
      const key = name?.startsWith(this.keyPrefix) ? name.slice(this.keyPrefix.length) : '';
      // Consoles mark a folder by an object whose name is the prefix itself.
      return key === '' || etag === undefined
        ? []
        : [{ key, etag, size, age: ageFromListing(date, modified) }];
    });
    return { objects, storeTime: storeTime(date), more: token !== undefined, token };
  }

  /**
   * All pages of a listing as one.
   * @throws {StoreError} when the listing cannot be continued, and those of `page`
   */
  protected async allPages(page: (token: string | undefined) => Promise<ContinuedPage>): Promise<Listing> {
    const pages: ListingPage[] = [];
    for (let token: string | undefined; ; ) {
      const next = await page(token);
      pages.push(next);
      if (!next.more) break;
      // A server that repeats the same page would keep this loop for ever.
      if (next.token === undefined || next.token === token)
        throw senseless(this.request('list', undefined), 'a listing that cannot be continued');
      token = next.token;
    }
    // Each page was true at its own time.
    const times = pages.map((each) => each.storeTime);
    const min = Math.min(...times.map((time) => time.min));
    return {
      objects: pages.flatMap(({ objects }) => objects),
      storeTime: { min, max: times.at(-1)?.max ?? Number.POSITIVE_INFINITY },
    };
  }

  protected abstract write(request: StoreRequest, content: ConditionalWrite): Promise<WriteResult>;

  /** Removes an object, if there is one. */
  protected abstract discard(request: StoreRequest, key: string): Promise<unknown>;
}
