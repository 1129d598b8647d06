import { randomUUID } from 'node:crypto';
import type * as Sdk from '@aws-sdk/client-dynamodb';
import { repeatCredentials } from '../aws/aws-client.js';
import { AwsStoreDriver } from '../aws/aws-store-driver.js';
import { storeTime } from '../http-times.js';
import type {
  LeaseStore,
  Listing,
  ListOptions,
  StoreCallOptions,
  StoredObject,
  StoreFact,
  WriteResult,
} from '../lease-store.js';
import type { ConditionalWrite, ContinuedPage, ObjectStoreOptions } from '../store-driver.js';
import { required, type StoreRequest, senseless } from '../store-request.js';
import { classifyReply } from './classify-reply.js';
import { tableFacts } from './table-facts.js';

/** What is asked of DynamoDB. Each is a permission, too. */
type Action = 'GetItem' | 'PutItem' | 'Query' | 'DeleteItem' | 'DescribeTable' | 'DescribeTimeToLive';

/** What the replies have. */
type Reply = Sdk.GetItemOutput &
  Sdk.QueryOutput &
  Sdk.DescribeTableOutput &
  Sdk.DescribeTimeToLiveOutput & {
    /** The header. */
    readonly date?: string | undefined;
    readonly isConflict?: true;
  };

/**
 * Leases in a table of DynamoDB: PutItem with `attribute_not_exists` and with the etag. Reads and listings are
 * consistent. The etag is a random text, which no two states of an item share. Every call makes one request and
 * repeats none that may have been applied; only a listing makes one a page, of 1 MB.
 *
 * DynamoDB reports no time of writing, and no condition can compare with its time, so ages are unknown:
 * `observedAge` knows them.
 */
export class DynamoDbLeaseStore extends AwsStoreDriver implements LeaseStore {
  /** The value of the partition key. */
  readonly #partition: string;

  constructor(
    url: string,
    private readonly options: ObjectStoreOptions & { readonly table: string },
    private readonly sdk: typeof Sdk,
    private readonly client: Sdk.DynamoDBClient,
  ) {
    // All locks of a store share a partition, so that one listing shows them.
    const [, partition = options.prefix, lock = ''] =
      /^((?:.+\/)?locks)\/([^/]+)$/.exec(options.prefix) ?? [];
    super(url, lock, { ...options, client: repeatCredentials(client, options.clock) });
    this.#partition = partition;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.request('read', options, key);
    const input = { Key: this.#keyOf(key), ConsistentRead: true };
    const { Item, date } = await this.#call(request, 'GetItem', input);
    if (Item === undefined) return undefined;
    const { body, metadata, etag } = Item;
    return {
      key,
      body: body?.S ?? '',
      metadata: Object.fromEntries(Object.entries(metadata?.M ?? {}).map(([name, { S = '' }]) => [name, S])),
      etag: required(request, etag?.S, 'an etag: has nodelease written this item?'),
      age: { min: 0, max: Number.POSITIVE_INFINITY },
      storeTime: storeTime(date),
    };
  }

  list(options?: ListOptions): Promise<Listing> {
    return this.allPages((after) => this.listPage(after, options));
  }

  /** Its token is the last key. */
  async listPage(after: string | undefined, options?: ListOptions): Promise<ContinuedPage> {
    const request = this.request('list', options);
    const folder = this.keyPrefix;
    const { Items, LastEvaluatedKey, date } = await this.#call(request, 'Query', {
      KeyConditionExpression: `prefix = :prefix${folder && ' AND begins_with(#object, :folder)'}`,
      ProjectionExpression: '#object, etag, bytes',
      ExpressionAttributeNames: { '#object': 'object' },
      ExpressionAttributeValues: {
        ':prefix': { S: this.#partition },
        ...(folder && { ':folder': { S: folder } }),
      },
      ExclusiveStartKey: after && this.#keyOf(after),
      ConsistentRead: true,
    });
    if (Items === undefined) throw senseless(request, 'no listing: is this DynamoDB?');
    const rows = Items.map(({ object, etag, bytes }) => ({
      name: object?.S,
      etag: etag?.S,
      size: Number(bytes?.N),
    })).filter(({ name = '' }) => options?.folders || !name.includes('/', folder.length));
    return this.pageOf(date, rows, LastEvaluatedKey?.object?.S?.slice(folder.length));
  }

  /** The id of the table: a restore makes another table. */
  async epoch(options?: StoreCallOptions): Promise<string> {
    const request = this.request('read', options);
    const { Table } = await this.#call(request, 'DescribeTable');
    return required(request, Table?.TableId, 'an id of the table: is this DynamoDB?');
  }

  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    const request = this.request('examine', options);
    const { Table } = await this.#call(request, 'DescribeTable');
    // No lease needs this right, and not every stand-in knows it.
    const timeToLive = await this.#call(request, 'DescribeTimeToLive').catch((error: Error) => error);
    return tableFacts(Table, timeToLive instanceof Error ? timeToLive : timeToLive.TimeToLiveDescription);
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    return this.#call(request, 'DeleteItem', { Key: this.#keyOf(key) });
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag: old }: ConditionalWrite,
  ): Promise<WriteResult> {
    const etag = randomUUID();
    const M = Object.fromEntries(Object.entries(metadata).map(([name, S]) => [name, { S }]));
    const bytes = { N: String(Buffer.byteLength(body)) };
    const { date, isConflict } = await this.#call(request, 'PutItem', {
      Item: { ...this.#keyOf(key), etag: { S: etag }, body: { S: body }, metadata: { M }, bytes },
      ConditionExpression: old === undefined ? 'attribute_not_exists(prefix)' : 'etag = :old',
      ExpressionAttributeValues: old === undefined ? undefined : { ':old': { S: old } },
    });
    return isConflict ? { status: 'conflict' } : { status: 'written', etag, storeTime: storeTime(date) };
  }

  /** One request, limited in time. */
  async #call(request: StoreRequest, action: Action, input: object = {}): Promise<Reply> {
    const Command = this.sdk[`${action}Command`] as new (input: object) => Sdk.GetItemCommand;
    const command = new Command({ TableName: this.options.table, ...input });
    const answer = await this.call(
      { ...request, needs: `dynamodb:${action}` },
      command,
      (limit) => this.client.send(command, limit),
      classifyReply,
    );
    if (answer === undefined) return { isConflict: true };
    const { date, 'x-amzn-requestid': id } = answer.reply.headers;
    // An empty object is the reply to a write, or to a read of what is absent: any server might send it.
    required(request, id, 'a request id: is this DynamoDB?');
    return { ...answer.output, date };
  }

  #keyOf(key: string) {
    return { prefix: { S: this.#partition }, object: { S: this.keyPrefix + key } };
  }
}
