import { buffer } from 'node:stream/consumers';
import type {
  ContainerClient,
  ContainerListBlobHierarchySegmentResponse,
  HttpHeaders,
} from '@azure/storage-blob';
import { checked, NAME, OBJECT, TEXT } from '../../base/arguments.js';
import { ageFromHeaders, storeTime } from '../http-times.js';
import type {
  LeaseStore,
  Listing,
  ListOptions,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../lease-store.js';
import { type ConditionalWrite, type ObjectStoreOptions, StoreDriver } from '../store-driver.js';
import { below } from '../store-kind.js';
import { boundedRequest, required, type StoreRequest, senseless } from '../store-request.js';
import { classifyReply } from './classify-reply.js';

/**
 * A `ContainerClient` of `@azure/storage-blob`, by what distinguishes it: published types do not refer to a
 * package that only some users install.
 */
export interface AzureContainer {
  readonly accountName: string;
  readonly containerName: string;
  readonly url: string;
  /** Makes the client of one blob. */
  getBlockBlobClient(blobName: string): object;
}

/** Settings of an {@link AzureLeaseStore}. */
export interface AzureLeaseStoreOptions extends ObjectStoreOptions {
  readonly account: string;
  readonly container: string;
  /** Its own retries are off (`maxTries: 1`). */
  readonly client: AzureContainer;
}

/** What the replies of the SDK have in common. */
interface Reply {
  readonly _response: { readonly headers: Pick<HttpHeaders, 'get'> };
}

/**
 * Leases in a container of Azure Blob Storage: Put Blob with `If-None-Match: *` and `If-Match`. Every call
 * makes one request and repeats none; only a listing makes one a page, of 5,000 blobs.
 */
export class AzureLeaseStore extends StoreDriver implements LeaseStore {
  readonly #client: ContainerClient;

  constructor(private readonly options: AzureLeaseStoreOptions) {
    const { account, container, prefix, endpoint, client } = checked(options, {
      account: NAME,
      container: NAME,
      prefix: TEXT,
      client: OBJECT,
    });
    super(`azblob://${account}/${container}${below(prefix)}`, prefix, endpoint);
    this.#client = client as ContainerClient;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.request('read', options, key);
    const answer = await this.#call(request, async (abortSignal) => {
      const reply = await this.#blob(key).download(0, undefined, { abortSignal, maxRetryRequests: 0 });
      const stream = reply.readableStreamBody;
      return { reply, body: stream === undefined ? '' : (await buffer(stream)).toString() };
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

  list(options?: ListOptions): Promise<Listing> {
    const request = this.request('list', options);
    return this.allPages(async (continuationToken) => {
      const page = await this.#call(request, async (abortSignal) => {
        const from = { prefix: this.keyPrefix, abortSignal };
        const pages = (
          options?.folders ? this.#client.listBlobsFlat(from) : this.#client.listBlobsByHierarchy('/', from)
        ).byPage({ maxPageSize: 5_000, ...(continuationToken !== undefined && { continuationToken }) });
        return (await pages.next()).value as ContainerListBlobHierarchySegmentResponse;
      });
      if (typeof page === 'string' || page?.segment === undefined)
        throw senseless(request, 'no listing: is this Blob Storage?');
      const rows = page.segment.blobItems.map(
        ({ name, properties: { etag, contentLength, lastModified } }) => ({
          name,
          etag: etagOf(request, etag),
          size: contentLength,
          modified: lastModified,
        }),
      );
      return this.pageOf(dateOf(page), rows, page.continuationToken || undefined);
    });
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag }: ConditionalWrite,
  ): Promise<WriteResult> {
    const content = Buffer.from(body);
    const answer = await this.#call(request, (abortSignal) =>
      this.#blob(key).upload(content, content.length, {
        abortSignal,
        conditions: etag === undefined ? { ifNoneMatch: '*' } : { ifMatch: etag },
        metadata: { ...metadata },
        blobHTTPHeaders: { blobContentType: 'application/json', blobCacheControl: 'no-store' },
      }),
    );
    if (typeof answer === 'string') return { status: 'conflict' };
    return { status: 'written', etag: etagOf(request, answer.etag), storeTime: storeTime(dateOf(answer)) };
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    return this.#call(request, (abortSignal) => this.#blob(key).delete({ abortSignal }));
  }

  /** Idle connections hold no process, and are closed soon. */
  async close(): Promise<void> {}

  /** One request, limited in time: its reply, or the definite answer that came in the form of an error. */
  #call<T>(request: StoreRequest, send: (signal: AbortSignal) => Promise<T>) {
    return boundedRequest(this.options, request, (signal) =>
      send(signal).catch((error: unknown) => classifyReply(error, request)),
    );
  }

  #blob(key: string) {
    return this.#client.getBlockBlobClient(this.keyPrefix + key);
  }
}

function dateOf({ _response }: Reply): string | undefined {
  return _response.headers.get('date');
}

/** Rows of a listing have etags without the quotes of the header. */
function etagOf(request: StoreRequest, etag: string | undefined): string {
  const tag = required(request, etag, 'an ETag: is this Blob Storage?');
  return tag.startsWith('"') ? tag : `"${tag}"`;
}
