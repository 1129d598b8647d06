import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.js';
import { bounded } from '../bounded.js';
import { fieldOf, textOf } from '../connection-failure.js';
import { ageFromHeaders, ageFromListing } from '../http-age.js';
import type { HttpClient, HttpReply, HttpRequest } from '../http-client.js';
import { storeTime } from '../http-date.js';
import type {
  LeaseStore,
  Listing,
  ListingPage,
  ObjectMetadata,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../lease-store.js';
import { StoreError } from '../lease-store.js';
import { allPages, type ContinuedPage } from '../listing-pages.js';
import { attempt, checkScratch, failure, type StoreRequest, senseless } from '../store-request.js';
import { classifyFailure, classifyNoToken, classifyReply, parsed } from './classify-reply.js';

/** Settings of a {@link GcsLeaseStore}. */
export interface GcsLeaseStoreOptions {
  readonly bucket: string;
  /** Without a slash at either end; empty for the whole bucket. */
  readonly prefix: string;
  readonly client: Pick<HttpClient, 'send' | 'close'>;
  /** The headers that authorize a request. */
  readonly authorize: () => Promise<Readonly<Record<string, string>>>;
  readonly clock: Clock;
  /**
   * How long one request may take in all, credentials and the body of the reply included, in milliseconds. A
   * listing makes one request a page.
   */
  readonly requestTimeoutMs: number;
  /** See {@link LeaseStore.pollMs}, in milliseconds. @default 1200 */
  readonly pollMs?: number | undefined;
}

type Answer = HttpReply | 'conflict' | 'absent';

const META = 'x-goog-meta-';

/**
 * Leases in a bucket of Google Cloud Storage, by its JSON API: inserts with `ifGenerationMatch`. The etag is
 * the generation, since that of Google repeats with the content. Every call makes one request and repeats
 * none; only a listing makes one a page, and a read of an absent object a second one, since Google answers
 * the same where the bucket is absent.
 */
export class GcsLeaseStore implements LeaseStore {
  readonly url: string;
  readonly remote = true;
  readonly pollMs: number;
  readonly timeStepMs = 1_000;
  readonly minWriteIntervalMs = 1_000;
  readonly #keyPrefix: string;
  readonly #objects: string;

  constructor(private readonly options: GcsLeaseStoreOptions) {
    const { bucket, prefix, pollMs = 1200 } = options;
    this.#keyPrefix = prefix === '' ? '' : `${prefix}/`;
    this.url = `gs://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
    this.pollMs = pollMs;
    this.#objects = `/storage/v1/b/${bucket}/o`;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.#request('read', key);
    const reply = await this.#call(request, options, `${this.#path(key)}?alt=media`, { method: 'GET' });
    if (typeof reply === 'string') return this.#surelyAbsent(key, options);
    const date = header(reply, 'date');
    const metadata = Object.keys(reply.headers).filter((name) => name.startsWith(META));
    return {
      key,
      body: reply.body,
      metadata: Object.fromEntries(
        metadata.map((name) => [name.slice(META.length), header(reply, name) ?? '']),
      ),
      etag: generationOf(request, header(reply, 'x-goog-generation')),
      age: ageFromHeaders(date, header(reply, 'last-modified')),
      storeTime: storeTime(date),
    };
  }

  list(options?: StoreCallOptions): Promise<Listing> {
    return allPages(this.#request('list'), (pageToken) =>
      this.#page(pageToken === undefined ? {} : { pageToken }, options),
    );
  }

  async listPage(after: string | undefined, options?: StoreCallOptions): Promise<ListingPage> {
    // `startOffset` is the first key of the page, which the caller has already.
    const { token: _, ...page } = await this.#page(
      after === undefined ? {} : { startOffset: this.#keyPrefix + after },
      options,
    );
    return { ...page, objects: page.objects.filter(({ key }) => key !== after) };
  }

  async #page(
    from: { pageToken?: string; startOffset?: string; prefix?: string },
    options?: StoreCallOptions,
  ): Promise<ContinuedPage> {
    const request = this.#request('list');
    const fields = 'kind,nextPageToken,items(name,generation,size,updated)';
    const query = new URLSearchParams({
      prefix: this.#keyPrefix,
      delimiter: '/',
      maxResults: '1000',
      fields,
      ...from,
    });
    const reply = await this.#call(request, options, `${this.#objects}?${query}`, { method: 'GET' });
    const page = typeof reply === 'string' ? undefined : parsed(reply.body);
    if (typeof reply === 'string' || fieldOf(page, 'kind') !== 'storage#objects') {
      throw senseless(request, 'no listing: is this Cloud Storage?');
    }
    const date = header(reply, 'date');
    const items = (fieldOf(page, 'items') as readonly unknown[] | undefined) ?? [];
    const objects = items.flatMap((item) => {
      const key = textOf(item, 'name')?.slice(this.#keyPrefix.length) ?? '';
      // Consoles mark a folder by an object that is named like the prefix itself.
      if (key === '') return [];
      const age = ageFromListing(date, new Date(textOf(item, 'updated') ?? Number.NaN));
      return [
        {
          key,
          etag: generationOf(request, textOf(item, 'generation')),
          size: Number(fieldOf(item, 'size')),
          age,
        },
      ];
    });
    const token = textOf(page, 'nextPageToken');
    return { objects, storeTime: storeTime(date), more: token !== undefined, token };
  }

  create(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    return this.#insert(this.#request('create', key), { key, body, metadata, generation: '0' }, options);
  }

  replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    return this.#insert(this.#request('replace', key), { key, body, metadata, generation: etag }, options);
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    checkScratch(this.url, key);
    const answer = await this.#call(this.#request('discard', key), options, this.#path(key), {
      method: 'DELETE',
    });
    if (answer === 'absent') await this.#surelyAbsent(key, options);
  }

  async close(): Promise<void> {
    this.options.client.close();
  }

  async #insert(
    request: StoreRequest,
    {
      key,
      body,
      metadata,
      generation,
    }: { key: string; body: string; metadata: ObjectMetadata; generation: string },
    options: StoreCallOptions | undefined,
  ): Promise<WriteResult> {
    const resource = {
      name: this.#keyPrefix + key,
      contentType: 'application/json',
      cacheControl: 'no-store',
      metadata,
    };
    const boundary = createHash('sha256').update(body).digest('hex');
    const part = (content: string) =>
      `--${boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n${content}\r\n`;
    const answer = await this.#call(
      request,
      options,
      `/upload${this.#objects}?${new URLSearchParams({ uploadType: 'multipart', ifGenerationMatch: generation, fields: 'generation' })}`,
      {
        method: 'POST',
        headers: { 'content-type': `multipart/related; boundary=${boundary}` },
        body: Buffer.from(`${part(JSON.stringify(resource))}${part(body)}--${boundary}--\r\n`),
      },
    );
    if (typeof answer === 'string') return { status: 'conflict' };
    const etag = generationOf(request, textOf(parsed(answer.body), 'generation'));
    return { status: 'written', etag, storeTime: storeTime(header(answer, 'date')) };
  }

  /**
   * Undefined where a listing says so, too: of an object and of a bucket that are absent a read says the
   * same.
   */
  async #surelyAbsent(key: string, options: StoreCallOptions | undefined): Promise<undefined> {
    const { objects } = await this.#page({ prefix: this.#keyPrefix + key }, options);
    if (!objects.some((object) => object.key === key)) return undefined;
    const detail = 'answered 404 for an object that it lists';
    throw failure(this.#request('read', key), { fault: 'unavailable', outcome: 'not-applied', detail });
  }

  /** One request, bounded in time: a success, or the definite answer that came in the form of a refusal. */
  #call(
    request: StoreRequest,
    options: StoreCallOptions | undefined,
    path: string,
    send: Omit<HttpRequest, 'signal'>,
  ): Promise<Answer> {
    const { client, authorize, clock, requestTimeoutMs: timeoutMs } = this.options;
    const bounds = { clock, timeoutMs, signal: options?.signal, what: `${this.url}: ${attempt(request)}` };
    return bounded(bounds, async ({ signal }) => {
      const authorization = await authorize().catch((error: unknown) => {
        throw classifyNoToken(error, request, clock.now());
      });
      const reply = await client
        .send(path, { ...send, headers: { ...send.headers, ...authorization }, signal })
        .catch((error: unknown) => {
          throw classifyFailure(error, request);
        });
      if (reply.status === 200 || reply.status === 204) return reply;
      const classified = classifyReply(reply, request);
      if (classified instanceof StoreError) throw classified;
      return classified;
    });
  }

  #request(operation: StoreRequest['operation'], key?: string): StoreRequest {
    return { operation, url: this.url, key };
  }

  #path(key: string): string {
    return `${this.#objects}/${encodeURIComponent(this.#keyPrefix + key)}`;
  }
}

function header({ headers }: HttpReply, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

function generationOf(request: StoreRequest, generation: string | undefined): string {
  if (generation !== undefined) return generation;
  throw senseless(request, 'success without a generation: is this Cloud Storage?');
}
