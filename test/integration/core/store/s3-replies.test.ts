import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Clock } from '../../../../src/core/base/clock.js';
import { explain } from '../../../../src/core/base/errors.js';
import { systemClock } from '../../../../src/core/base/system.js';
import { StoreError } from '../../../../src/core/store/lease-store.js';
import { openS3Store } from '../../../../src/core/store/s3/open-s3-store.js';
import type { S3LeaseStore } from '../../../../src/core/store/s3/s3-lease-store.js';
import { S3StandIn } from '../../../support/s3-stand-in.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// The real SDK against a server whose every reply is chosen here: what each of them means for a lease.

let server: S3StandIn;
let store: S3LeaseStore;
let etag: string;

interface Opening {
  readonly requestTimeoutMs?: number;
  readonly bucket?: string;
  readonly clock?: Clock;
}

const open = (
  endpoint: string,
  { requestTimeoutMs = 5_000, bucket = server.bucket, clock = systemClock }: Opening = {},
) => openS3Store({ bucket, prefix: 'p', endpoint, clock, requestTimeoutMs });

beforeEach(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  server = await S3StandIn.start();
  store = await open(server.endpoint);
  const created = await store.create('0.json', 'first', { taskid: 'a' });
  if (created.status !== 'written') throw new Error('the first creation must win');
  etag = created.etag;
  server.requests.length = 0;
});

afterEach(async () => {
  await store.close();
  await server.stop();
  vi.unstubAllEnvs();
});

const calls = {
  read: () => store.read('0.json'),
  list: () => store.list(),
  create: () => store.create('1.json', 'new', {}),
  replace: () => store.replace('0.json', 'second', {}, etag),
  discard: () => store.discardProbe('probe-1.json'),
} as const;
type Call = keyof typeof calls;
/**
 * The time-out of a request where a test moves its clock: the SDK has one of its own in real time, of the
 * same length.
 */
const MINUTE_MS = 60_000;
const ALL = Object.keys(calls) as Call[];
const WRITES: Call[] = ['create', 'replace'];

describe('a write', () => {
  it('asks for the condition in the words of S3, once, with the content and the metadata', async () => {
    expect(await store.create('1.json', '', { taskid: 'task-a', version: '7' })).toMatchObject({
      status: 'written',
    });
    expect(await store.replace('0.json', '{"é":1}', {}, etag)).toMatchObject({ status: 'written' });
    expect(server.requests).toHaveLength(2);
    const [create, replace] = server.requests;
    expect(create).toMatchObject({
      method: 'PUT',
      key: 'p/1.json',
      headers: {
        'if-none-match': '*',
        'content-type': 'application/json',
        'content-length': '0',
        'x-amz-meta-taskid': 'task-a',
        'x-amz-meta-version': '7',
      },
    });
    expect(create?.headers).not.toHaveProperty('if-match');
    expect(replace).toMatchObject({
      method: 'PUT',
      key: 'p/0.json',
      headers: { 'if-match': etag, 'content-length': '8' },
    });
    expect(replace?.headers).not.toHaveProperty('if-none-match');
    // Neither checksum trailers, which servers other than AWS often do not know, nor a second round trip.
    for (const { headers } of server.requests) {
      expect(Object.keys(headers).filter((name) => /checksum|trailer|^expect$/.test(name))).toEqual([]);
    }
  });

  it.each([
    [412, 'PreconditionFailed'],
    [409, 'OfAnotherServer'],
  ])('that is answered %i %s is a conflict', async (status, code) => {
    for (const call of WRITES) {
      server.next({ status, code });
      expect(await calls[call]()).toEqual({ status: 'conflict' });
    }
    expect(server.requests).toHaveLength(2);
  });

  it.each(['ConditionalRequestConflict', 'OperationAborted'])(
    'that is answered 409 %s, since a concurrent one was under way, is sent again until it is judged',
    async (code) => {
      const busy = { status: 409, code };
      server.next(busy, busy);
      expect(await calls.create()).toMatchObject({ status: 'written' });
      server.next(busy, busy);
      expect(await calls.create()).toEqual({ status: 'conflict' });
      expect(server.requests).toHaveLength(6);
      server.next(busy, busy, busy, busy);
      await expect(calls.replace()).rejects.toMatchObject({ fault: 'unavailable', outcome: 'unknown' });
    },
  );

  it('to an object that is gone is a conflict', async () => {
    expect(await store.replace('9.json', 'x', {}, etag)).toEqual({ status: 'conflict' });
  });

  it('whose success comes without an etag has an unknown outcome', async () => {
    server.next({ status: 200 });
    await expect(calls.create()).rejects.toMatchObject({ fault: 'rejected', outcome: 'unknown' });
  });
});

describe('a read', () => {
  it('of an object that does not exist gives undefined', async () => {
    expect(await store.read('9.json')).toBeUndefined();
  });

  it.each([
    ['without Last-Modified', false],
    ['with a Last-Modified that is no date', 'yesterday'],
  ] as const)('%s gives the object, of unknown age', async (_, lastModified) => {
    server.faults.lastModified = lastModified;
    expect(await store.read('0.json')).toMatchObject({
      body: 'first',
      etag,
      metadata: { taskid: 'a' },
      age: { min: 0, max: Number.POSITIVE_INFINITY },
    });
  });

  it('of a listing follows every page, and shows only what lies directly below the prefix', async () => {
    for (let id = 1; id < 12; id++) await store.create(`${id}.json`, 'x', {});
    const deep = await openS3Store({
      bucket: server.bucket,
      prefix: 'p/q',
      endpoint: server.endpoint,
      clock: systemClock,
      requestTimeoutMs: 5_000,
    });
    await deep.create('0.json', 'elsewhere', {});
    await deep.close();
    server.requests.length = 0;
    server.faults.pageSize = 5;
    const { objects } = await store.list();
    const keys = Array.from({ length: 12 }, (_, id) => `${id}.json`).sort();
    expect(objects.map(({ key }) => key).sort()).toEqual(keys);
    expect(server.requests).toHaveLength(3);
    const shown: string[] = [];
    for (let more = true; more && shown.length < 50; ) {
      const page = await store.listPage(shown.at(-1));
      shown.push(...page.objects.map(({ key }) => key));
      more = page.more;
    }
    expect(shown).toEqual(keys);
  });
});

describe('a failure', () => {
  interface Row {
    readonly on?: readonly Call[];
    readonly status: number;
    readonly code?: string;
    readonly body?: string;
    readonly headers?: Record<string, string>;
    readonly fault: string;
    readonly outcome: string;
    readonly says: string;
  }
  const rows: Row[] = [
    {
      status: 403,
      code: 'AccessDenied',
      fault: 'denied',
      outcome: 'not-applied',
      says: 'access denied (AccessDenied, needs s3:',
    },
    {
      status: 403,
      code: 'InvalidAccessKeyId',
      fault: 'denied',
      outcome: 'not-applied',
      says: 'access denied (InvalidAccessKeyId): The',
    },
    { status: 403, fault: 'denied', outcome: 'not-applied', says: 'access denied (HTTP 403)' },
    {
      status: 401,
      code: 'Unauthorized',
      fault: 'denied',
      outcome: 'not-applied',
      says: 'access denied (Unauthorized)',
    },
    {
      status: 400,
      code: 'ExpiredToken',
      fault: 'denied',
      outcome: 'not-applied',
      says: 'access denied (ExpiredToken)',
    },
    {
      status: 403,
      code: 'RequestTimeTooSkewed',
      fault: 'denied',
      outcome: 'not-applied',
      says: 'the clock of this host is wrong',
    },
    {
      status: 404,
      code: 'NoSuchBucket',
      fault: 'missing',
      outcome: 'not-applied',
      says: 's3://bucket/p: bucket does not exist',
    },
    { status: 404, fault: 'rejected', outcome: 'unknown', says: 'is this an S3 server?' },
    {
      status: 404,
      body: '404 page not found',
      fault: 'rejected',
      outcome: 'unknown',
      says: 'is this an S3 server?',
    },
    {
      status: 404,
      body: '<html><body>Not Found</body></html>',
      fault: 'rejected',
      outcome: 'unknown',
      says: 'is this an S3 server?',
    },
    {
      status: 400,
      code: 'InvalidRequest',
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'refused (InvalidRequest: The stand-in says InvalidRequest.)',
    },
    {
      status: 405,
      code: 'MethodNotAllowed',
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'refused (MethodNotAllowed',
    },
    {
      status: 501,
      code: 'NotImplemented',
      fault: 'unsupported',
      outcome: 'not-applied',
      says: 'not supported by this server (NotImplemented',
    },
    {
      status: 301,
      code: 'PermanentRedirect',
      headers: { 'x-amz-bucket-region': 'eu-west-1' },
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'the bucket is in region eu-west-1',
    },
    {
      status: 307,
      code: 'TemporaryRedirect',
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'wrong region or endpoint (TemporaryRedirect',
    },
    {
      on: ['read', 'list', 'discard'],
      status: 304,
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'answered HTTP 304, not modified, although',
    },
    {
      on: WRITES,
      status: 304,
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'answered HTTP 304, not modified, where S3 answers 412',
    },
    {
      status: 400,
      code: 'AuthorizationHeaderMalformed',
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'wrong region or endpoint',
    },
    {
      status: 400,
      code: 'RequestTimeout',
      fault: 'unavailable',
      outcome: 'unknown',
      says: 'answered HTTP 400 (RequestTimeout',
    },
    {
      status: 429,
      code: 'TooManyRequests',
      fault: 'unavailable',
      outcome: 'unknown',
      says: 'answered HTTP 429 (TooManyRequests',
    },
    {
      status: 500,
      code: 'InternalError',
      fault: 'unavailable',
      outcome: 'unknown',
      says: 'answered HTTP 500 (InternalError',
    },
    {
      status: 502,
      body: '<html><h1>Bad Gateway</h1></html>',
      fault: 'unavailable',
      outcome: 'unknown',
      says: 'answered HTTP 502',
    },
    { status: 502, body: 'Bad Gateway', fault: 'unavailable', outcome: 'unknown', says: 'answered HTTP 502' },
    {
      status: 503,
      code: 'SlowDown',
      fault: 'unavailable',
      outcome: 'unknown',
      says: 'answered HTTP 503 (SlowDown',
    },
    { status: 504, fault: 'unavailable', outcome: 'unknown', says: 'answered HTTP 504' },
    {
      on: ['read', 'list', 'discard'],
      status: 412,
      code: 'PreconditionFailed',
      fault: 'rejected',
      outcome: 'not-applied',
      says: 'refused',
    },
    {
      on: ['create', 'list'],
      status: 404,
      code: 'NoSuchKey',
      fault: 'rejected',
      outcome: 'unknown',
      says: 'is this an S3 server?',
    },
    {
      on: ['list'],
      status: 200,
      body: 'hello',
      fault: 'rejected',
      outcome: 'unknown',
      says: 'not as S3 does',
    },
    {
      on: ['read'],
      status: 200,
      body: 'hello',
      fault: 'rejected',
      outcome: 'unknown',
      says: 'without an ETag',
    },
  ];

  it.each(rows)(
    'answered $status $code $body is $fault, $outcome, in one line and after one request',
    async (row) => {
      const { fault, outcome, says, on = ALL, ...reply } = row;
      for (const call of on) {
        server.requests.length = 0;
        server.next(reply);
        const error = await failureOf(calls[call]());
        expect(error).toMatchObject({ fault, outcome });
        expect(error.message).toContain(says);
        expect(error.message).toMatch(/^s3:\/\/bucket\/p: /);
        expect(explain(error)).not.toMatch(/\n|Deserialization|UnknownError|\$response/);
        expect(server.requests).toHaveLength(1);
      }
    },
  );

  it('to ask a bucket of S3 Express for a session is a matter of rights, not of credentials', async () => {
    const express = await open(server.endpoint, { bucket: 'leases--use1-az4--x-s3' });
    server.next({ status: 403, code: 'AccessDenied' });
    const error = await failureOf(express.create('1.json', 'new', {}));
    expect(error).toMatchObject({ fault: 'denied', outcome: 'not-applied' });
    expect(error.message).toContain(
      'creating 1.json: access denied (AccessDenied, needs s3express:CreateSession)',
    );
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]?.query.has('session')).toBe(true);
    await express.close();
  });

  it.each(ALL)(
    'of the connection before the reply to %s has an unknown outcome, and nothing is sent twice',
    async (call) => {
      for (const drop of ['drop-request', 'drop-reply'] as const) {
        server.requests.length = 0;
        server.next(drop);
        expect(await failureOf(calls[call]())).toMatchObject({
          fault: 'unreachable',
          outcome: 'unknown',
          transient: true,
        });
        expect(server.requests).toHaveLength(1);
      }
    },
  );

  it.each(ALL)(
    'of a server that stalls over %s ends in time, with an unknown outcome, and nothing is sent twice',
    async (call) => {
      await store.close();
      const clock = new VirtualClock();
      store = await open(server.endpoint, { requestTimeoutMs: MINUTE_MS, clock });
      const stalls =
        call === 'read' || call === 'list' ? (['stall', 'stall-body'] as const) : (['stall'] as const);
      for (const stall of stalls) {
        server.requests.length = 0;
        server.next(stall);
        let error: StoreError | undefined;
        const failed = failureOf(calls[call]()).then((failure) => {
          error = failure;
        });
        await expect.poll(() => server.requests.length).toBe(1);
        // By now a body has begun to arrive, most likely.
        await systemClock.sleep(50);
        await clock.advance(MINUTE_MS - 1);
        expect(error).toBeUndefined();
        await clock.advance(1);
        await failed;
        expect(error).toMatchObject({
          fault: 'unreachable',
          outcome: 'unknown',
          message: expect.stringContaining('no answer within 60000 ms'),
        });
        expect(server.requests).toHaveLength(1);
      }
      // The socket of the stalled request must not be used again.
      expect(await store.read('0.json')).toMatchObject({ key: '0.json' });
    },
  );

  it('to connect is certainly not applied', async () => {
    const { endpoint } = server;
    await server.stop();
    // Without an idle connection, which would break in mid-request.
    await store.close();
    store = await open(endpoint);
    for (const call of ALL) {
      const error = await failureOf(calls[call]());
      expect(error).toMatchObject({ fault: 'unreachable', outcome: 'not-applied' });
      expect(explain(error)).toMatch(/cannot connect: connect ECONNREFUSED 127\.0\.0\.1:\d+$/);
    }
    const byName = await open(endpoint.replace('127.0.0.1', 'localhost'));
    expect(explain(await failureOf(byName.create('1.json', 'x', {})))).toMatch(
      /cannot connect: connect ECONNREFUSED/,
    );
    const nowhere = await open('http://no-such-host.invalid:9000');
    expect(await failureOf(nowhere.create('1.json', 'x', {}))).toMatchObject({
      fault: 'unreachable',
      outcome: 'not-applied',
    });
    server = await S3StandIn.start();
  });

  it('to speak HTTP is not taken for a passing one', async () => {
    const other = createServer((socket) => socket.resume().end('220 mail.example.com ESMTP\r\n'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const mail = await open(`http://127.0.0.1:${port}`);
    expect(await failureOf(mail.create('1.json', 'x', {}))).toMatchObject({
      fault: 'rejected',
      outcome: 'unknown',
      message: expect.stringContaining('(is it https://?)'),
    });
    await mail.close();
    const plain = await open(server.endpoint.replace('http:', 'https:'));
    expect(await failureOf(plain.create('1.json', 'x', {}))).toMatchObject({
      fault: 'rejected',
      outcome: 'unknown',
      message: expect.stringContaining('(is it http://?)'),
    });
    await plain.close();
    await new Promise((resolve) => other.close(resolve));
  });

  it('to find credentials is denied access, and nothing is sent', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', undefined);
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent/credentials');
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent/config');
    const bare = await open(server.endpoint);
    const error = await failureOf(bare.create('1.json', 'x', {}));
    expect(error).toMatchObject({ fault: 'denied', outcome: 'not-applied' });
    expect(explain(error)).toContain('s3://bucket/p: creating 1.json: no AWS credentials found');
    expect(server.requests).toEqual([]);
    await bare.close();
  });

  it('to get credentials in time is certainly not applied, and is not sent later either', async () => {
    const slow = await S3StandIn.start();
    slow.faults.delayMs = 700;
    vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', undefined);
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent/credentials');
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${slow.endpoint}/credentials`);
    const body = JSON.stringify({
      AccessKeyId: 'k',
      SecretAccessKey: 's',
      Token: 't',
      Expiration: '2099-01-01T00:00:00Z',
    });
    slow.next({ status: 200, body }, { status: 200, body });
    const clock = new VirtualClock();
    const waiting = await open(server.endpoint, { requestTimeoutMs: MINUTE_MS, clock });
    const failed = failureOf(waiting.create('1.json', 'x', {}));
    await expect.poll(() => slow.requests.length).toBe(1);
    await clock.advance(MINUTE_MS);
    expect(await failed).toMatchObject({ fault: 'unreachable', outcome: 'not-applied' });
    // The credentials serve the next call once they have arrived, and that call alone.
    expect(await waiting.create('2.json', 'x', {})).toMatchObject({ status: 'written' });
    expect(server.requests.map(({ key }) => key)).toEqual(['p/2.json']);
    await waiting.close();
    await slow.stop();
  });

  it('of its caller to wait has an unknown outcome once the request is on its way', async () => {
    server.next('stall');
    const controller = new AbortController();
    const failed = failureOf(store.create('1.json', 'x', {}, { signal: controller.signal }));
    await expect.poll(() => server.requests.length).toBe(1);
    controller.abort(new Error('no longer wanted'));
    const error = await failed;
    expect(error).toMatchObject({ fault: 'unreachable', outcome: 'unknown' });
    expect(explain(error)).toBe('s3://bucket/p: creating 1.json: given up: no longer wanted');
  });

  it('of its caller to wait is certainly not applied when it had given up before', async () => {
    for (const call of [
      store.create('1.json', 'x', {}, { signal: AbortSignal.abort() }),
      store.read('0.json', { signal: AbortSignal.abort() }),
    ]) {
      expect(await failureOf(call)).toMatchObject({ fault: 'unreachable', outcome: 'not-applied' });
    }
    expect(server.requests).toEqual([]);
  });
});

describe('a store that is used for long', () => {
  it('leaves no listener on its caller’s signal, and uses one connection over and over', async () => {
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, 'addEventListener');
    const removed = vi.spyOn(signal, 'removeEventListener');
    for (let i = 0; i < 50; i++) await store.read('0.json', { signal });
    expect(added.mock.calls.length).toBeGreaterThan(0);
    expect(removed.mock.calls.length).toBe(added.mock.calls.length);
    const ports = new Set(server.requests.map(({ clientPort }) => clientPort));
    expect(ports.size).toBe(1);
  });
});

async function failureOf(call: Promise<unknown>): Promise<StoreError> {
  const outcome = await call.then(
    (value) => `resolved with ${JSON.stringify(value)}`,
    (error: unknown) => error,
  );
  if (outcome instanceof StoreError) return outcome;
  throw new Error(`expected a StoreError, got: ${String(outcome)}`);
}
