import { orAborted, timeoutSignal } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { textOf } from '../connection-failure.js';
import { ageFromHeaders, ageFromListing } from '../http-age.js';
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
import { checkScratch, type StoreRequest, senseless } from '../store-request.js';
import { classifyReply, givenUp, refusesCredentials, teachesTime } from './classify-reply.js';
import { OBSERVER_PLACE, type ObservedReply, ReplyObserver } from './reply.js';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from './sdk.js';

/** The requests that the store makes. */
export type S3Command = GetObjectCommand | PutObjectCommand | ListObjectsV2Command | DeleteObjectCommand;

/** What the store uses of the SDK's client, and nothing else. */
export interface S3Requests {
  /** Makes the request of one {@link S3Command}. */
  readonly send: S3Client['send'];
  /** Its credentials. With `forceRefresh` their source is asked again. */
  readonly config?: Pick<S3Client['config'], 'credentials'>;
  /** Closes its connections. */
  destroy(): void;
}

/** Settings of an {@link S3LeaseStore}. */
export interface S3LeaseStoreOptions {
  readonly bucket: string;
  /** Without a slash at either end; empty for the whole bucket. */
  readonly prefix: string;
  readonly client: S3Requests;
  readonly clock: Clock;
  /**
   * How long one request may take in all, credentials and the body of the reply included, in milliseconds. A
   * listing makes one request a page.
   */
  readonly requestTimeoutMs: number;
  /** See {@link LeaseStore.pollMs}, in milliseconds. @default 1200 */
  readonly pollMs?: number | undefined;
}

/** A command, as far as watching its reply goes. */
interface Observable {
  readonly middlewareStack: {
    add(middleware: ReplyObserver['middleware'], place: typeof OBSERVER_PLACE): void;
  };
}

/** A reply, or the definite answer that came in the form of an error. */
type Answer<Output> = { readonly output: Output; readonly reply: ObservedReply } | 'conflict' | 'absent';

/**
 * Leases in a bucket of S3, or of a server that speaks its API: PutObject with `If-None-Match: *` and
 * `If-Match`. Every call makes one request and none that may have been applied is repeated; only a listing
 * makes one a page. A request that was refused for the time in its signature is made once more, by the
 * server's time: the clock of the host may be off by any amount. So is one whose credentials were refused,
 * where their source has others by now.
 */
export class S3LeaseStore implements LeaseStore {
  readonly url: string;
  readonly remote = true;
  readonly pollMs: number;
  readonly timeStepMs = 1_000;
  readonly #keyPrefix: string;

  constructor(private readonly options: S3LeaseStoreOptions) {
    const { bucket, prefix, pollMs = 1200 } = options;
    this.#keyPrefix = prefix === '' ? '' : `${prefix}/`;
    this.url = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
    this.pollMs = pollMs;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.#request('read', key);
    const command = new GetObjectCommand(this.#object(key));
    const answer = await this.#call(request, options, command, async (abortSignal) => {
      const output = await this.options.client.send(command, { abortSignal });
      return { ...output, text: (await output.Body?.transformToString('utf-8')) ?? '' };
    });
    if (typeof answer === 'string') return undefined;
    const { output, reply } = answer;
    return {
      key,
      body: output.text,
      metadata: output.Metadata ?? {},
      etag: etagOf(request, output.ETag),
      age: ageFromHeaders(reply.headers.date, reply.headers['last-modified']),
      storeTime: storeTime(reply.headers.date),
    };
  }

  async list(options?: StoreCallOptions): Promise<Listing> {
    return allPages(this.#request('list'), (token) => this.#page({ ContinuationToken: token }, options));
  }

  async listPage(
    after: string | undefined,
    options?: StoreCallOptions & { readonly folders?: boolean | undefined },
  ): Promise<ListingPage> {
    const from = { StartAfter: after === undefined ? undefined : this.#keyPrefix + after };
    const { token: _, ...page } = await this.#page(
      { ...from, ...(options?.folders && { Delimiter: undefined }) },
      options,
    );
    return page;
  }

  async #page(
    from: Partial<Record<'ContinuationToken' | 'StartAfter' | 'Delimiter', string | undefined>>,
    options: StoreCallOptions | undefined,
  ): Promise<ContinuedPage> {
    const request = this.#request('list');
    const command = new ListObjectsV2Command({
      Bucket: this.options.bucket,
      Prefix: this.#keyPrefix,
      Delimiter: '/',
      ...from,
    });
    const answer = await this.#call(request, options, command, (abortSignal) =>
      this.options.client.send(command, { abortSignal }),
    );
    // The SDK takes any page for an empty listing, also that of a portal which wants a login.
    if (
      typeof answer === 'string' ||
      (answer.output.IsTruncated === undefined && answer.output.Name === undefined)
    ) {
      throw senseless(request, 'no listing: is this an S3 server?');
    }
    const { output, reply } = answer;
    const date = reply.headers.date;
    const objects = (output.Contents ?? []).flatMap(({ Key, ETag, Size, LastModified }) => {
      const key = Key?.startsWith(this.#keyPrefix) ? Key.slice(this.#keyPrefix.length) : '';
      // Consoles mark a folder by an object that is named like the prefix itself.
      return key === '' || ETag === undefined
        ? []
        : [{ key, etag: ETag, size: Size ?? 0, age: ageFromListing(date, LastModified) }];
    });
    return {
      objects,
      storeTime: storeTime(date),
      more: output.IsTruncated === true,
      token: output.NextContinuationToken,
    };
  }

  create(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    return this.#put(
      this.#request('create', key),
      { ...this.#content(key, body, metadata), IfNoneMatch: '*' },
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
    return this.#put(
      this.#request('replace', key),
      { ...this.#content(key, body, metadata), IfMatch: etag },
      options,
    );
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    checkScratch(this.url, key);
    const command = new DeleteObjectCommand(this.#object(key));
    await this.#call(this.#request('discard', key), options, command, (abortSignal) =>
      this.options.client.send(command, { abortSignal }),
    );
  }

  async close(): Promise<void> {
    this.options.client.destroy();
  }

  async #put(
    request: StoreRequest,
    input: ConstructorParameters<typeof PutObjectCommand>[0],
    options?: StoreCallOptions,
  ): Promise<WriteResult> {
    const command = new PutObjectCommand(input);
    const answer = await this.#call(request, options, command, (abortSignal) =>
      this.options.client.send(command, { abortSignal }),
    );
    if (typeof answer === 'string') return { status: 'conflict' };
    return {
      status: 'written',
      etag: etagOf(request, answer.output.ETag),
      storeTime: storeTime(answer.reply.headers.date),
    };
  }

  /** One request, bounded in time, unless it has to be signed anew. */
  async #call<Output>(
    request: StoreRequest,
    options: StoreCallOptions | undefined,
    command: Observable,
    send: (abortSignal: AbortSignal) => Promise<Output>,
  ): Promise<Answer<Output>> {
    const signal = options?.signal;
    const late = () =>
      new DOMException(`no answer within ${this.options.requestTimeoutMs} ms`, 'TimeoutError');
    const call = timeoutSignal(this.options.clock, this.options.requestTimeoutMs, late, signal);
    let reply = new ReplyObserver(call.signal);
    // The SDK looks at the signal only once it has credentials, and not while it reads a body: the rest is
    // seen to here.
    const attempt = () => {
      command.middlewareStack.add(reply.middleware, OBSERVER_PLACE);
      return orAborted(send(call.signal), call.signal);
    };
    try {
      signal?.throwIfAborted();
      const output = await attempt().catch(async (error: unknown) => {
        const isAnother =
          !call.signal.aborted &&
          (teachesTime(error, reply) || (await this.#hasNewCredentials(error, reply, call.signal)));
        if (!isAnother) throw error;
        reply = new ReplyObserver(call.signal);
        return attempt();
      });
      return { output, reply };
    } catch (error) {
      if (signal?.aborted) throw givenUp(signal.reason, { ...request, reply });
      // The reason says more than the SDK's own "request aborted", and less than an answer of the store.
      const isCutOff = call.signal.aborted && textOf(error, 'Code') === undefined;
      const classified = classifyReply(isCutOff ? call.signal.reason : error, { ...request, reply });
      if (classified instanceof StoreError) throw classified;
      return classified;
    } finally {
      call.release();
    }
  }

  /**
   * Where the credentials of a request were refused, asks their source again, such as a file that may have
   * been rewritten.
   */
  async #hasNewCredentials(
    error: unknown,
    { signedBy }: ObservedReply,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { config } = this.options.client;
    if (config === undefined || !refusesCredentials(error)) return false;
    try {
      const { accessKeyId } = await orAborted(config.credentials({ forceRefresh: true }), signal);
      return accessKeyId !== signedBy;
    } catch {
      // The store's refusal says more.
      return false;
    }
  }

  #request(operation: StoreRequest['operation'], key?: string): StoreRequest {
    return { operation, url: this.url, ...(key !== undefined && { key }) };
  }

  #object(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.options.bucket, Key: this.#keyPrefix + key };
  }

  #content(key: string, body: string, metadata: ObjectMetadata) {
    // As bytes: the SDK sends an empty string without a length, and complains about it.
    return {
      ...this.#object(key),
      Body: Buffer.from(body),
      ContentType: 'application/json',
      Metadata: { ...metadata },
    };
  }
}

function etagOf(request: StoreRequest, etag: string | undefined): string {
  if (etag !== undefined && etag !== '') return etag;
  throw senseless(request, 'success without an ETag: is this an S3 server?');
}
