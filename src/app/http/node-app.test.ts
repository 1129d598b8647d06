import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { shrinkSettings } from '../../../test/support/shrunk-cluster.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { StoreUnusableError } from '../../core/base/errors.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import { staticLease } from '../../core/lease/hold/static-lease.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import type { ClusterView } from '../../node/monitor/cluster-follower.js';
import { NodeMonitor } from '../../node/runtime/node-monitor.js';
import type { ClusterSnapshot } from '../../node/wire/cluster-snapshot.js';
import type { Discovery } from '../../zookeeper/discovery/discovery.js';
import { type NodeAppOptions, nodeApp } from './node-app.js';
import { nodeHandler } from './node-handler.js';
import { startNodeServer } from './node-server.js';
import { unavailable } from './problem.js';
import { OpenStreams } from './server/open-streams.js';

const DURATION_MS = 15_000;
const RIGHT = { authorization: 'Bearer the-right-token' };

function setUp(options: Partial<NodeAppOptions> = {}) {
  const clock = new VirtualClock();
  const monitor = new NodeMonitor();
  const bucket = new MemoryBucket(clock, 1);
  const failures: unknown[] = [];
  const app = nodeApp({
    clock,
    monitor,
    onFailure: (request, failure) => failures.push([request, failure]),
    ...options,
  });
  const ask = async (path: string, init?: RequestInit) => {
    const response = await app.request(path, init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text !== '' ? JSON.parse(text) : text,
    };
  };
  const acquire = async (discovery?: Discovery) => {
    const store = new MemoryLeaseStore({ clock }, bucket);
    const wanted = { nodes: 3, durationMs: DURATION_MS, graceMs: 1_000 };
    const acquiring = acquireLease({
      store,
      clock,
      random: seededRandom(1),
      taskId: 'task-a',
      onEvent: monitor.onLeaseEvent,
      ...wanted,
    });
    await clock.advance(100);
    const lease = await acquiring;
    monitor.hold(lease, discovery);
    return lease;
  };
  return { clock, monitor, bucket, app, ask, acquire, failures };
}

/** A cluster that can be seen, or that cannot. */
function clusterView(snapshot: () => Promise<ClusterSnapshot>): ClusterView {
  const store = {
    state: 'unknown',
    problem: null,
    latencyMs: null,
    clockOffsetMs: null,
    lookedAt: null,
  } as const;
  const current = () => ({ report: null, store, tree: null, events: [], revision: 0 });
  return { epoch: 'e', snapshot, current, tenures: () => [], follow: () => () => {}, close: async () => {} };
}

it('a client that no longer waits for an answer has given it up: that is no failure to report', async () => {
  for (const given of [true, false]) {
    const abort = new AbortController();
    const snapshot = async (): Promise<ClusterSnapshot> => {
      if (given) abort.abort();
      throw new Error('a fault');
    };
    const { app, failures } = setUp({ cluster: async () => clusterView(snapshot) });
    expect((await app.request('/api/leases', { signal: abort.signal })).status).toBe(500);
    expect(failures).toHaveLength(given ? 0 : 1);
  }
});

describe('a process that has no node id yet', () => {
  it('is live and not ready, and says why', async () => {
    const { ask, monitor, failures } = setUp();
    const facts = {
      state: 'acquiring',
      live: true,
      ready: false,
      nodeId: null,
      version: null,
      validForMs: null,
    };
    expect(await ask('/livez')).toMatchObject({ status: 200, body: { status: 'ok', ...facts } });
    expect(await ask('/readyz')).toMatchObject({
      status: 503,
      body: { status: 'unavailable', reason: 'a node id is being acquired', ...facts },
    });
    monitor.onLeaseEvent({ type: 'waiting', sleepMs: 1_000, why: 'all 3 node ids are held' });
    expect(await ask('/lease')).toMatchObject({
      status: 503,
      body: { error: 'unavailable', message: 'no lease is held: all 3 node ids are held', ...facts },
    });
    // This is no fault of the server: its log would be full of it.
    expect(failures).toEqual([]);
  });

  it('is neither when none was acquired and none will be', async () => {
    const { ask, monitor } = setUp();
    monitor.failed(new StoreUnusableError('STORE_MISSING', 'the bucket is not there'));
    expect(await ask('/livez')).toMatchObject({
      status: 503,
      body: { status: 'unavailable', state: 'failed', live: false },
    });
    expect(await ask('/readyz')).toMatchObject({ status: 503, body: { reason: 'the bucket is not there' } });
  });
});

describe('a process that holds a lease', () => {
  it('is live and ready, and shows its lease, and for how much longer that is valid without a renewal', async () => {
    const { ask, acquire, clock } = setUp();
    await acquire();
    const facts = {
      state: 'held',
      live: true,
      ready: true,
      reason: null,
      nodeId: 0,
      version: 1,
      taskId: 'task-a',
      idWidth: 8,
    };
    const { body } = await ask('/lease');
    expect(body).toEqual({ ...facts, retiring: false, discovery: null, validForMs: expect.any(Number) });
    expect(body.validForMs).toBeGreaterThan(DURATION_MS - 1_000);
    clock.freeze(2_000.5);
    expect((await ask('/readyz')).body).toEqual({
      ...body,
      status: 'ok',
      validForMs: Math.floor(body.validForMs - 2_000.5),
    });
    expect((await ask('/livez')).status).toBe(200);
  });

  it('says in its first answer after a pause past the deadline that it is neither live nor ready', async () => {
    const { ask, acquire, clock } = setUp();
    const lease = await acquire();
    clock.freeze(lease.deadline - clock.monotonic() - 1);
    expect((await ask('/readyz')).status).toBe(200);
    clock.freeze(1);
    for (const path of ['/readyz', '/livez', '/lease']) {
      const { status, body } = await ask(path);
      expect({ status, state: body.state, validForMs: body.validForMs }).toEqual({
        status: 503,
        state: 'lost',
        validForMs: null,
      });
      expect(body.reason).toContain('no renewal came through before its deadline');
    }
  });

  it('is not ready, but holds its lease, while its node id is being retired, also where others work with it', async () => {
    for (const heldForOthers of [false, true]) {
      const { ask, acquire, clock, bucket } = setUp({ heldForOthers });
      const store = new MemoryLeaseStore({ clock }, bucket);
      await acquireLease({
        ...{
          store,
          clock,
          random: seededRandom(2),
          taskId: 'first',
          nodes: 3,
          durationMs: DURATION_MS,
          graceMs: 1_000,
        },
      });
      await acquire();
      expect((await ask('/lease')).body).toMatchObject({ nodeId: 1, retiring: false });
      shrinkSettings(bucket, 1);
      await clock.advance(DURATION_MS);
      const reason = 'node id 1 (version 1) is being retired: the cluster has 1 node id now';
      const facts = { state: 'held', live: true, ready: false, reason, retiring: true, nodeId: 1 };
      expect(await ask('/readyz')).toMatchObject({ status: 503, body: { status: 'unavailable', ...facts } });
      expect(await ask('/livez')).toMatchObject({ status: 200, body: { status: 'ok', ...facts } });
      expect(await ask('/lease')).toMatchObject({
        status: 200,
        body: { ...facts, validForMs: expect.any(Number) },
      });
    }
  });

  it('is not ready, but holds its lease, while its work is being ended; and holds none after that', async () => {
    const { ask, acquire, monitor } = setUp();
    const lease = await acquire();
    monitor.stopping();
    const statuses = async () => [
      (await ask('/livez')).status,
      (await ask('/readyz')).status,
      (await ask('/lease')).status,
    ];
    expect(await statuses()).toEqual([200, 503, 200]);
    await lease.release();
    expect(await statuses()).toEqual([200, 503, 503]);
  });

  it('holds no lease when it stops before it acquires one, and holds one that it acquires afterwards', async () => {
    const { ask, acquire, monitor } = setUp();
    monitor.stopping();
    const message = 'no lease is held: the work is being ended';
    expect(await ask('/lease')).toMatchObject({ status: 503, body: { message, nodeId: null } });
    await acquire();
    expect(await ask('/lease')).toMatchObject({ status: 200, body: { state: 'stopping', nodeId: 0 } });
  });

  it('answers others that there is no lease as soon as it is being stopped, without waiting for their requests', async () => {
    const { ask, acquire, monitor } = setUp({ heldForOthers: true });
    await acquire();
    expect((await ask('/lease')).status).toBe(200);
    monitor.stopping();
    const message = 'the lease is about to be given back: the work is being ended';
    expect(await ask('/lease')).toMatchObject({
      status: 503,
      body: { error: 'unavailable', message, state: 'stopping', validForMs: null },
    });
    expect((await ask('/livez')).status).toBe(200);
  });

  it('shows discovery, which decides about readiness only until the others know of a take-over', async () => {
    const { ask, acquire } = setUp();
    const discovery = { isReady: false, state: { status: 'degraded', problem: 'ZooKeeper is away' } };
    await acquire(discovery as unknown as Discovery);
    const shown = { state: 'degraded', problem: 'ZooKeeper is away', ready: false };
    expect(await ask('/readyz')).toMatchObject({
      status: 503,
      body: { state: 'held', live: true, ready: false, discovery: shown },
    });
    discovery.isReady = true;
    expect(await ask('/readyz')).toMatchObject({
      status: 200,
      body: { discovery: { ...shown, ready: true } },
    });
  });

  it('has no end where the id is a fixed one', async () => {
    const { ask, monitor } = setUp();
    monitor.hold(staticLease({ id: 2, taskId: 'web-2' }));
    expect(await ask('/lease')).toMatchObject({ status: 200, body: { nodeId: 2, validForMs: null } });
  });
});

describe('metrics', () => {
  it('are sent as they write themselves', async () => {
    const { ask } = setUp({
      metrics: { contentType: 'text/plain; version=0.0.4', text: async () => 'up 1\n' },
    });
    const { status, headers, body } = await ask('/metrics');
    expect({ status, type: headers.get('content-type'), body }).toEqual({
      status: 200,
      type: 'text/plain; version=0.0.4',
      body: 'up 1\n',
    });
  });

  it('that fail are a fault of the server, which only its log shows', async () => {
    const { ask, failures } = setUp({
      metrics: { contentType: 'x', text: () => Promise.reject(new TypeError('secret')) },
    });
    const { status, body } = await ask('/metrics');
    expect({ status, body }).toEqual({
      status: 500,
      body: { error: 'internal', message: expect.not.stringContaining('secret') },
    });
    expect(failures).toEqual([['GET /metrics', expect.any(TypeError)]]);
  });
});

describe('the cluster', () => {
  it('that cannot be read is 503 with the reason, and leaves health alone', async () => {
    const refused = () => Promise.reject(new StoreUnusableError('STORE_MISSING', 'the bucket is not there'));
    const { ask, acquire, failures } = setUp({ cluster: async () => clusterView(refused) });
    await acquire();
    expect(await ask('/api/leases')).toMatchObject({
      status: 503,
      body: { error: 'unavailable', message: 'the bucket is not there' },
    });
    expect((await ask('/readyz')).status).toBe(200);
    expect(failures).toHaveLength(1);
  });

  it('is not sent in invalid pages', async () => {
    const { ask, failures } = setUp({
      cluster: async () => clusterView(() => Promise.reject(new Error('not to be asked'))),
    });
    expect(await ask('/api/leases?limit=0')).toMatchObject({
      status: 400,
      body: { error: 'bad-request', message: expect.stringContaining('limit') },
    });
    expect(failures).toHaveLength(0);
  });

  it('is followed by a limited number of clients, which take no place from other requests', async () => {
    const report = { cluster: null, nodes: [] } as unknown as ClusterSnapshot['report'];
    const store = { state: 'ok', problem: null, latencyMs: 1, clockOffsetMs: null, lookedAt: 1 } as const;
    const view = clusterView(async () => ({ report, store, tree: null, events: [] }));
    const { app, ask, acquire } = setUp({ cluster: async () => view, streams: new OpenStreams(1) });
    await acquire();
    const first = await app.request('/api/events');
    expect([first.status, first.headers.get('content-type')]).toEqual([
      200,
      expect.stringMatching(/^text\/event-stream/),
    ]);
    expect(await ask('/api/events')).toMatchObject({ status: 503, body: { error: 'unavailable' } });
    expect((await ask('/readyz')).status).toBe(200);
    await first.body?.cancel();
    const head = await app.request('/api/events', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const next = await app.request('/api/events');
    expect(next.status).toBe(200);
    await next.body?.cancel();
  });
});

describe('what is not there', () => {
  it('is 404, also where there is no node, no metrics, or no cluster', async () => {
    const { ask } = setUp({ monitor: undefined });
    for (const path of [
      '/nowhere',
      '/livez',
      '/readyz',
      '/lease',
      '/metrics',
      '/api/leases',
      '/api/events',
      '/%zz',
      '/console/../x',
    ])
      expect(await ask(path)).toMatchObject({
        status: 404,
        body: { error: 'not-found', message: expect.stringContaining('nothing at') },
      });
  });

  it('is a page for a browser', async () => {
    const { app } = setUp({ monitor: undefined });
    const response = await app.request('/nowhere', { headers: { accept: 'text/html,*/*' } });
    expect([response.status, response.headers.get('content-type')]).toEqual([
      404,
      'text/html; charset=utf-8',
    ]);
    expect(response.headers.get('content-security-policy')).toBe("default-src 'none'");
    const text = await response.text();
    expect(text).toContain('<h1>There is nothing at this address</h1>');
    // Below a path prefix, or without a cluster, the console is not at "/".
    expect(text).not.toContain('href');
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
    'to change anything: %s is 405 everywhere, and says what is allowed',
    async (method) => {
      const { ask } = setUp({
        metrics: { contentType: 'x', text: async () => '' },
        cluster: () => Promise.reject(new Error('unused')),
      });
      for (const path of [
        '/livez',
        '/readyz',
        '/lease',
        '/metrics',
        '/api/leases',
        '/api/history',
        '/api/events',
      ]) {
        const { status, headers, body } = await ask(path, { method });
        expect({ status, allow: headers.get('allow'), error: body.error }).toEqual({
          status: 405,
          allow: 'GET, HEAD',
          error: 'method-not-allowed',
        });
      }
    },
  );
});

describe('every answer', () => {
  it('is kept by no cache, and taken for nothing that it is not', async () => {
    const { ask } = setUp({ metrics: { contentType: 'text/plain', text: async () => '' } });
    for (const [path, method] of [
      ['/livez'],
      ['/readyz'],
      ['/lease'],
      ['/metrics'],
      ['/nowhere'],
      ['/livez', 'POST'],
    ]) {
      const { headers } = await ask(path ?? '', { method: method ?? 'GET' });
      expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual([
        'no-store',
        'nosniff',
      ]);
    }
  });

  it('has no body for HEAD, and the status of GET', async () => {
    const { app } = setUp();
    for (const [path, status] of [
      ['/livez', 200],
      ['/readyz', 503],
      ['/lease', 503],
    ] as const) {
      const response = await app.request(path, { method: 'HEAD' });
      expect([response.status, await response.text()]).toEqual([status, '']);
    }
  });
});

describe('with a token', () => {
  const token = { admits: async (given: string) => given === 'the-right-token' };

  it('health and the console’s page are for all, and everything else is for clients that send it', async () => {
    const view = clusterView(() => Promise.reject(new StoreUnusableError('STORE_UNREACHABLE', 'away')));
    const { app } = setUp({
      token,
      metrics: { contentType: 'x', text: async () => '' },
      cluster: async () => view,
    });
    const paths = [...new Set(app.routes.map(({ path }) => path))].filter((path) => !path.includes('*'));
    expect(paths).toEqual(
      expect.arrayContaining([
        '/livez',
        '/readyz',
        '/lease',
        '/metrics',
        '/api/leases',
        '/api/history',
        '/api/events',
      ]),
    );
    /** A stream is not waited for to its end. */
    const head = async (path: string, headers: Record<string, string>) => {
      const response = await app.request(path, { headers });
      await response.body?.cancel();
      return response;
    };
    const isOpen = (path: string) => ['/livez', '/readyz', '/'].includes(path);
    for (const path of paths) {
      const bare = await head(path, {});
      const wrong = await head(path, { authorization: 'Bearer the-wrong-token' });
      if (isOpen(path)) expect([path, bare.status, wrong.status]).not.toContain(401);
      else {
        expect([path, bare.status, wrong.status, bare.headers.get('www-authenticate')]).toEqual([
          path,
          401,
          401,
          'Bearer',
        ]);
        expect([path, (await head(path, RIGHT)).status]).not.toContain(401);
      }
    }
  });

  it('a stream ends soon after its token was replaced, but not while the file cannot be read', async () => {
    const current = { admits: token.admits };
    const view = clusterView(() => Promise.reject(new StoreUnusableError('STORE_UNREACHABLE', 'away')));
    const { app, clock } = setUp({
      token: { admits: (given) => current.admits(given) },
      cluster: async () => view,
    });
    const { body } = await app.request('/api/events', { headers: RIGHT });
    let hasEnded = false;
    const read = async () => {
      await new Response(body).text();
      hasEnded = true;
    };
    const reading = read();
    for (const [admits, ends] of [
      [token.admits, false],
      [() => Promise.reject(unavailable('the file cannot be read')), false],
      [async () => false, true],
    ] as const) {
      current.admits = admits;
      for (let second = 0; second < 20; second += 1) await clock.advance(1_000);
      expect(hasEnded).toBe(ends);
    }
    await reading;
  });

  it('there is no way around it by another spelling, or another method', async () => {
    const { ask } = setUp({ token });
    for (const path of [
      '/lease',
      '//lease',
      '/lease/',
      '/LEASE',
      '/%6cease',
      '/lease?x',
      '/./lease',
      '/x/../lease',
      '/api',
      '/api/',
    ])
      for (const method of ['GET', 'HEAD', 'POST'])
        expect([path, (await ask(path, { method })).status]).not.toEqual([path, 200]);
  });
});

describe('on a loopback address', () => {
  it('another host name is refused: a page could have its own name resolved to this machine', async () => {
    const { app } = setUp({ hosts: new Set(['127.0.0.1']) });
    for (const path of ['/livez', '/lease', '/nowhere']) {
      expect((await app.request(`http://evil.example${path}`)).status).toBe(403);
      expect((await app.request(`http://localhost${path}`)).status).not.toBe(403);
    }
  });
});

it('is refused with an option that it does not know or see: it would be open without its token', async () => {
  const misspelt = { tokens: { admits: async () => false } } as object;
  expect(() => nodeApp(misspelt)).toThrow('(the nearest is token), got "tokens"');
  expect(() => nodeApp({ monitor: {} as never })).toThrow('monitor: expected a NodeMonitor');
  class Settings {
    get token() {
      return { admits: async () => false };
    }
  }
  expect(() => nodeHandler(new Settings())).toThrow('not a getter of a class, got "token"');
  const taken = { listen: { host: '127.0.0.1', port: 0 }, token: new Settings().token };
  await expect(startNodeServer(taken)).rejects.toThrow('got "token"');
});

describe('an app of one’s own', () => {
  it('can have it below a path', async () => {
    const { app } = setUp({ token: { admits: async () => false } });
    const outer = new Hono().get('/', (context) => context.text('mine'));
    outer.route('/internal', app);
    expect(await (await outer.request('/')).text()).toBe('mine');
    expect((await outer.request('/internal/livez')).status).toBe(200);
    expect((await outer.request('/internal/lease')).status).toBe(401);
    expect((await outer.request('/internal/livez', { method: 'POST' })).status).toBe(405);
  });
});
