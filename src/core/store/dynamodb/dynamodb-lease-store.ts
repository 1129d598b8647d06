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
import { type Action, classifyReply, type DynamoDbRequest } from './classify-reply.js';
import { tableFacts } from './table-facts.js';

/** What the replies have. */
type Reply = Sdk.GetItemOutput & Sdk.QueryOutput & Sdk.DescribeTableOutput & Sdk.DescribeTimeToLiveOutput;

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
    const reply = await this.#call(request, 'GetItem', { Key: this.#keyOf(key), ConsistentRead: true });
    if (reply?.output.Item === undefined) return undefined;
    const { body, metadata, etag } = reply.output.Item;
    return {
      key,
      body: body?.S ?? '',
      metadata: Object.fromEntries(Object.entries(metadata?.M ?? {}).map(([name, { S = '' }]) => [name, S])),
      etag: required(request, etag?.S, 'an etag: has nodelease written this item?'),
      age: { min: 0, max: Number.POSITIVE_INFINITY },
      storeTime: storeTime(reply.date),
    };
  }

  list(options?: ListOptions): Promise<Listing> {
    return this.allPages((after) => this.listPage(after, options));
  }

  /** Its token is the last key. */
  async listPage(after: string | undefined, options?: ListOptions): Promise<ContinuedPage> {
    const request = this.request('list', options);
    const folder = this.keyPrefix;
    const reply = await this.#call(request, 'Query', {
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
    const { Items: items, LastEvaluatedKey: last } = reply?.output ?? {};
    if (items === undefined) throw senseless(request, 'no listing: is this DynamoDB?');
    const rows = items.flatMap(({ object, etag, bytes }) => {
      const name = object?.S ?? '';
      const isShown = options?.folders || !name.slice(folder.length).includes('/');
      return etag?.S && isShown ? [{ name, etag: etag.S, size: Number(bytes?.N), modified: undefined }] : [];
    });
    return this.pageOf(reply?.date, rows, last?.object?.S?.slice(folder.length));
  }

  /** The id of the table: a restore makes another table. */
  async epoch(options?: StoreCallOptions): Promise<string> {
    const request = this.request('read', options);
    const reply = await this.#call(request, 'DescribeTable');
    return required(request, reply?.output.Table?.TableId, 'an id of the table: is this DynamoDB?');
  }

  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    const request = this.request('examine', options);
    const [table, timeToLive] = await Promise.all([
      this.#call(request, 'DescribeTable'),
      // No lease needs this right, and not every stand-in knows it.
      this.#call(request, 'DescribeTimeToLive').catch((error: Error) => error),
    ]);
    const expiry = timeToLive instanceof Error ? timeToLive : timeToLive?.output.TimeToLiveDescription;
    return tableFacts(table?.output.Table, expiry);
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
    const reply = await this.#call(request, 'PutItem', {
      Item: { ...this.#keyOf(key), etag: { S: etag }, body: { S: body }, metadata: { M }, bytes },
      ConditionExpression: old === undefined ? 'attribute_not_exists(prefix)' : 'etag = :old',
      ExpressionAttributeValues: old === undefined ? undefined : { ':old': { S: old } },
    });
    return reply === undefined
      ? { status: 'conflict' }
      : { status: 'written', etag, storeTime: storeTime(reply.date) };
  }

  /** One request, limited in time; undefined for a conflict. */
  async #call(request: DynamoDbRequest, action: Action, input: object = {}) {
    const Command = this.sdk[`${action}Command`] as new (input: object) => Sdk.GetItemCommand;
    const command = new Command({ TableName: this.options.table, ...input });
    const answer = await this.call(
      request,
      command,
      (limit): Promise<Reply> => this.client.send(command, limit),
      classifyReply.bind(undefined, action),
    );
    if (answer === undefined) return undefined;
    const { headers } = answer.reply;
    // An empty object is the reply to a write, or to a read of what is absent: any server might send it.
    if (!headers['x-amzn-requestid'])
      throw senseless(request, 'success without a request id: is this DynamoDB?');
    return { output: answer.output, date: headers.date };
  }

  #keyOf(key: string) {
    return { prefix: { S: this.#partition }, object: { S: this.keyPrefix + key } };
  }
}
