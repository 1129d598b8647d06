import { randomUUID } from 'node:crypto';
import type { DescribeTableOutput, DescribeTimeToLiveOutput } from '@aws-sdk/client-dynamodb';
import { checked, having, NAME } from '../../base/arguments.js';
import { fieldOf, textOf } from '../../base/fields.js';
import { storeTime } from '../http-times.js';
import {
  type LeaseStore,
  type Listing,
  type ListingPage,
  type ListOptions,
  type StoreCallOptions,
  type StoredObject,
  StoreError,
  type StoreFact,
  type WriteResult,
} from '../lease-store.js';
import { awsCall, noAnswer, type Observable } from '../s3/aws-call.js';
import type { S3Requests } from '../s3/s3-lease-store.js';
import {
  type ConditionalWrite,
  type ContinuedPage,
  type ObjectStoreOptions,
  StoreDriver,
} from '../store-driver.js';
import { required, type StoreRequest, senseless } from '../store-request.js';
import { classifyReply, type DynamoDbRequest } from './classify-reply.js';
import { tableFacts } from './table-facts.js';

/** The requests that the store makes. */
export type DynamoDbOperation =
  | 'GetItem'
  | 'PutItem'
  | 'Query'
  | 'DeleteItem'
  | 'DescribeTable'
  | 'DescribeTimeToLive';

/** A command of the SDK, by what is used of it: published types do not refer to a package that only some users install. */
export type DynamoDbCommand = Observable;

/** What the store uses of the SDK, and nothing else. */
export interface DynamoDbRequests extends Pick<S3Requests, 'config' | 'awaitedSource' | 'destroy'> {
  command(operation: DynamoDbOperation, input: object): DynamoDbCommand;
  /** Makes one request, and repeats none. Resolves to what the SDK makes of the reply. */
  send(command: DynamoDbCommand, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
}

/** Settings of a {@link DynamoDbLeaseStore}. */
export interface DynamoDbLeaseStoreOptions extends Omit<ObjectStoreOptions, 'prefix'> {
  /** Its partition key is `prefix` and its sort key `object`, both strings. */
  readonly table: string;
  /** Without a slash at either end; not empty. */
  readonly prefix: string;
  readonly client: DynamoDbRequests;
}

/**
 * Leases in a table of DynamoDB: PutItem with `attribute_not_exists` and with the etag. Reads and listings are
 * consistent. The etag is a random text, which no two states of an item share. Every call makes one request and
 * repeats none that may have been applied; only a listing makes one a page, of 1 MB.
 *
 * DynamoDB reports no time of writing, and no condition can compare with its time, so ages are unknown:
 * `observedAge` knows them.
 */
export class DynamoDbLeaseStore extends StoreDriver implements LeaseStore {
  /** The value of the partition key. */
  readonly #partition: string;

  constructor(private readonly options: DynamoDbLeaseStoreOptions) {
    const { table, prefix, endpoint } = checked(options, {
      table: NAME,
      prefix: NAME,
      client: having('a client', 'send'),
    });
    // All locks of a store share a partition, so that one listing shows them.
    const [, partition = prefix, lock = ''] = /^(.+\/locks)\/([^/]+)$/.exec(prefix) ?? [];
    super(`dynamodb://${table}/${prefix}`, lock, endpoint);
    this.#partition = partition;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.request('read', options, key);
    const reply = await this.#call(request, 'GetItem', { Key: this.#keyOf(key), ConsistentRead: true });
    const item = fieldOf(reply?.output, 'Item');
    if (item === undefined) return undefined;
    const metadata = Object.entries(fieldOf(fieldOf(item, 'metadata'), 'M') ?? {});
    return {
      key,
      body: stringOf(item, 'body') ?? '',
      metadata: Object.fromEntries(metadata.map(([name, value]) => [name, textOf(value, 'S') ?? ''])),
      etag: required(request, stringOf(item, 'etag'), 'an etag: has nodelease written this item?'),
      age: { min: 0, max: Number.POSITIVE_INFINITY },
      storeTime: storeTime(reply?.date),
    };
  }

  list(options?: ListOptions): Promise<Listing> {
    return this.allPages((after) => this.#page(after, options));
  }

  async listPage(after: string | undefined, options?: ListOptions): Promise<ListingPage> {
    for (let from = after; ; ) {
      const page = await this.#page(from, options);
      if (page.objects.length > 0 || !page.more) return page;
      from = page.token;
    }
  }

  noAnswer(within: string): string {
    return noAnswer(this.options.client, within);
  }

  /**
   * The id of the table. Another table of its name has another one, such as one that was restored from a backup:
   * the store may have gone back.
   *
   * @returns undefined where the server gives tables no id
   * @throws {StoreError} `denied` without the right to `dynamodb:DescribeTable`
   */
  async epoch(options?: StoreCallOptions): Promise<string | undefined> {
    const reply = await this.#call(this.request('examine', options), 'DescribeTable', {});
    return textOf(fieldOf(reply?.output, 'Table'), 'TableId');
  }

  /** Leases need none of these rights: what may not be looked at is said, and what a stand-in does not know is not. */
  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    const denied: string[] = [];
    const ask = async (operation: DynamoDbOperation) => {
      try {
        return (await this.#call(this.request('examine', options), operation, {}))?.output;
      } catch (error) {
        if (!(error instanceof StoreError) || error.transient) throw error;
        if (error.fault === 'denied') denied.push(`dynamodb:${operation}`);
        return undefined;
      }
    };
    const [table, timeToLive] = await Promise.all([ask('DescribeTable'), ask('DescribeTimeToLive')]);
    return tableFacts(table as DescribeTableOutput, timeToLive as DescribeTimeToLiveOutput, denied);
  }

  async close(): Promise<void> {
    this.options.client.destroy();
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    return this.#call(request, 'DeleteItem', { Key: this.#keyOf(key) });
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag: old }: ConditionalWrite,
  ): Promise<WriteResult> {
    const etag = randomUUID();
    const reply = await this.#call(request, 'PutItem', {
      Item: {
        ...this.#keyOf(key),
        etag: { S: etag },
        body: { S: body },
        metadata: { M: Object.fromEntries(Object.entries(metadata).map(([name, S]) => [name, { S }])) },
        bytes: { N: String(Buffer.byteLength(body)) },
      },
      ...(old === undefined
        ? {
            ConditionExpression: 'attribute_not_exists(#object)',
            ExpressionAttributeNames: { '#object': 'object' },
          }
        : { ConditionExpression: 'etag = :old', ExpressionAttributeValues: { ':old': { S: old } } }),
    });
    if (reply === undefined) return { status: 'conflict' };
    return { status: 'written', etag, storeTime: storeTime(reply.date) };
  }

  /** The page after a key, which its own token is. */
  async #page(after: string | undefined, options: ListOptions | undefined): Promise<ContinuedPage> {
    const request = this.request('list', options);
    const folder = this.keyPrefix;
    const reply = await this.#call(request, 'Query', {
      KeyConditionExpression: `#prefix = :prefix${folder && ' AND begins_with(#object, :folder)'}`,
      ProjectionExpression: '#object, #etag, #bytes',
      // Some of them are words of DynamoDB's expressions.
      ExpressionAttributeNames: {
        '#prefix': 'prefix',
        '#object': 'object',
        '#etag': 'etag',
        '#bytes': 'bytes',
      },
      ExpressionAttributeValues: {
        ':prefix': { S: this.#partition },
        ...(folder && { ':folder': { S: folder } }),
      },
      ExclusiveStartKey: after && this.#keyOf(after),
      ConsistentRead: true,
    });
    const items = fieldOf(reply?.output, 'Items');
    if (!Array.isArray(items)) throw senseless(request, 'no listing: is this DynamoDB?');
    const rows = items.flatMap((item) => {
      const [name = '', etag] = [stringOf(item, 'object'), stringOf(item, 'etag')];
      const isDeeper = name.slice(folder.length).includes('/');
      const size = Number(textOf(fieldOf(item, 'bytes'), 'N'));
      return etag === undefined || (isDeeper && !options?.folders)
        ? []
        : [{ name, etag, size, modified: undefined }];
    });
    const last = stringOf(fieldOf(reply?.output, 'LastEvaluatedKey'), 'object');
    return this.pageOf(reply?.date, rows, last?.slice(folder.length));
  }

  /** One request, limited in time; undefined for a conflict. */
  async #call(request: DynamoDbRequest, operation: DynamoDbOperation, input: object) {
    const { client, table } = this.options;
    const command = client.command(operation, { TableName: table, ...input });
    const send = (abortSignal: AbortSignal) => client.send(command, { abortSignal });
    const answer = await awsCall(this.options, { request, command, send, classifyReply });
    if (typeof answer === 'string') return undefined;
    const { headers } = answer.reply;
    // An empty object is the reply to a write, or to a read of what is absent: any server might send it.
    if (headers['x-amzn-requestid'] === undefined)
      throw senseless(request, 'success without a request id: is this DynamoDB?');
    return { output: answer.output, date: headers.date };
  }

  #keyOf(key: string) {
    return { prefix: { S: this.#partition }, object: { S: this.keyPrefix + key } };
  }
}

/** An attribute of an item that is a text, and not an empty one. */
function stringOf(item: unknown, name: string): string | undefined {
  return textOf(fieldOf(item, name), 'S');
}
