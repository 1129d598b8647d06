import type {
  ContainerClient,
  ContainerListBlobHierarchySegmentResponse,
  HttpHeaders,
} from '@azure/storage-blob';
import type { Clock } from '../../base/clock.js';
import { bounded } from '../bounded.js';
import { ageFromHeaders, ageFromListing } from '../http-age.js';
import { storeTime } from '../http-date.js';
import type {
  LeaseStore,
  Listing,
  ObjectMetadata,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../lease-store.js';
import { StoreError } from '../lease-store.js';
import { allPages } from '../listing-pages.js';
import { attempt, checkScratch, type StoreRequest, senseless } from '../store-request.js';
import { classifyReply } from './classify-reply.js';

/** Settings of an {@link AzureLeaseStore}. */
export interface AzureLeaseStoreOptions {
  readonly account: string;
  readonly container: string;
  /** Without a slash at either end; empty for the whole container. */
  readonly prefix: string;
  /** Of the container. Its own retries are off (`maxTries: 1`). */
  readonly client: ContainerClient;
  readonly clock: Clock;
  /**
   * How long one request may take in all, credentials and the body of the reply included, in milliseconds. A
   * listing makes one request a page.
   */
  readonly requestTimeoutMs: number;
  /** See {@link LeaseStore.pollMs}, in milliseconds. @default 1200 */
  readonly pollMs?: number | undefined;
}

/** What the replies of the SDK have in common. */
interface Reply {
  readonly _response: { readonly headers: Pick<HttpHeaders, 'get'> };
}

/**
 * Leases in a container of Azure Blob Storage: Put Blob with `If-None-Match: *` and `If-Match`. Every call
 * makes one request and repeats none; only a listing makes one a page, of 5,000 blobs.
 */
export class AzureLeaseStore implements LeaseStore {
  readonly url: string;
  readonly remote = true;
  readonly pollMs: number;
  readonly timeStepMs = 1_000;
  readonly #keyPrefix: string;

  constructor(private readonly options: AzureLeaseStoreOptions) {
    const { account, container, prefix, pollMs = 1200 } = options;
    this.#keyPrefix = prefix === '' ? '' : `${prefix}/`;
    this.url = `azblob://${account}/${container}${prefix === '' ? '' : `/${prefix}`}`;
    this.pollMs = pollMs;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.#request('read', key);
    const answer = await this.#call(request, options, async (abortSignal) => {
      const reply = await this.#blob(key).download(0, undefined, { abortSignal, maxRetryRequests: 0 });
      const chunks: Buffer[] = [];
      for await (const chunk of reply.readableStreamBody ?? []) chunks.push(Buffer.from(chunk));
      return { reply, body: Buffer.concat(chunks).toString() };
    });
    if (typeof answer === 'string') return undefined;
    const { reply, body } = answer;
    const date = dateOf(reply);
    return {
      key,
      body,
      metadata: reply.metadata ?? {},
      etag: etagOf(request, reply.etag),
      age: ageFromHeaders(date, reply._response.headers.get('last-modified')),
      storeTime: storeTime(date),
    };
  }

  list(options?: StoreCallOptions): Promise<Listing> {
    const request = this.#request('list');
    return allPages(request, async (continuationToken) => {
      const page = await this.#call(request, options, async (abortSignal) => {
        const pages = this.options.client
          .listBlobsByHierarchy('/', { prefix: this.#keyPrefix, abortSignal })
          .byPage({ maxPageSize: 5_000, ...(continuationToken !== undefined && { continuationToken }) });
        return (await pages.next()).value as ContainerListBlobHierarchySegmentResponse;
      });
      if (typeof page === 'string' || page?.segment === undefined)
        throw senseless(request, 'no listing: is this Blob Storage?');
      const date = dateOf(page);
      const objects = page.segment.blobItems.flatMap(
        ({ name, properties: { etag, contentLength, lastModified } }) => {
          const key = name.slice(this.#keyPrefix.length);
          return key === ''
            ? []
            : [
                {
                  key,
                  etag: etagOf(request, etag),
                  size: contentLength ?? 0,
                  age: ageFromListing(date, lastModified),
                },
              ];
        },
      );
      const token = page.continuationToken || undefined;
      return { objects, storeTime: storeTime(date), more: token !== undefined, token };
    });
  }

  create(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    return this.#put('create', key, { body, metadata, conditions: { ifNoneMatch: '*' } }, options);
  }

  replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    return this.#put('replace', key, { body, metadata, conditions: { ifMatch: etag } }, options);
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    checkScratch(this.url, key);
    await this.#call(this.#request('discard', key), options, (abortSignal) =>
      this.#blob(key).delete({ abortSignal }),
    );
  }

  /** Idle connections hold no process, and are closed soon. */
  async close(): Promise<void> {}

  async #put(
    operation: 'create' | 'replace',
    key: string,
    {
      body,
      metadata,
      conditions,
    }: { body: string; metadata: ObjectMetadata; conditions: { ifMatch?: string; ifNoneMatch?: string } },
    options: StoreCallOptions | undefined,
  ): Promise<WriteResult> {
    const request = this.#request(operation, key);
    const content = Buffer.from(body);
    const answer = await this.#call(request, options, (abortSignal) =>
      this.#blob(key).upload(content, content.length, {
        ...{ abortSignal, conditions, metadata: { ...metadata } },
        blobHTTPHeaders: { blobContentType: 'application/json', blobCacheControl: 'no-store' },
      }),
    );
    if (typeof answer === 'string') return { status: 'conflict' };
    return { status: 'written', etag: etagOf(request, answer.etag), storeTime: storeTime(dateOf(answer)) };
  }

  /** One request, bounded in time: its reply, or the definite answer that came in the form of an error. */
  #call<T>(
    request: StoreRequest,
    options: StoreCallOptions | undefined,
    send: (signal: AbortSignal) => Promise<T>,
  ) {
    const { clock, requestTimeoutMs: timeoutMs } = this.options;
    const bounds = { clock, timeoutMs, signal: options?.signal, what: `${this.url}: ${attempt(request)}` };
    return bounded<T | 'conflict' | 'absent'>(bounds, async ({ signal }) => {
      try {
        return await send(signal);
      } catch (error) {
        const classified = classifyReply(error, request);
        if (classified instanceof StoreError) throw classified;
        return classified;
      }
    });
  }

  #request(operation: StoreRequest['operation'], key?: string): StoreRequest {
    return { operation, url: this.url, key };
  }

  #blob(key: string) {
    return this.options.client.getBlockBlobClient(this.#keyPrefix + key);
  }
}

function dateOf({ _response }: Reply): string | undefined {
  return _response.headers.get('date');
}

/** Rows of a listing have etags without the quotes of the header. */
function etagOf(request: StoreRequest, etag: string | undefined): string {
  if (etag !== undefined && etag !== '') return etag.startsWith('"') ? etag : `"${etag}"`;
  throw senseless(request, 'success without an ETag: is this Blob Storage?');
}
