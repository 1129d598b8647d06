import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../base/system.js';
import type { LeaseStore } from '../lease-store.js';
import { openDynamoDbStore } from './open-dynamodb-store.js';

/** A reply as the test wants it, whatever the request is. */
interface Reply {
  readonly status?: number;
  /** An exception of DynamoDB's. */
  readonly exception?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** After the head, and half of the body; or before. */
  readonly cut?: 'body' | 'all';
}

let server: Server;
let endpoint: string;
let replies: Reply[];
/** Those to all requests of an operation. */
let answers: Record<string, Reply>;
/** What was asked: the operation, with its input. */
let asked: { operation: string; input: Record<string, unknown>; signedAt: string }[];
const stores: LeaseStore[] = [];

function answer(response: ServerResponse, { status = 200, exception, body = {}, headers, cut }: Reply): void {
  if (cut === 'all') return void response.destroy();
  const __type = `com.amazonaws.dynamodb.v20120810#${exception}`;
  const content = exception === undefined ? body : { __type, message: 'Why not.' };
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  const kind = { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': '1', ...headers };
  response.writeHead(exception === undefined ? status : status === 200 ? 400 : status, {
    ...kind,
    'content-length': Buffer.byteLength(text) + (cut ? 10 : 0),
  });
  if (cut === 'body') response.write(text, () => response.destroy());
  else response.end(text);
}

beforeEach(async () => {
  [replies, answers, asked] = [[], {}, []];
  server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    const chunks = (await request.toArray()) as Buffer[];
    const operation = String(request.headers['x-amz-target']).replace(/^.*\./, '');
    const input = JSON.parse(Buffer.concat(chunks).toString());
    asked.push({ operation, input, signedAt: String(request.headers['x-amz-date']) });
    const next = answers[operation] ?? replies.shift();
    if (next !== undefined) answer(response, next);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  for (const name of ['AWS_PROFILE', 'HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy'])
    vi.stubEnv(name, '');
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  server.closeAllConnections();
  server.close();
  vi.unstubAllEnvs();
});

async function open(prefix = 'p', requestTimeoutMs = 5_000): Promise<LeaseStore> {
  const store = await openDynamoDbStore({
    ...{ table: 'leases', prefix, endpoint, region: 'eu-west-1' },
    ...{ clock: systemClock, requestTimeoutMs },
  });
  stores.push(store);
  return store;
}

const CALLS = {
  read: (store: LeaseStore) => store.read('0.json'),
  list: (store: LeaseStore) => store.list(),
  create: (store: LeaseStore) => store.create('0.json', 'x', {}),
  replace: (store: LeaseStore) => store.replace('0.json', 'x', {}, 'old'),
  discard: (store: LeaseStore) => store.discardProbe('probe-0'),
} as const;

/** What becomes of a call that is answered like this. */
async function outcome(operation: keyof typeof CALLS, ...given: Reply[]): Promise<unknown> {
  replies.push(...given);
  try {
    return await CALLS[operation](await open());
  } catch (error) {
    const { fault, outcome, message } = error as { fault: string; outcome: string; message: string };
    return `${fault}, ${outcome}: ${message}`;
  }
}

describe('an exception of DynamoDB', () => {
  it.each([
    ['create', 'ConditionalCheckFailedException'],
    ['replace', 'ConditionalCheckFailedException'],
    ['replace', 'TransactionConflictException'],
    ['replace', 'ReplicatedWriteConflictException'],
  ] as const)('to %s is a conflict: %s', async (operation, exception) => {
    expect(await outcome(operation, { exception })).toEqual({ status: 'conflict' });
  });

  const refused = 'refused (HTTP 400, ValidationException: Why not.)';
  it.each([
    ['discard', 'TransactionConflictException', 'unavailable', 'removing probe-0: answered HTTP 400, Trans'],
    ['create', 'ProvisionedThroughputExceededException', 'unavailable', 'creating 0.json: answered HTTP 400'],
    ['read', 'ThrottlingException', 'unavailable', 'reading 0.json: answered HTTP 400, Throttling'],
    ['list', 'RequestLimitExceeded', 'unavailable', 'listing: answered HTTP 400, RequestLimitExceeded: Why'],
    [
      'list',
      'ResourceNotFoundException',
      'missing',
      'table does not exist, in this region and account, or is not active yet',
    ],
    [
      ...['replace', 'AccessDeniedException', 'denied'],
      'replacing 0.json: access denied (AccessDeniedException, needs dynamodb:PutItem): Why not.',
    ],
    ['list', 'AccessDeniedException', 'denied', '(AccessDeniedException, needs dynamodb:Query)'],
    [
      'read',
      'UnrecognizedClientException',
      'denied',
      'access denied (UnrecognizedClientException): Why not.',
    ],
    ['read', 'ExpiredTokenException', 'denied', 'access denied (ExpiredTokenException)'],
    ['read', 'InvalidSignatureException', 'denied', 'access denied (InvalidSignatureException): Why not.'],
    ['read', 'MissingAuthenticationTokenException', 'denied', 'access denied'],
    ['create', 'ValidationException', 'rejected', `creating 0.json: ${refused}`],
    ['read', 'ValidationException', 'rejected', `${refused}: is its partition key prefix, and its sort key`],
    ['read', 'UnknownOperationException', 'rejected', 'refused (HTTP 400, UnknownOperationException: Why'],
    ['create', 'ItemCollectionSizeLimitExceededException', 'rejected', 'creating 0.json: refused'],
  ] as const)('to %s says that nothing was written: %s', async (operation, exception, fault, said) => {
    const text = await outcome(operation, { exception });
    expect(text).toMatch(new RegExp(`^${fault}, not-applied: dynamodb://leases/p: `));
    expect(text).toContain(said);
    // The SDK repeats none of them.
    expect(asked).toHaveLength(1);
  });
});

describe('of a write, nothing is known', () => {
  const html = { body: '<html>busy</html>', headers: { 'content-type': 'text/html' } };
  it.each<readonly [string, Reply, string, string]>([
    ['a reply that was cut', { body: { a: 'b' }, cut: 'body' }, 'unreachable', 'connection lost: aborted'],
    ['no reply', { cut: 'all' }, 'unreachable', 'connection lost: socket hang up'],
    ['a page with status 200', html, 'rejected', 'answered HTTP 200, but not as DynamoDB does'],
    ['a page with status 404', { ...html, status: 404 }, 'rejected', 'answered HTTP 404, but not as'],
    ['a page with status 503', { ...html, status: 503 }, 'unavailable', 'answered HTTP 503'],
    [
      ...(['an error of a gateway', { status: 403, body: { message: 'Forbidden' } }, 'rejected'] as const),
      'but not as DynamoDB does',
    ],
    [
      'an error with a code',
      { status: 403, body: { code: 'FORBIDDEN' } },
      'rejected',
      'but not as DynamoDB does',
    ],
    ['an empty object of another server', { headers: { 'x-amzn-requestid': '' } }, 'rejected', 'request id'],
    ['InternalServerError', { exception: 'InternalServerError', status: 500 }, 'unavailable', 'HTTP 500, In'],
    ['ServiceUnavailable', { exception: 'ServiceUnavailable', status: 503 }, 'unavailable', 'HTTP 503'],
    ['a refusal with 5xx', { exception: 'ThrottlingException', status: 500 }, 'unavailable', 'HTTP 500'],
  ])('after %s', async (_, reply, fault, said) => {
    const text = await outcome('replace', reply, reply);
    expect(text).toMatch(new RegExp(`^${fault}, unknown: dynamodb://leases/p: replacing 0\\.json: `));
    expect(text).toContain(said);
    expect(asked).toHaveLength(1);
  });

  it('when the time is over', async () => {
    const store = await open('p', 50);
    await expect(store.create('0.json', 'x', {})).rejects.toMatchObject({
      fault: 'unreachable',
      outcome: 'unknown',
      message: 'dynamodb://leases/p: creating 0.json: no answer within 50 ms',
    });
  });

  it('unless no server was reached', async () => {
    server.close();
    await once(server, 'close');
    expect(await outcome('create')).toContain(
      `unreachable, not-applied: dynamodb://leases/p: creating 0.json: endpoint ${endpoint}: cannot connect`,
    );
  });
});

describe('access to DynamoDB', () => {
  const hours = { date: new Date(Date.parse('2001-01-01T00:00:00Z')).toUTCString() };
  const late = { exception: 'InvalidSignatureException', headers: hours };

  it('signs once more, by the server’s time, where the clock of this host is wrong', async () => {
    expect(await outcome('create', late, {})).toMatchObject({ status: 'written' });
    expect(asked.map(({ signedAt }) => signedAt.slice(0, 4))).toEqual([
      expect.not.stringMatching('2001'),
      '2001',
    ]);
  });

  it('says that the clock is wrong where that does not help', async () => {
    const other = { ...late, headers: { date: new Date(Date.parse('2011-01-01T00:00:00Z')).toUTCString() } };
    expect(await outcome('create', late, other)).toMatch(
      /access denied \(InvalidSignatureException\): the clock of this host is wrong$/,
    );
  });

  it('names the sources of credentials where there are none', async () => {
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, '');
    for (const name of ['AWS_CONFIG_FILE', 'AWS_SHARED_CREDENTIALS_FILE']) vi.stubEnv(name, '/nonexistent');
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    expect(await outcome('read')).toContain(
      'denied, not-applied: dynamodb://leases/p: reading 0.json: no AWS credentials found (give the task a role',
    );
  });

  it('finds the server of AWS_ENDPOINT_URL_DYNAMODB, and needs no region then', async () => {
    for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION']) vi.stubEnv(name, '');
    for (const name of ['AWS_CONFIG_FILE', 'AWS_SHARED_CREDENTIALS_FILE']) vi.stubEnv(name, '/nonexistent');
    const options = { table: 'leases', prefix: 'p', clock: systemClock, requestTimeoutMs: 5_000 };
    await expect(openDynamoDbStore(options)).rejects.toThrow('region: expected the region of the store');
    vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', endpoint);
    const store = await openDynamoDbStore(options);
    stores.push(store);
    replies.push({});
    expect(await store.read('0.json')).toBeUndefined();
  });
});

describe('the items of a store', () => {
  const keyOf = (prefix: string, object: string) => ({ prefix: { S: prefix }, object: { S: object } });

  it('are read and listed consistently, one partition for each prefix', async () => {
    const store = await open('prod/orders');
    replies.push({}, { body: { Items: [] } });
    await store.read('7.json');
    await store.list();
    expect(asked).toMatchObject([
      { operation: 'GetItem', input: { Key: keyOf('prod/orders', '7.json'), ConsistentRead: true } },
      {
        operation: 'Query',
        input: {
          TableName: 'leases',
          ConsistentRead: true,
          KeyConditionExpression: 'prefix = :prefix',
          ExpressionAttributeValues: { ':prefix': { S: 'prod/orders' } },
        },
      },
    ]);
  });

  it('of all locks are one partition, so that one listing shows them', async () => {
    const row = (object: string) => ({ object: { S: object }, etag: { S: 'e' }, bytes: { N: '7' } });
    const Items = [row('day/0.json'), row('night/0.json'), row('store.json')];
    const [lock, locks] = [await open('p/locks/night'), await open('p/locks')];
    replies.push({}, { body: { Items: [row('night/0.json')] } }, { body: { Items } }, { body: { Items } });
    await lock.read('0.json');
    expect((await lock.list()).objects).toMatchObject([{ key: '0.json', size: 7 }]);
    const shown = async (folders: boolean) => (await locks.list({ folders })).objects.map(({ key }) => key);
    expect(await shown(true)).toEqual(['day/0.json', 'night/0.json', 'store.json']);
    expect(await shown(false)).toEqual(['store.json']);
    expect(asked).toMatchObject([
      { input: { Key: keyOf('p/locks', 'night/0.json') } },
      {
        input: {
          KeyConditionExpression: 'prefix = :prefix AND begins_with(#object, :folder)',
          ExpressionAttributeValues: { ':prefix': { S: 'p/locks' }, ':folder': { S: 'night/' } },
        },
      },
      { input: { ExpressionAttributeValues: { ':prefix': { S: 'p/locks' } } } },
      {},
    ]);
  });

  it('are listed in as many requests as there are pages', async () => {
    const page = (object: string, isLast = false) => ({
      body: {
        Items: [{ object: { S: object }, etag: { S: 'e' }, bytes: { N: '1' } }],
        ...(!isLast && { LastEvaluatedKey: keyOf('p', object) }),
      },
    });
    replies.push(page('0.json'), page('1.json', true), page('2.json'));
    const store = await open();
    expect((await store.list()).objects.map(({ key }) => key)).toEqual(['0.json', '1.json']);
    expect(asked[1]?.input.ExclusiveStartKey).toEqual(keyOf('p', '0.json'));
    expect(await store.listPage?.('1.json')).toMatchObject({ objects: [{ key: '2.json' }], more: true });
    expect(asked[2]?.input.ExclusiveStartKey).toEqual(keyOf('p', '1.json'));
  });

  it('that nodelease has not written are no leases', async () => {
    replies.push(
      { body: { Items: [{ object: { S: '0.json' } }] } },
      { body: { Item: keyOf('p', '0.json') } },
    );
    const store = await open();
    expect((await store.list()).objects).toEqual([]);
    await expect(store.read('0.json')).rejects.toThrow(
      'success without an etag: has nodelease written this item?',
    );
  });

  it('never get an etag twice, whatever is written', async () => {
    replies.push({}, {});
    const store = await open();
    const etags = [await store.create('0.json', 'x', {}), await store.replace('0.json', 'x', {}, 'old')];
    expect(new Set(etags.map((each) => each.status === 'written' && each.etag)).size).toBe(2);
    expect(asked).toMatchObject([
      { input: { ConditionExpression: 'attribute_not_exists(prefix)' } },
      {
        input: {
          ConditionExpression: 'etag = :old',
          ExpressionAttributeValues: { ':old': { S: 'old' } },
          Item: { ...keyOf('p', '0.json'), body: { S: 'x' }, metadata: { M: {} }, bytes: { N: '1' } },
        },
      },
    ]);
  });
});

describe('the table', () => {
  /** What both requests are answered. */
  const table = (Table: object, TimeToLiveDescription: object = {}) =>
    replies.push({ body: { Table, TimeToLiveDescription } }, { body: { Table, TimeToLiveDescription } });
  const factsOf = async (...given: Parameters<typeof table>) => {
    table(...given);
    const facts = (await (await open()).describe?.()) ?? [];
    return facts.map(({ id, status, detail }) => `${id} ${status}: ${detail}`);
  };

  it('has an id, which is the epoch of the store', async () => {
    expect(await factsOf({ TableId: 'f00' })).toEqual(['table-id ok: f00']);
    const store = await open();
    // Asked each time: a table may be replaced under its name.
    for (const TableId of ['f00', 'f00', 'ba5']) {
      replies.push({ body: { Table: { TableId } } });
      expect(await store.epoch?.()).toBe(TableId);
    }
    expect(asked.slice(-3).map(({ operation }) => operation)).toEqual(Array(3).fill('DescribeTable'));
    replies.push({ body: { Table: {} } });
    await expect(store.epoch?.()).rejects.toMatchObject({ fault: 'rejected', outcome: 'unknown' });
  });

  it.each([
    [{ AttributeName: 'ttl', TimeToLiveStatus: 'DISABLED' }, []],
    [
      { AttributeName: 'ttl', TimeToLiveStatus: 'ENABLED' },
      ['table-time-to-live warning: on ttl, which no lease'],
    ],
    [
      { AttributeName: 'bytes', TimeToLiveStatus: 'ENABLING' },
      ['table-time-to-live fault: on bytes, which every'],
    ],
  ])('is looked at for time to live: %j', async (timeToLive, expected) => {
    expect(await factsOf({}, timeToLive)).toEqual(expected.map((said) => expect.stringContaining(said)));
  });

  const Replicas = [{ RegionName: 'eu-west-1' }, { RegionName: 'us-east-1' }];
  it.each([
    ['eventual', { Replicas }, 'table-replicas fault: in eu-west-1, us-east-1, with eventual consistency'],
    [
      'strong',
      { Replicas, MultiRegionConsistency: 'STRONG' },
      'table-replicas warning: in eu-west-1, us-east-1, with',
    ],
    [
      'of 2017',
      { GlobalTableVersion: '2017.11.29' },
      'table-replicas fault: in other regions, with eventual',
    ],
  ])('is refused as a global table, unless it is strongly consistent: %s', async (_, given, said) => {
    expect(await factsOf(given)).toEqual([expect.stringContaining(said)]);
  });

  it('has to be looked at by leases, and its time to live need not', async () => {
    const refused = { exception: 'AccessDeniedException' };
    const store = await open();
    replies.push(refused);
    await expect(store.epoch?.()).rejects.toMatchObject({
      fault: 'denied',
      message: expect.stringContaining('needs dynamodb:DescribeTable'),
    });
    answers.DescribeTimeToLive = refused;
    expect(await factsOf({})).toEqual([
      'table-time-to-live ok: not looked at: dynamodb://leases/p: examining the servers: access denied (AccessDeniedException, needs dynamodb:DescribeTimeToLive): Why not.',
    ]);
    answers.DescribeTable = refused;
    await expect(store.describe?.()).rejects.toMatchObject({ fault: 'denied' });
  });
});
