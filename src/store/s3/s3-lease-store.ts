import { orAborted, timeoutSignal } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import {
  type CallOptions,
  type Interval,
  type LeaseStore,
  type ListedObject,
  type Listing,
  type ListingPage,
  type StoredObject,
  StoreError,
  type WriteResult,
} from '../lease-store.js';
import { classifyReply, type FailedRequest, givenUp, teachesTime } from './classify-reply.js';
import { OBSERVER_PLACE, type ObservedReply, ReplyObserver } from './reply-observer.js';
import { ageFromHeaders, ageFromListing, storeTime } from './reply-time.js';
import type { S3Requests } from './s3-client.js';
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from './sdk.js';

/** Settings of an {@link S3LeaseStore}. */
export interface S3LeaseStoreOptions {
  readonly bucket: string;
  /** Without a slash at either end; empty for the whole bucket. */
  readonly prefix: string;
  readonly client: S3Requests;
  readonly clock: Clock;
  /** How long one request may take in all, credentials and the body of the reply included, in milliseconds. A listing makes one request a page. */
  readonly requestTimeoutMs: number;
  /** See {@link LeaseStore.pollMs}, in milliseconds. @default 1200 */
  readonly pollMs?: number;
}

type Operation = Pick<FailedRequest, 'operation' | 'key'>;

/**
 * Leases in a bucket of S3, or of a server that speaks its API: PutObject with `If-None-Match: *` and `If-Match`. Every call makes
 * one request and none that may have been applied is repeated; only a listing makes one a page. A request that was refused for the time
 * in its signature is made once more, by the server's time: the clock of the host may be off by any amount.
 */
export class S3LeaseStore implements LeaseStore {
  readonly url: string;
  readonly remote = true;
  readonly pollMs: number;
  readonly timeStepMs = 1_000;
  readonly #bucket: string;
  readonly #keyPrefix: string;
  readonly #client: S3Requests;
  readonly #clock: Clock;
  readonly #requestTimeoutMs: number;

  constructor(options: S3LeaseStoreOptions) {
    this.#bucket = options.bucket;
    this.#keyPrefix = options.prefix === '' ? '' : `${options.prefix}/`;
    this.url = `s3://${options.bucket}${options.prefix === '' ? '' : `/${options.prefix}`}`;
    this.#client = options.client;
    this.#clock = options.clock;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    this.pollMs = options.pollMs ?? 1200;
  }

  async read(key: string, options?: CallOptions): Promise<StoredObject | undefined> {
    const request: Operation = { operation: 'read', key };
    const command = new GetObjectCommand(this.#object(key));
    const answer = await this.#call(request, options, async (abortSignal, observer) => {
      command.middlewareStack.add(observer.middleware, OBSERVER_PLACE);
      const output = await this.#client.send(command, { abortSignal });
      return { ...output, text: (await output.Body?.transformToString('utf-8')) ?? '' };
    });
    if (answer.refused !== undefined) {
      if (answer.refused === 'absent') return undefined;
      throw this.#senseless(request, answer.refused);
    }
    const { output, reply } = answer;
    return {
      key,
      body: output.text,
      metadata: output.Metadata ?? {},
      etag: this.#etag(request, output.ETag),
      age: ageFromHeaders(reply.headers.date, reply.headers['last-modified']),
      storeTime: storeTime(reply.headers.date),
    };
  }

  async list(options?: CallOptions): Promise<Listing> {
    const objects: ListedObject[] = [];
    let told: Interval | undefined;
    for (let token: string | undefined; ; ) {
      const page = await this.#page(token === undefined ? {} : { ContinuationToken: token }, options);
      for (const object of page.objects) objects.push(object);
      // Each page was true at its own time.
      told = { min: Math.min(told?.min ?? page.storeTime.min, page.storeTime.min), max: page.storeTime.max };
      if (!page.more) return { objects, storeTime: told };
      // A server that sends the same page again and again would keep this loop for ever.
      if (page.token === undefined || page.token === token) {
        throw this.#senseless({ operation: 'list' }, 'a listing that cannot be continued');
      }
      token = page.token;
    }
  }

  async listPage(after: string | undefined, options?: CallOptions): Promise<ListingPage> {
    const { token: _, ...page } = await this.#page(after === undefined ? {} : { StartAfter: this.#keyPrefix + after }, options);
    return page;
  }

  async #page(
    from: { readonly ContinuationToken?: string; readonly StartAfter?: string },
    options: CallOptions | undefined,
  ): Promise<ListingPage & { readonly token: string | undefined }> {
    const request: Operation = { operation: 'list' };
    const command = new ListObjectsV2Command({ Bucket: this.#bucket, Prefix: this.#keyPrefix, Delimiter: '/', ...from });
    const answer = await this.#call(request, options, (abortSignal, observer) => {
      command.middlewareStack.add(observer.middleware, OBSERVER_PLACE);
      return this.#client.send(command, { abortSignal });
    });
    if (answer.refused !== undefined) throw this.#senseless(request, answer.refused);
    const { output, reply } = answer;
    // The SDK takes any page for an empty listing, also that of a portal which wants somebody to log in.
    if (output.IsTruncated === undefined && output.Name === undefined) throw this.#senseless(request, 'no listing: is this an S3 server?');
    const date = reply.headers.date;
    const objects: ListedObject[] = [];
    for (const { Key, ETag, Size, LastModified } of output.Contents ?? []) {
      const key = Key?.startsWith(this.#keyPrefix) ? Key.slice(this.#keyPrefix.length) : '';
      // Consoles mark a folder by an object that is named like the prefix itself.
      if (key === '' || ETag === undefined) continue;
      objects.push({ key, etag: ETag, size: Size ?? 0, age: ageFromListing(date, LastModified) });
    }
    return { objects, storeTime: storeTime(date), more: output.IsTruncated === true, token: output.NextContinuationToken };
  }

  create(key: string, body: string, metadata: Readonly<Record<string, string>>, options?: CallOptions): Promise<WriteResult> {
    return this.#put({ operation: 'create', key }, { ...this.#content(key, body, metadata), IfNoneMatch: '*' }, options);
  }

  replace(
    key: string,
    body: string,
    metadata: Readonly<Record<string, string>>,
    etag: string,
    options?: CallOptions,
  ): Promise<WriteResult> {
    return this.#put({ operation: 'replace', key }, { ...this.#content(key, body, metadata), IfMatch: etag }, options);
  }

  async discardProbe(key: string, options?: CallOptions): Promise<void> {
    if (!key.startsWith('probe-')) {
      throw new StoreError(`${this.url}: ${key} is not a scratch object and is not removed`, { fault: 'rejected', outcome: 'not-applied' });
    }
    const request: Operation = { operation: 'discard', key };
    const command = new DeleteObjectCommand(this.#object(key));
    const answer = await this.#call(request, options, (abortSignal, observer) => {
      command.middlewareStack.add(observer.middleware, OBSERVER_PLACE);
      return this.#client.send(command, { abortSignal });
    });
    if (answer.refused === 'conflict') throw this.#senseless(request, answer.refused);
  }

  async close(): Promise<void> {
    this.#client.destroy();
  }

  async #put(request: Operation, input: ConstructorParameters<typeof PutObjectCommand>[0], options?: CallOptions): Promise<WriteResult> {
    const command = new PutObjectCommand(input);
    const answer = await this.#call(request, options, (abortSignal, observer) => {
      command.middlewareStack.add(observer.middleware, OBSERVER_PLACE);
      return this.#client.send(command, { abortSignal });
    });
    if (answer.refused === 'conflict') return { status: 'conflict' };
    if (answer.refused !== undefined) throw this.#senseless(request, answer.refused);
    return { status: 'written', etag: this.#etag(request, answer.output.ETag), storeTime: storeTime(answer.reply.headers.date) };
  }

  /** One request, bounded in time, unless it has to be signed anew. Resolves with the output, or with the definite answer that came in the form of an error. */
  async #call<Output>(
    request: Operation,
    options: CallOptions | undefined,
    send: (abortSignal: AbortSignal, observer: ReplyObserver) => Promise<Output>,
  ): Promise<{ output: Output; reply: ObservedReply; refused?: undefined } | { refused: 'conflict' | 'absent' }> {
    const signal = options?.signal;
    const late = () => new DOMException(`no answer within ${this.#requestTimeoutMs} ms`, 'TimeoutError');
    const call = timeoutSignal(this.#clock, this.#requestTimeoutMs, late, signal);
    let observer = new ReplyObserver(call.signal);
    try {
      signal?.throwIfAborted();
      // The SDK looks at the signal only once it has credentials, and not while it reads a body: the rest is seen to here.
      const attempt = () => orAborted(send(call.signal, observer), call.signal);
      const output = await attempt().catch((error: unknown) => {
        if (call.signal.aborted || !teachesTime(error, observer)) throw error;
        observer = new ReplyObserver(call.signal);
        return attempt();
      });
      return { output, reply: observer };
    } catch (error) {
      const failed = { ...request, url: this.url, reply: observer };
      if (signal?.aborted) throw givenUp(signal.reason, failed);
      // The reason says more than the SDK's own "request aborted".
      const classified = classifyReply(call.signal.aborted ? call.signal.reason : error, failed);
      if (classified instanceof StoreError) throw classified;
      return { refused: classified };
    } finally {
      call.release();
    }
  }

  #object(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#keyPrefix + key };
  }

  #content(key: string, body: string, metadata: Readonly<Record<string, string>>) {
    // As bytes: the SDK sends an empty string without a length, and complains about it.
    return { ...this.#object(key), Body: Buffer.from(body), ContentType: 'application/json', Metadata: { ...metadata } };
  }

  #etag({ operation, key }: Operation, etag: string | undefined): string {
    if (etag !== undefined && etag !== '') return etag;
    throw this.#senseless({ operation, ...(key === undefined ? {} : { key }) }, 'success without an ETag: is this an S3 server?');
  }

  #senseless({ operation, key }: Operation, answer: string): StoreError {
    const what = `${operation}${key === undefined ? '' : ` ${key}`}`;
    return new StoreError(`${this.url}: ${what}: answered ${answer}`, { fault: 'rejected', outcome: 'unknown' });
  }
}
