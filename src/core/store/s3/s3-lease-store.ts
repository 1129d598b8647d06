import { checked, having, NAME, TEXT } from '../../base/arguments.js';
import { REQUESTS_AT_ONCE } from '../../base/concurrently.js';
import { type AwsAccount, AwsStoreDriver } from '../aws/aws-store-driver.js';
import { ageFromHeaders, storeTime, timeFromListing } from '../http-times.js';
import type {
  HistoryOptions,
  LeaseStore,
  Listing,
  ListingPage,
  ListOptions,
  PastObject,
  StoreCallOptions,
  StoredObject,
  StoreFact,
  WriteResult,
} from '../lease-store.js';
import type { ConditionalWrite, ContinuedPage, ObjectStoreOptions } from '../store-driver.js';
import { below } from '../store-kind.js';
import { required, type StoreRequest, senseless, withinRequestTime } from '../store-request.js';
import type { ListObjectVersionsCommandInput, ObjectVersion } from './bucket-sdk.js';
import { classifyReply, DIRECTORY_BUCKET } from './classify-reply.js';
import { digestOf } from './digest.js';
import { bucketInEndpoint } from './endpoint.js';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandInput,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from './sdk.js';

/** The requests that the store makes. */
export type S3Command = GetObjectCommand | PutObjectCommand | ListObjectsV2Command | DeleteObjectCommand;

/** What the store uses of the SDK's client, and nothing else. */
export interface S3Requests extends AwsAccount {
  /** Makes the request of one {@link S3Command}. */
  readonly send: S3Client['send'];
}

/** Settings of an {@link S3LeaseStore}. */
export interface S3LeaseStoreOptions extends ObjectStoreOptions {
  readonly bucket: string;
  readonly client: S3Requests;
}

/**
 * Leases in a bucket of S3, or of a server that speaks its API: PutObject with `If-None-Match: *` and
 * `If-Match`. Every call makes one request and none that may have been applied is repeated; only a listing
 * makes one a page. A request that was refused for the time in its signature is made once more, by the
 * server's time: the clock of the host may be off by any amount. So is one whose credentials were refused,
 * where their source has others by now, and, some times, a write that S3 did not judge because of a concurrent
 * one.
 */
export class S3LeaseStore extends AwsStoreDriver implements LeaseStore {
  constructor(private readonly options: S3LeaseStoreOptions) {
    const { bucket, prefix } = checked(options, {
      bucket: NAME,
      prefix: TEXT,
      client: having('a client', 'send'),
    });
    super(`s3://${bucket}${below(prefix)}`, prefix, options);
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.request('read', options, key);
    const answer = await this.#get(request, this.#object(key));
    if (answer === undefined) return undefined;
    const { output, reply } = answer;
    return {
      key,
      body: output.text,
      metadata: output.Metadata ?? {},
      etag: required(request, output.ETag, AN_ETAG),
      age: ageFromHeaders(reply.headers.date, reply.headers['last-modified']),
      storeTime: storeTime(reply.headers.date),
    };
  }

  /** One object, or one of its versions. */
  #get(request: StoreRequest, object: GetObjectCommandInput) {
    const command = new GetObjectCommand(object);
    return this.call(
      request,
      command,
      async (limit) => {
        const output = await this.options.client.send(command, limit);
        return { ...output, text: (await output.Body?.transformToString('utf-8')) ?? '' };
      },
      classifyReply,
    );
  }

  /** The object versions. Of a bucket without versioning these are the objects as they are. */
  async *history(prefix: string, options: HistoryOptions): AsyncGenerator<PastObject> {
    const queue: Promise<readonly PastObject[]>[] = [];
    for await (const version of this.#versions(prefix, options)) {
      const state = this.#stateOf(version, options);
      // One that fails is awaited in its turn, or not at all after another one.
      state.catch(() => undefined);
      if (queue.push(state) === REQUESTS_AT_ONCE) yield* (await queue.shift()) ?? [];
    }
    for (const state of queue) yield* await state;
  }

  async *#versions(prefix: string, { retry, wants, signal }: HistoryOptions): AsyncGenerator<Version> {
    const { ListObjectVersionsCommand } = await import('./bucket-sdk.js');
    const { bucket: Bucket, client } = this.options;
    const request = { ...this.request('list', { signal }), needs: 's3:ListBucketVersions' };
    let input: ListObjectVersionsCommandInput = { Bucket, Prefix: this.keyPrefix + prefix };
    for (let more = true; more; ) {
      const command = new ListObjectVersionsCommand(input);
      const answer = await retry(() =>
        this.call(request, command, (limit) => client.send(command, limit), classifyReply),
      );
      if (answer === undefined) return;
      const { Versions = [], DeleteMarkers = [], IsTruncated, ...next } = answer.output;
      const rows: Version[] = [...Versions];
      // The SDK returns both apart, each with the newest of a key first.
      for (const marker of DeleteMarkers) {
        const at = rows.findIndex((row) => !isBefore(row, marker));
        rows.splice(at < 0 ? rows.length : at, 0, marker);
      }
      yield* rows.filter(({ Key = '' }) => wants(Key.slice(this.keyPrefix.length)));
      more = IsTruncated === true;
      input = { ...input, KeyMarker: next.NextKeyMarker, VersionIdMarker: next.NextVersionIdMarker };
    }
  }

  /** None for a version that is gone by now. */
  async #stateOf(
    { Key = '', VersionId, LastModified, ETag }: Version,
    { retry, signal }: HistoryOptions,
  ): Promise<readonly PastObject[]> {
    const key = Key.slice(this.keyPrefix.length);
    const state = { key, at: timeFromListing(LastModified), kept: VersionId !== UNKEPT };
    if (ETag === undefined) return [{ ...state, written: undefined }];
    const request = { ...this.request('read', { signal }, key), needs: 's3:GetObjectVersion' };
    const answer = await retry(() => this.#get(request, { ...this.#object(key), VersionId }));
    if (answer === undefined) return [];
    const { text: body, Metadata: metadata = {} } = answer.output;
    return [{ ...state, written: { body, metadata } }];
  }

  async list(options?: ListOptions): Promise<Listing> {
    return this.allPages((token) => this.#page({ ContinuationToken: token }, options));
  }

  async listPage(after: string | undefined, options?: ListOptions): Promise<ListingPage> {
    return this.#page({ StartAfter: after === undefined ? undefined : this.keyPrefix + after }, options);
  }

  async #page(
    from: Partial<Record<'ContinuationToken' | 'StartAfter', string | undefined>>,
    options: ListOptions | undefined,
  ): Promise<ContinuedPage> {
    const request = this.request('list', options);
    const command = new ListObjectsV2Command({
      Bucket: this.options.bucket,
      Prefix: this.keyPrefix,
      Delimiter: options?.folders ? undefined : '/',
      ...from,
    });
    const answer = await this.call(
      request,
      command,
      (limit) => this.options.client.send(command, limit),
      classifyReply,
    );
    // The SDK takes any page for an empty listing, also that of a portal which wants a login.
    if (answer?.output.IsTruncated === undefined && answer?.output.Name === undefined) {
      throw senseless(
        request,
        `no listing: ${bucketInEndpoint(this.url, this.options.endpoint) ?? 'is this an S3 server?'}`,
      );
    }
    const { output, reply } = answer;
    const rows = (output.Contents ?? []).map(
      ({ Key: name, ETag: etag, Size: size, LastModified: modified }) => ({ name, etag, size, modified }),
    );
    const page = this.pageOf(reply.headers.date, rows, output.NextContinuationToken);
    return { ...page, more: output.IsTruncated === true };
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag }: ConditionalWrite,
  ): Promise<WriteResult> {
    // As bytes: the SDK sends an empty string without a length, and complains about it.
    const content = Buffer.from(body);
    const command = new PutObjectCommand({
      ...this.#object(key),
      Body: content,
      // S3 refuses objects without one in a bucket with a default retention. Directory buckets take no MD5.
      ...(DIRECTORY_BUCKET.test(this.options.bucket) ? {} : digestOf(content)),
      ContentType: 'application/json',
      Metadata: { ...metadata },
      ...(etag === undefined ? { IfNoneMatch: '*' } : { IfMatch: etag }),
    });
    const answer = await this.call(
      request,
      command,
      (limit) => this.options.client.send(command, limit),
      classifyReply,
    );
    if (answer === undefined) return { status: 'conflict' };
    const { output, reply } = answer;
    return {
      status: 'written',
      etag: required(request, output.ETag, AN_ETAG),
      storeTime: storeTime(reply.headers.date),
    };
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    const command = new DeleteObjectCommand(this.#object(key));
    return this.call(request, command, (limit) => this.options.client.send(command, limit), classifyReply);
  }

  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    const { describeBucket } = await import('./describe-bucket.js');
    const { bucket, client } = this.options;
    return withinRequestTime(this.options, options?.signal, (signal) =>
      describeBucket({ bucket, keyPrefix: this.keyPrefix, client, signal }),
    );
  }

  #object(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.options.bucket, Key: this.keyPrefix + key };
  }
}

/** A version, or a delete marker: that has no ETag. */
type Version = Omit<ObjectVersion, 'Owner' | 'Size' | 'StorageClass'>;

/** What S3 calls a version that was written while the bucket kept none: the next such write replaces it. */
const UNKEPT = 'null';

const isBefore = (row: Version, { Key = '', LastModified }: Version) =>
  row.Key === Key ? Number(row.LastModified) > Number(LastModified) : String(row.Key) < Key;

const AN_ETAG = 'an ETag: is this an S3 server?';
