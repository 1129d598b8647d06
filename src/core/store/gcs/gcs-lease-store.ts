import { createHash } from 'node:crypto';
import { checked, FUNCTION, having, NAME, TEXT } from '../../base/arguments.js';
import { fieldOf, parsed, textOf } from '../../base/fields.js';
import type { HttpClient, HttpReply, HttpRequest } from '../http-client.js';
import { ageFromHeaders, storeTime } from '../http-times.js';
import type {
  LeaseStore,
  Listing,
  ListingPage,
  ListOptions,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../lease-store.js';
import {
  type ConditionalWrite,
  type ContinuedPage,
  type ObjectStoreOptions,
  StoreDriver,
} from '../store-driver.js';
import { below } from '../store-kind.js';
import {
  boundedRequest,
  connectionFailure,
  failing,
  required,
  type StoreRequest,
  senseless,
} from '../store-request.js';
import { classifyNoToken, classifyReply } from './classify-reply.js';

/** Settings of a {@link GcsLeaseStore}. */
export interface GcsLeaseStoreOptions extends ObjectStoreOptions {
  readonly bucket: string;
  readonly client: Pick<HttpClient, 'send' | 'close'>;
  /**
   * The headers that authorize a request.
   * @param isRefused whether the headers given before were refused
   */
  readonly authorize: (isRefused: boolean) => Promise<Readonly<Record<string, string>>>;
}

type Answer = HttpReply | 'conflict' | 'absent';

const META = 'x-goog-meta-';

/**
 * Leases in a bucket of Google Cloud Storage, by its JSON API: inserts with `ifGenerationMatch`. The etag is
 * the generation, since that of Google repeats with the content. Every call makes one request and repeats
 * none but one whose token was refused, with a new token; only a listing makes one a page, and a read of an
 * absent object a second one, since Google answers the same where the bucket is absent.
 */
export class GcsLeaseStore extends StoreDriver implements LeaseStore {
  readonly minWriteIntervalMs = 1_000;
  readonly #objects: string;

  constructor(private readonly options: GcsLeaseStoreOptions) {
    const { bucket, prefix, endpoint } = checked(options, {
      bucket: NAME,
      prefix: TEXT,
      client: having('a client', 'send'),
      authorize: FUNCTION,
    });
    super(`gs://${bucket}${below(prefix)}`, prefix, endpoint);
    this.#objects = `/storage/v1/b/${bucket}/o`;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.request('read', options, key);
    const reply = await this.#call(request, `${this.#path(key)}?alt=media`);
    if (typeof reply === 'string') return this.#surelyAbsent(request, key);
    const { headers } = reply;
    const date = textOf(headers, 'date');
    const metadata = Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith(META) ? [[name.slice(META.length), String(value)]] : [],
    );
    return {
      key,
      body: reply.body,
      metadata: Object.fromEntries(metadata),
      etag: required(request, textOf(headers, 'x-goog-generation'), A_GENERATION),
      age: ageFromHeaders(date, textOf(headers, 'last-modified')),
      storeTime: storeTime(date),
    };
  }

  list(options?: ListOptions): Promise<Listing> {
    return this.allPages((pageToken) => this.#page(pageToken === undefined ? {} : { pageToken }, options));
  }

  async listPage(after: string | undefined, options?: ListOptions): Promise<ListingPage> {
    // `startOffset` is the first key of the page, which the caller has already.
    const page = await this.#page(
      after === undefined ? {} : { startOffset: this.keyPrefix + after },
      options,
    );
    return { ...page, objects: page.objects.filter(({ key }) => key !== after) };
  }

  async #page(from: Readonly<Record<string, string>>, options?: ListOptions): Promise<ContinuedPage> {
    const request = this.request('list', options);
    const fields = 'kind,nextPageToken,items(name,generation,size,updated)';
    const query = new URLSearchParams({
      prefix: this.keyPrefix,
      ...(!options?.folders && { delimiter: '/' }),
      maxResults: '1000',
      fields,
      ...from,
    });
    const reply = await this.#call(request, `${this.#objects}?${query}`);
    const page = typeof reply === 'string' ? undefined : parsed(reply.body);
    if (typeof reply === 'string' || fieldOf(page, 'kind') !== 'storage#objects') {
      throw senseless(request, 'no listing: is this Cloud Storage?');
    }
    const items = (fieldOf(page, 'items') as readonly unknown[] | undefined) ?? [];
    const rows = items.map((item) => ({
      name: textOf(item, 'name'),
      etag: required(request, textOf(item, 'generation'), A_GENERATION),
      size: Number(fieldOf(item, 'size')),
      modified: new Date(textOf(item, 'updated') ?? Number.NaN),
    }));
    return this.pageOf(textOf(reply.headers, 'date'), rows, textOf(page, 'nextPageToken'));
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag = '0' }: ConditionalWrite,
  ): Promise<WriteResult> {
    const resource = {
      name: this.keyPrefix + key,
      contentType: 'application/json',
      cacheControl: 'no-store',
      metadata,
    };
    const boundary = createHash('sha256').update(body).digest('hex');
    const part = (content: string) =>
      `--${boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n${content}\r\n`;
    const query = { uploadType: 'multipart', ifGenerationMatch: etag, fields: 'generation' };
    const answer = await this.#call(request, `/upload${this.#objects}?${new URLSearchParams(query)}`, {
      method: 'POST',
      headers: { 'content-type': `multipart/related; boundary=${boundary}` },
      body: Buffer.from(`${part(JSON.stringify(resource))}${part(body)}--${boundary}--\r\n`),
    });
    if (typeof answer === 'string') return { status: 'conflict' };
    return {
      status: 'written',
      etag: required(request, textOf(parsed(answer.body), 'generation'), A_GENERATION),
      storeTime: storeTime(textOf(answer.headers, 'date')),
    };
  }

  protected async discard(request: StoreRequest, key: string): Promise<void> {
    const answer = await this.#call(request, this.#path(key), { method: 'DELETE' });
    if (answer === 'absent') await this.#surelyAbsent(request, key);
  }

  async close(): Promise<void> {
    this.options.client.close();
  }

  /**
   * Undefined where a listing says so, too: of an object and of a bucket that are absent a read says the
   * same.
   */
  async #surelyAbsent(options: StoreCallOptions, key: string): Promise<undefined> {
    const { objects } = await this.#page({ prefix: this.keyPrefix + key }, options);
    if (!objects.some((object) => object.key === key)) return undefined;
    const detail = 'answered 404 for an object that it lists';
    throw failing(this.request('read', options, key))('unavailable', 'not-applied', detail);
  }

  /** One request, limited in time: a success, or the definite answer that came in the form of a refusal. */
  #call(
    request: StoreRequest,
    path: string,
    send: Omit<HttpRequest, 'signal'> = { method: 'GET' },
  ): Promise<Answer> {
    const { client, authorize, clock } = this.options;
    return boundedRequest(this.options, request, async (signal) => {
      const attempt = async (isRefused: boolean) => {
        const authorization = await authorize(isRefused).catch((error: unknown) => {
          throw classifyNoToken(error, request, clock.now());
        });
        return client
          .send(path, { ...send, headers: { ...send.headers, ...authorization }, signal })
          .catch((error: unknown) => {
            throw connectionFailure(error, () => failing(request), request.endpoint);
          });
      };
      const first = await attempt(false);
      const reply = first.status === 401 ? await attempt(true) : first;
      return reply.status === 200 || reply.status === 204 ? reply : classifyReply(reply, request);
    });
  }

  #path(key: string): string {
    return `${this.#objects}/${encodeURIComponent(this.keyPrefix + key)}`;
  }
}

const A_GENERATION = 'a generation: is this Cloud Storage?';
