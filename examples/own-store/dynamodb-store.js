// Leases in a table of DynamoDB: partition key `cluster`, sort key `name`, both texts.

import { randomUUID } from 'node:crypto';
import {
  ConditionalCheckFailedException,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
} from '@aws-sdk/client-dynamodb';
import { StoreError, systemClock } from 'nodelease';
import { observedAge } from 'nodelease/store';

/**
 * Opens a store. DynamoDB reports no time of writing, so ages are observed: keep what this returns for as long as the process waits for leases.
 *
 * @param {{ table: string, cluster: string, endpoint?: string }} place
 * @returns {import('nodelease').LeaseStore}
 */
export function dynamoDbStore(place) {
  return observedAge(new DynamoDbStore(place), systemClock);
}

/** The store does not report ages. */
const UNKNOWN_AGE = { min: 0, max: Number.POSITIVE_INFINITY };
/** A write whose reply was lost is not repeated: the engine reads back what became of it. */
const NO_RETRIES = { maxAttempts: 1 };
const NOT_APPLIED = new Set([
  'ThrottlingException',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
]);
const DENIED =
  /^(AccessDenied|UnrecognizedClient|ExpiredToken|InvalidSignature|MissingAuthenticationToken|CredentialsProviderError)/;

class DynamoDbStore {
  remote = true;
  timeStepMs = 1_000;
  #client;
  #table;
  #cluster;

  constructor({ table, cluster, endpoint }) {
    this.url = `dynamodb://${table}/${cluster}`;
    this.#table = table;
    this.#cluster = cluster;
    this.#client = new DynamoDBClient({ ...NO_RETRIES, ...(endpoint && { endpoint }) });
    // The SDK does not show the headers, and the store's time is one of them.
    const keepDate = (next) => async (request) => {
      const result = await next(request);
      result.output.date = result.response.headers.date;
      return result;
    };
    this.#client.middlewareStack.add(keepDate, { step: 'deserialize', priority: 'high' });
  }

  async read(name, options) {
    const { Item: item, date } = await this.#send(
      new GetItemCommand({ ...this.#at(name), ConsistentRead: true }),
      options,
    );
    if (item === undefined) return undefined;
    const metadata = Object.fromEntries(Object.entries(item.metadata.M).map(([key, { S }]) => [key, S]));
    return {
      key: name,
      body: item.body.S,
      metadata,
      etag: item.etag.S,
      age: UNKNOWN_AGE,
      storeTime: timeOf(date),
    };
  }

  async list(options) {
    const objects = [];
    let storeTime;
    for (let after, more = true; more; more = after !== undefined) {
      const query = new QueryCommand({
        TableName: this.#table,
        KeyConditionExpression: '#cluster = :cluster',
        ProjectionExpression: '#name, #etag, #size',
        ExpressionAttributeNames: {
          '#cluster': 'cluster',
          '#name': 'name',
          '#etag': 'etag',
          '#size': 'size',
        },
        ExpressionAttributeValues: { ':cluster': { S: this.#cluster } },
        ConsistentRead: true,
        ExclusiveStartKey: after,
      });
      const page = await this.#send(query, options);
      after = page.LastEvaluatedKey;
      storeTime ??= timeOf(page.date);
      for (const { name, etag, size } of page.Items)
        objects.push({ key: name.S, etag: etag.S, size: Number(size.N), age: UNKNOWN_AGE });
    }
    return { objects, storeTime };
  }

  create(name, body, metadata, options) {
    const condition = {
      ConditionExpression: 'attribute_not_exists(#name)',
      ExpressionAttributeNames: { '#name': 'name' },
    };
    return this.#put(name, body, metadata, condition, options);
  }

  replace(name, body, metadata, etag, options) {
    const condition = {
      ConditionExpression: '#etag = :etag',
      ExpressionAttributeNames: { '#etag': 'etag' },
      ExpressionAttributeValues: { ':etag': { S: etag } },
    };
    return this.#put(name, body, metadata, condition, options);
  }

  async discardProbe(name, options) {
    if (!name.startsWith('probe-')) {
      throw new StoreError(`${this.url}: ${name} is not a scratch object of a probe`, {
        fault: 'rejected',
        outcome: 'not-applied',
      });
    }
    await this.#send(new DeleteItemCommand(this.#at(name)), options);
  }

  async close() {
    this.#client.destroy();
  }

  async #put(name, body, metadata, condition, options) {
    // A new one for each write, so that none ever comes back: the observed age rests on it.
    const etag = randomUUID();
    const texts = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, { S: value }]));
    const { TableName, Key } = this.#at(name);
    const Item = {
      ...Key,
      body: { S: body },
      metadata: { M: texts },
      etag: { S: etag },
      size: { N: String(Buffer.byteLength(body)) },
    };
    try {
      const { date } = await this.#send(new PutItemCommand({ TableName, Item, ...condition }), options);
      return { status: 'written', etag, storeTime: timeOf(date) };
    } catch (error) {
      if (error.cause instanceof ConditionalCheckFailedException) return { status: 'conflict' };
      throw error;
    }
  }

  #at(name) {
    return { TableName: this.#table, Key: { cluster: { S: this.#cluster }, name: { S: name } } };
  }

  async #send(command, { signal } = {}) {
    signal?.throwIfAborted();
    try {
      return await this.#client.send(command, { abortSignal: signal });
    } catch (cause) {
      throw new StoreError(`${this.url}: ${cause.message}`, { ...judged(cause), cause });
    }
  }
}

/** What a failure means: `unknown` unless it is certain that nothing was written. */
function judged({ name, $metadata }) {
  const status = $metadata?.httpStatusCode;
  if (DENIED.test(name)) return { fault: 'denied', outcome: 'not-applied' };
  if (NOT_APPLIED.has(name)) return { fault: 'unavailable', outcome: 'not-applied' };
  if (name === 'ResourceNotFoundException') return { fault: 'missing', outcome: 'not-applied' };
  if (status === undefined) return { fault: 'unreachable', outcome: 'unknown' };
  return status >= 500
    ? { fault: 'unavailable', outcome: 'unknown' }
    : { fault: 'rejected', outcome: 'not-applied' };
}

/** `Date` is cut to whole seconds. */
function timeOf(date) {
  const min = Date.parse(date);
  return { min, max: min + 1_000 };
}
