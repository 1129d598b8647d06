import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ZooKeeperError, type ZooKeeperFault } from '../../../zookeeper/client/zookeeper.js';
import type { ServiceInstance } from '../../../zookeeper/services/instance/service-instance.js';
import type { ServiceCall } from '../../../zookeeper/services/service-directory.js';
import { type DiscoveryAppOptions, discoveryApp } from './discovery-app.js';
import { type DiscoveryServerOptions, startDiscoveryServer } from './discovery-server.js';
import type { AnyInstance } from './provider-pool.js';

const ORDERS: ServiceInstance = {
  name: 'orders',
  id: '1',
  address: '10.0.0.1',
  port: 8080,
  sslPort: undefined,
  payload: { zone: 'a' },
  registrationTimeUTC: 1_795_000_000_000,
  serviceType: 'STATIC',
  uriSpec: undefined,
  enabled: true,
};
const JSON_OF_ORDERS = {
  name: 'orders',
  id: '1',
  address: '10.0.0.1',
  port: 8080,
  payload: { zone: 'a' },
  registrationTimeUTC: 1_795_000_000_000,
  serviceType: 'STATIC',
};

/** What ZooKeeper would be asked, in memory. */
class FakeDirectory {
  failure: unknown;
  readonly asked: unknown[][] = [];
  readonly calls: ServiceCall[] = [];

  names = async (call?: ServiceCall) => this.#answer(['names'], ['billing', 'orders'], call);
  instances = async (name: string, call?: ServiceCall) =>
    this.#answer(['instances', name], name === 'orders' ? [ORDERS] : [], call);
  instance = async (name: string, id: string, call?: ServiceCall) =>
    this.#answer(['instance', name, id], name === 'orders' && id === '1' ? ORDERS : undefined, call);
  write = async (instance: ServiceInstance, call?: ServiceCall) =>
    this.#answer(['write', instance], '/services/orders/1', call);
  remove = async (name: string, id: string, call?: ServiceCall) =>
    this.#answer(['remove', name, id], true, call);

  #answer<T>(asked: unknown[], answer: T, call: ServiceCall = {}): T {
    this.asked.push(asked);
    this.calls.push(call);
    if (this.failure !== undefined) throw this.failure;
    return answer;
  }
}

function setUp(options: Partial<DiscoveryAppOptions> = {}) {
  const directory = new FakeDirectory();
  const any = { answer: { status: 'picked', instance: ORDERS, staleMs: undefined } as AnyInstance };
  const failures: unknown[] = [];
  const app = discoveryApp({
    directory,
    pool: { any: async () => any.answer },
    clock: new VirtualClock(),
    writes: { kind: 'anybody' },
    onFailure: (request, failure) => failures.push([request, failure]),
    ...options,
  });
  const ask = async (path: string, init?: RequestInit) => {
    const response = await app.request(path, init);
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : JSON.parse(text),
    };
  };
  return { directory, any, failures, app, ask };
}

const put = (
  json: unknown,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): RequestInit => ({
  method: 'PUT',
  headers,
  body: typeof json === 'string' ? json : JSON.stringify(json),
});

describe('a client that asks', () => {
  it('gets names, instances, one, and any, in Curator’s shape', async () => {
    const { ask } = setUp();
    expect((await ask('/v1/service')).body).toEqual([{ name: 'billing' }, { name: 'orders' }]);
    expect((await ask('/v1/service/orders')).body).toEqual([JSON_OF_ORDERS]);
    expect((await ask('/v1/service/none')).body).toEqual([]);
    expect((await ask('/v1/service/orders/1')).body).toEqual(JSON_OF_ORDERS);
    expect((await ask('/v1/anyservice/orders')).body).toEqual(JSON_OF_ORDERS);
  });

  it('gets one by the old path too, with a warning, as from Curator’s server', async () => {
    const { ask, directory } = setUp();
    const { status, headers, body } = await ask('/orders/1');
    expect({ status, warning: headers.get('warning'), body }).toEqual({
      status: 200,
      warning: expect.stringContaining('deprecated'),
      body: JSON_OF_ORDERS,
    });
    expect(directory.asked).toEqual([['instance', 'orders', '1']]);
    expect(await ask('/orders/2')).toMatchObject({
      status: 404,
      body: { error: 'not-found', message: 'orders has no instance 2' },
    });
    expect((await ask('/v1/service/orders/1')).headers.get('warning')).toBeNull();
  });

  it('gets JSON that no cache keeps and no browser takes for a page', async () => {
    const { ask } = setUp();
    for (const path of ['/v1/service', '/v1/service/none/none', '/nowhere', '/openapi.json']) {
      const { headers } = await ask(path);
      expect(headers.get('content-type')).toMatch(/^application\/json/);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it('gets only the head for HEAD', async () => {
    const { ask } = setUp();
    expect(await ask('/v1/service/orders', { method: 'HEAD' })).toMatchObject({
      status: 200,
      body: undefined,
    });
    expect(await ask('/v1/service/orders/2', { method: 'HEAD' })).toMatchObject({
      status: 404,
      body: undefined,
    });
  });

  it('shares a list with all who ask for it at the same time', async () => {
    const { ask, directory } = setUp();
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('/v1/service/orders')));
    for (const { body } of answers) expect(body).toEqual([JSON_OF_ORDERS]);
    expect(directory.asked).toEqual([
      ['instances', 'orders'],
      ['instances', 'orders'],
    ]);
  });

  it('may use any name that a service can have, percent-encoded', async () => {
    const { ask, directory } = setUp();
    for (const name of ['größe', 'a b', '100%', '%2F', 'a+b', 'a?b', '#1', '日本']) {
      await ask(`/v1/service/${encodeURIComponent(name)}/${encodeURIComponent(name)}`);
      expect(directory.asked.at(-1)).toEqual(['instance', name, name]);
    }
  });

  it('gets a 404 for an unknown instance, or path', async () => {
    const { ask, any } = setUp();
    expect(await ask('/v1/service/orders/2')).toMatchObject({
      status: 404,
      body: { error: 'not-found', message: 'orders has no instance 2' },
    });
    any.answer = { status: 'none', staleMs: undefined };
    expect(await ask('/v1/anyservice/orders')).toMatchObject({ status: 404, body: { error: 'not-found' } });
    for (const path of ['/', '/v1', '/v1/service/', '/v1/service/a/b/c'])
      expect(await ask(path)).toMatchObject({
        status: 404,
        body: { error: 'not-found', message: expect.stringContaining('openapi.json') },
      });
  });

  it('learns for how long there has been no news of changes, and only then', async () => {
    const { ask, any } = setUp();
    expect((await ask('/v1/anyservice/orders')).headers.get('age')).toBeNull();
    any.answer = { status: 'picked', instance: ORDERS, staleMs: 12_001 };
    expect((await ask('/v1/anyservice/orders')).headers.get('age')).toBe('13');
    any.answer = { status: 'none', staleMs: 5 };
    expect((await ask('/v1/anyservice/orders')).headers.get('age')).toBe('1');
  });

  it.each([
    ['POST', '/v1/service', 'GET, HEAD'],
    ['POST', '/v1/service/orders', 'GET, HEAD'],
    ['PATCH', '/v1/service/orders/1', 'GET, HEAD, PUT, DELETE'],
    ['POST', '/v1/service/orders/1', 'GET, HEAD, PUT, DELETE'],
    ['OPTIONS', '/v1/service/orders/1', 'GET, HEAD, PUT, DELETE'],
    ['DELETE', '/v1/service/orders', 'GET, HEAD'],
    ['PUT', '/v1/anyservice/orders', 'GET, HEAD'],
    ['PUT', '/openapi.json', 'GET, HEAD'],
  ])('learns what is allowed instead of %s %s', async (method, path, allow) => {
    const { status, headers, body } = await setUp().ask(path, { method });
    expect({ status, allow: headers.get('allow'), body }).toEqual({
      status: 405,
      allow,
      body: { error: 'method-not-allowed', message: `method: expected ${allow}, got ${method}` },
    });
  });
});

describe('a client that registers', () => {
  it('has the instance written as it says', async () => {
    const { ask, directory } = setUp();
    expect(await ask('/v1/service/orders/1', put(JSON_OF_ORDERS))).toMatchObject({
      status: 201,
      body: undefined,
    });
    expect(directory.asked).toEqual([['write', ORDERS]]);
  });

  it('and unregisters gets 200, whether it was there or not', async () => {
    const { ask, directory } = setUp();
    expect(await ask('/v1/service/orders/1', { method: 'DELETE' })).toMatchObject({
      status: 200,
      body: undefined,
    });
    expect(directory.asked).toEqual([['remove', 'orders', '1']]);
  });

  it.each([
    ['{', 'the body: expected JSON, got "{"'],
    ['', 'the body: expected JSON, got ""'],
    ['[]', 'the body: expected a JSON object, got an array'],
    [{ ...JSON_OF_ORDERS, id: '2' }, 'instance.id: expected "1", as in the path, got "2"'],
    [{ ...JSON_OF_ORDERS, serviceType: 'DYNAMIC' }, 'instance.serviceType: expected "STATIC" or "PERMANENT"'],
    [{ ...JSON_OF_ORDERS, port: 0 }, 'instance.port: expected a whole number from 1 to 65535'],
  ])('learns what is wrong with %j, and nothing is written', async (json, message) => {
    const { ask, directory } = setUp();
    const { status, body } = await ask('/v1/service/orders/1', put(json));
    expect({ status, body }).toEqual({
      status: 400,
      body: { error: 'bad-request', message: expect.stringContaining(message) },
    });
    expect(directory.asked).toEqual([]);
  });

  it('must say that it is JSON', async () => {
    const { ask, directory } = setUp();
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonx',
      'text/application/json',
    ])
      expect(await ask('/v1/service/orders/1', put(JSON_OF_ORDERS, { 'content-type': type }))).toMatchObject({
        status: 415,
        body: { error: 'unsupported-media-type' },
      });
    expect(directory.asked).toEqual([]);
    for (const type of ['application/json; charset=utf-8', 'Application/JSON'])
      expect(await ask('/v1/service/orders/1', put(JSON_OF_ORDERS, { 'content-type': type }))).toMatchObject({
        status: 201,
      });
  });

  it('may send a mebibyte, and no more, whatever it says of the length', async () => {
    const { ask, directory } = setUp();
    const sized = (bytes: number) => `${JSON.stringify(JSON_OF_ORDERS)}${' '.repeat(bytes)}`.slice(0, bytes);
    expect(await ask('/v1/service/orders/1', put(sized(1_048_576)))).toMatchObject({ status: 201 });
    expect(await ask('/v1/service/orders/1', put(sized(1_048_577)))).toMatchObject({
      status: 413,
      body: { error: 'too-large' },
    });
    const declared = put('{}', { 'content-type': 'application/json', 'content-length': '1048577' });
    expect(await ask('/v1/service/orders/1', declared)).toMatchObject({ status: 413 });
    expect(directory.asked).toHaveLength(1);
  });

  it('is refused by a read-only server, which an app is by default', async () => {
    const { ask, directory } = setUp({ writes: undefined });
    for (const init of [put(JSON_OF_ORDERS), { method: 'DELETE' }])
      expect(await ask('/v1/service/orders/1', init)).toMatchObject({
        status: 403,
        body: { error: 'forbidden', message: 'this server is read-only' },
      });
    expect(directory.asked).toEqual([]);
  });

  it('is refused without the token, before the body is looked at', async () => {
    const { ask, directory } = setUp({
      writes: { kind: 'token', token: { admits: async (given) => given === 'right' } },
    });
    for (const init of [put('{'), { method: 'DELETE' }]) {
      const { status, headers, body } = await ask('/v1/service/orders/1', init);
      expect({ status, error: body.error, challenge: headers.get('www-authenticate') }).toEqual({
        status: 401,
        error: 'unauthorized',
        challenge: 'Bearer',
      });
    }
    const authorization = 'Bearer right';
    expect(await ask('/v1/service/orders/1', { method: 'DELETE', headers: { authorization } })).toMatchObject(
      { status: 200 },
    );
    expect(directory.asked).toEqual([['remove', 'orders', '1']]);
  });

  it('is refused where it is a page of another origin, or calls this machine by another name', async () => {
    const { ask, directory } = setUp({ hosts: new Set() });
    const origin = 'http://evil.example';
    expect(await ask('/v1/service/orders/1', { method: 'DELETE', headers: { origin } })).toMatchObject({
      status: 403,
    });
    for (const path of ['/v1/service', '/v1/service/orders/1', '/openapi.json', '/nowhere'])
      expect(await ask(`http://evil.example${path}`)).toMatchObject({
        status: 403,
        body: { error: 'forbidden' },
      });
    expect(directory.asked).toEqual([]);
  });
});

describe('when something goes wrong', () => {
  const failed = (fault: ZooKeeperFault) =>
    new ZooKeeperError('ZooKeeper said no', fault, 'unknown', undefined, new Error('why'));

  it.each(['timeout', 'connection-loss', 'session-expired', 'closed'] as const)(
    '%s is answered with 503 and the reason',
    async (fault) => {
      const { ask, directory, failures } = setUp();
      directory.failure = failed(fault);
      for (const [path, init] of [
        ['/v1/service'],
        ['/v1/service/orders'],
        ['/v1/service/orders/1'],
        ['/v1/service/orders/1', put(JSON_OF_ORDERS)],
      ] as const) {
        const { status, body, headers } = await ask(path, init);
        expect({ status, body }).toEqual({
          status: 503,
          body: { error: 'unavailable', message: 'ZooKeeper said no: why' },
        });
        expect(headers.get('retry-after')).toBe('1');
      }
      expect(failures).toHaveLength(4);
    },
  );

  it('a refusal by ZooKeeper is answered with 502', async () => {
    const { ask, directory } = setUp();
    directory.failure = failed('no-auth');
    expect(await ask('/v1/service')).toMatchObject({ status: 502, body: { error: 'refused-by-zookeeper' } });
  });

  it('a service that could not be read yet is answered with 503', async () => {
    const { ask, any } = setUp();
    any.answer = { status: 'unknown' };
    expect(await ask('/v1/anyservice/orders')).toMatchObject({ status: 503, body: { error: 'unavailable' } });
  });

  it.each([
    ['/v1/service'],
    ['/v1/service/orders'],
    ['/v1/service/orders/1'],
    ['/v1/service/orders/1', put(JSON_OF_ORDERS)],
    ['/v1/service/orders/1', { method: 'DELETE' }],
  ])(
    'nothing is asked before ZooKeeper is connected, and 503 is the answer when it is not in time: %s %j',
    async (path, init?: RequestInit) => {
      const waited: ServiceCall[] = [];
      const connected = (call: ServiceCall) => {
        waited.push(call);
        return Promise.reject(failed('timeout'));
      };
      const { ask, directory } = setUp({ connected, timeoutMs: 700 });
      expect(await ask(path, init)).toMatchObject({ status: 503, body: { error: 'unavailable' } });
      expect([directory.asked, waited]).toEqual([[], [expect.objectContaining({ timeoutMs: 700 })]]);
    },
  );

  it.each(['/v1/service', '/v1/service/orders/1'])(
    'a query is given up with its client: %s',
    async (path) => {
      const waited: ServiceCall[] = [];
      const { app, directory } = setUp({ connected: async (call) => waited.push(call) });
      const gone = new AbortController();
      await app.request(new Request(`http://localhost${path}`, { signal: gone.signal }));
      gone.abort();
      expect([...waited, ...directory.calls].map(({ signal }) => signal?.aborted)).toEqual([true, true]);
    },
  );

  it('a write is not given up: its client may have gone because it took long', async () => {
    const { app, directory } = setUp();
    const gone = new AbortController();
    await app.request(
      new Request('http://localhost/v1/service/orders/1', { method: 'DELETE', signal: gone.signal }),
    );
    gone.abort();
    expect(directory.calls).toEqual([{ timeoutMs: 2_000 }]);
  });

  it('the client sees nothing of a fault in the program: only the log does', async () => {
    const { ask, directory, failures } = setUp();
    directory.failure = new TypeError('secret is not a function');
    const { status, body } = await ask('/v1/service');
    expect({ status, body }).toEqual({
      status: 500,
      body: { error: 'internal', message: expect.not.stringContaining('secret') },
    });
    // As it was sent: with an end of line it could forge a line of the log.
    await ask('/v1/service/a%0Ab');
    expect(failures).toEqual([
      ['GET /v1/service', directory.failure],
      ['GET /v1/service/a%0Ab', directory.failure],
    ]);
  });

  it('a client that has gone is no failure', async () => {
    const { app, directory, failures } = setUp();
    const gone = AbortSignal.abort();
    directory.failure = failed('aborted');
    await app.request(new Request('http://localhost/v1/service', { signal: gone }));
    expect(failures).toEqual([]);
  });
});

describe('an app of one’s own', () => {
  it('can have it below a path', async () => {
    const { app, directory } = setUp();
    const outer = new Hono();
    outer.get('/', (context) => context.text('mine'));
    outer.route('/discovery', app);
    expect(await (await outer.request('/')).text()).toBe('mine');
    expect(await (await outer.request('/discovery/v1/service')).json()).toEqual([
      { name: 'billing' },
      { name: 'orders' },
    ]);
    expect((await outer.request('/discovery/v1/service', { method: 'POST' })).status).toBe(405);
    directory.failure = new ZooKeeperError('away', 'timeout', 'unknown');
    expect((await outer.request('/discovery/v1/service')).status).toBe(503);
  });
});

it('a server is refused a misspelt option: without readOnly all clients of the machine may write', async () => {
  const misspelt = { readonly: true } as object as DiscoveryServerOptions;
  await expect(startDiscoveryServer(misspelt)).rejects.toThrow('(the nearest is readOnly), got "readonly"');
});
