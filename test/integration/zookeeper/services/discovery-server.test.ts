import dns from 'node:dns';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import {
  type DiscoveryServer,
  type DiscoveryServerEvent,
  type DiscoveryServerOptions,
  startDiscoveryServer,
} from '../../../../src/app/services/curator/discovery-server.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, restrict } from '../discovery/discovery-support.js';

const LOOPBACK = { host: '127.0.0.1', port: 0 };
const ONE = {
  name: 'orders',
  id: 'one',
  address: '10.0.0.1',
  port: 8080,
  registrationTimeUTC: 1_795_000_000_000,
  payload: null,
  serviceType: 'PERMANENT',
};
const TWO = {
  ...ONE,
  id: 'two',
  address: '10.0.0.2',
  sslPort: 8443,
  payload: { zone: 'b', '@class': 'java.util.TreeMap' },
};

let chroot: string;
let tree: ZooKeeperClient;
const servers: DiscoveryServer[] = [];
const events: DiscoveryServerEvent[] = [];

beforeEach(() => {
  chroot = uniqueChroot('server');
  tree = client(`${inject('zookeeper').connect}${chroot}`);
});

afterEach(async () => {
  await Promise.all(servers.splice(0).map((each) => each.close()));
  events.length = 0;
  await stopProxies();
  await closeClients();
});

async function start(options: Partial<DiscoveryServerOptions> = {}): Promise<DiscoveryServer> {
  const server = await startDiscoveryServer({
    zookeeper: tree,
    clock: systemClock,
    random: systemRandom,
    listen: LOOPBACK,
    onEvent: (event) => events.push(event),
    ...options,
  });
  servers.push(server);
  return server;
}

async function ask({ url }: DiscoveryServer, path: string, init?: RequestInit) {
  const response = await fetch(`${url}${path}`, init);
  const body = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: body === '' ? undefined : JSON.parse(body),
  };
}

/** What ZooKeeper's server says of itself. */
async function fourLetterWord(word: string): Promise<string> {
  const [host, port] = inject('zookeeper').connect.split(':');
  const socket = connect(Number(port), host);
  socket.write(word);
  return text(socket);
}

const put = (json: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: 'PUT',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(json),
});

const stored = async (path: string) => (await tree.read(path))?.data.toString();

describe('a discovery server', () => {
  it('registers, lists and unregisters instances, as Curator has them', async () => {
    const server = await start();
    expect(await ask(server, '/v1/service/orders/one', put(ONE))).toMatchObject({
      status: 201,
      body: undefined,
    });
    expect(await ask(server, '/v1/service/orders/two', put(TWO))).toMatchObject({ status: 201 });
    expect(await stored('/services/orders/one')).toBe(
      '{"name":"orders","id":"one","address":"10.0.0.1","port":8080,"sslPort":null,"payload":null,"registrationTimeUTC":1795000000000,"serviceType":"PERMANENT","uriSpec":null}',
    );
    expect((await ask(server, '/v1/service')).body).toEqual([{ name: 'orders' }]);
    expect((await ask(server, '/v1/service/orders')).body).toEqual([ONE, TWO]);
    expect((await ask(server, '/v1/service/orders/two')).body).toEqual(TWO);
    expect(await ask(server, '/v1/service/orders/one', { method: 'DELETE' })).toMatchObject({
      status: 200,
      body: undefined,
    });
    expect(await ask(server, '/v1/service/orders/one', { method: 'DELETE' })).toMatchObject({ status: 200 });
    expect(await ask(server, '/v1/service/orders/one')).toMatchObject({
      status: 404,
      body: { error: 'not-found' },
    });
    expect((await ask(server, '/v1/service/orders')).body).toEqual([TWO]);
  });

  it('registers nothing that keeps a Spring application from reading its service', async () => {
    const server = await start();
    const spring = await readFile('test/fixtures/spring/registered.znode');
    await tree.createWithParents('/services/orders/i-1', spring, 'persistent');
    expect(await ask(server, '/v1/service/orders/two', put(TWO))).toMatchObject({
      status: 409,
      body: { error: 'conflict', message: expect.stringContaining('--payload-type spring') },
    });
    expect(await tree.children('/services/orders')).toEqual(['i-1']);
    expect(await ask(server, '/v1/service/orders/one', put(ONE))).toMatchObject({ status: 201 });
  });

  it('registers nothing that Java readers, or JavaScript, would read as something else, and says what it is', async () => {
    const server = await start();
    const spring = {
      '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
      id: 'one',
      name: 'orders',
      metadata: {},
    };
    const refusals: [change: string, message: RegExp][] = [
      ['"payload":{"serial":[9007199254740993]}', /^instance\.payload\.serial\[0\]: expected a whole number/],
      [
        '"payload":{"@class":"com.example.Order"}',
        /^instance\.payload\.@class: expected java\.util\.TreeMap/,
      ],
      [`"port":null,"payload":${JSON.stringify(spring)}`, /^instance\.port: expected a port or an sslPort/],
    ];
    for (const [change, message] of refusals) {
      const init = put(ONE);
      const answer = await ask(server, '/v1/service/orders/one', {
        ...init,
        body: `${String(init.body).slice(0, -1)},${change}}`,
      });
      expect(answer).toMatchObject({
        status: 400,
        body: { error: 'bad-request', message: expect.stringMatching(message) },
      });
    }
    expect(await stored('/services/orders/one')).toBeUndefined();
    await tree.createWithParents(
      '/services/orders/java',
      '{"payload":{"serial":9007199254740993}}',
      'persistent',
    );
    expect((await ask(server, '/orders/java')).body).toMatchObject({
      payload: { serial: '9007199254740993' },
    });
  });

  it('leaves what was registered when it ends, and its session too', async () => {
    const own = client(`${inject('zookeeper').connect}${chroot}`);
    const server = await start({ zookeeper: own });
    await ask(server, '/v1/service/orders/one', put(ONE));
    await server.close();
    await own.close();
    expect(JSON.parse((await stored('/services/orders/one')) ?? '')).toMatchObject(ONE);
    expect((await tree.read('/services/orders/one'))?.stat.owner).toBeUndefined();
  });

  it('writes an instance again in place of the current content, with the current time where none is given', async () => {
    const server = await start();
    const { registrationTimeUTC, ...rest } = ONE;
    const before = Date.now();
    await ask(server, '/v1/service/orders/one', put(TWO));
    await ask(server, '/v1/service/orders/one', put(ONE));
    await ask(server, '/v1/service/orders/one', put({ ...rest, port: 9090 }));
    const { body } = await ask(server, '/v1/service/orders/one');
    expect(body).toMatchObject({ ...rest, port: 9090 });
    expect(body.registrationTimeUTC).toBeGreaterThanOrEqual(before);
    expect(body.registrationTimeUTC).toBeLessThanOrEqual(Date.now());
  });

  it('lists the rest where strangers left garbage, reports the garbage once, and can remove it', async () => {
    const server = await start();
    await ask(server, '/v1/service/orders/one', put(ONE));
    await tree.create('/services/orders/garbage', 'who knows', 'persistent');
    await tree.create('/services/orders/empty', '', 'persistent');
    await tree.create('/services/orders/deep', `{"payload":${'['.repeat(50_000)}`, 'persistent');
    for (let i = 0; i < 3; i += 1) expect((await ask(server, '/v1/service/orders')).body).toEqual([ONE]);
    expect((await ask(server, '/v1/anyservice/orders')).body).toEqual(ONE);
    expect(await ask(server, '/v1/service/orders/garbage')).toMatchObject({ status: 404 });
    const reported = events.flatMap((event) => (event.type === 'unreadable' ? event.path : [])).sort();
    expect(reported).toEqual(['/services/orders/deep', '/services/orders/empty', '/services/orders/garbage']);
    expect(await ask(server, '/v1/service/orders/garbage', { method: 'DELETE' })).toMatchObject({
      status: 200,
    });
    expect(await tree.children('/services/orders')).not.toContain('garbage');
  });

  it('gives any instance that is enabled, in turn', async () => {
    const server = await start();
    for (const instance of [ONE, TWO, { ...ONE, id: 'off', enabled: false }])
      await ask(server, `/v1/service/orders/${instance.id}`, put(instance));
    const ids: string[] = [];
    for (let i = 0; i < 4; i += 1) ids.push((await ask(server, '/v1/anyservice/orders')).body.id);
    expect(ids.sort()).toEqual(['one', 'one', 'two', 'two']);
    expect(await ask(server, '/v1/anyservice/unknown')).toMatchObject({ status: 404 });
    for (const id of ['one', 'two']) await ask(server, `/v1/service/orders/${id}`, { method: 'DELETE' });
    await expect.poll(async () => (await ask(server, '/v1/anyservice/orders')).status).toBe(404);
  });

  it('leaves nothing behind at ZooKeeper for names of no service', async () => {
    const server = await start();
    await ask(server, '/v1/service/orders/one', put(ONE));
    const watches = async () =>
      (await fourLetterWord('wchp')).split('\n').filter((line) => line.startsWith(chroot));
    expect(await ask(server, '/v1/anyservice/orders')).toMatchObject({ status: 200 });
    const before = await watches();
    expect(before).toContain(`${chroot}/services/orders/one`);
    for (let i = 0; i < 50; i += 1)
      expect(await ask(server, `/v1/anyservice/unknown-${i}`)).toMatchObject({ status: 404 });
    await expect.poll(async () => (await watches()).sort()).toEqual(before.sort());
    expect((await ask(server, '/v1/anyservice/orders')).body).toEqual(ONE);
  });

  it('understands names with every character that a service may have', async () => {
    const server = await start({ basePath: '/curator/eu' });
    for (const name of ['größe', 'a b', '100%', '%2F', 'a+b;c=d', 'q?x#y', '日本']) {
      const path = `/v1/service/${encodeURIComponent(name)}/${encodeURIComponent(name)}`;
      expect(await ask(server, path, put({ ...ONE, name, id: name }))).toMatchObject({ status: 201 });
      expect((await ask(server, path)).body).toMatchObject({ name, id: name });
      expect(await stored(`/curator/eu/${name}/${name}`)).toBeDefined();
    }
    expect((await ask(server, '/v1/service')).body).toHaveLength(7);
  });

  it.each([
    ['a%2Fb', 'one', 400],
    ['%2E%2E', 'one', 404],
    ['orders', 'a%2Fb', 400],
    ['orders', '%00', 400],
    ['%', 'one', 400],
    ['%FF', 'one', 400],
    ['orders', '%zz', 400],
    ['x'.repeat(256), 'one', 400],
    ['%F0%9F%98%80', 'one', 400],
  ])('refuses the name %s and the id %s, and writes nothing', async (name, id, status) => {
    const server = await start();
    const [plainName, plainId] = [name, id].map((each) =>
      /%(?:$|FF|zz)/.test(each) ? each : decodeURIComponent(each),
    );
    const answer = await ask(
      server,
      `/v1/service/${name}/${id}`,
      put({ ...ONE, name: plainName, id: plainId }),
    );
    expect(answer).toMatchObject({
      status,
      body: { error: expect.any(String), message: expect.any(String) },
    });
    expect(await tree.children('/services')).toBeUndefined();
  });

  it.each([
    ['an array as payload', { ...ONE, payload: [1] }, 'payload'],
    ['a payload that no znode can hold', { ...ONE, payload: 'x'.repeat(1_000_000) }, 'bytes'],
    [
      'a payload of too many levels',
      { ...ONE, payload: JSON.parse(`${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}`) },
      'levels',
    ],
    ['an address with a scheme', { ...ONE, address: 'http://10.0.0.1' }, 'address'],
    ['no address', { ...ONE, address: null }, 'address'],
    ['a port out of range', { ...ONE, port: 65_536 }, 'port'],
    ['another name', { ...ONE, name: 'billing' }, 'name'],
  ])('refuses %s, and writes nothing', async (_, instance, reported) => {
    const server = await start();
    const answer = await ask(server, '/v1/service/orders/one', put(instance));
    expect(answer).toMatchObject({
      status: 400,
      body: { error: 'bad-request', message: expect.stringContaining(reported) },
    });
    expect(answer.body.message.length).toBeLessThan(500);
    expect(await tree.children('/services')).toBeUndefined();
  });

  it('answers 502 with the reason where ZooKeeper refuses', async () => {
    const server = await start();
    await ask(server, '/v1/service/orders/one', put(ONE));
    await restrict(inject('zookeeper').connect, `${chroot}/services`, ['write', 'admin']);
    expect(await ask(server, '/v1/service')).toMatchObject({
      status: 502,
      body: { error: 'refused-by-zookeeper', message: expect.stringContaining('/services') },
    });
    await restrict(inject('zookeeper').connect, `${chroot}/services/orders`, ['read', 'admin']);
    expect(await ask(server, '/v1/service/orders/two', put(TWO))).toMatchObject({ status: 502 });
  });

  it('lists 3,000 instances, to many clients at a time', async () => {
    const server = await start();
    await tree.ensurePath('/services/orders');
    const ids = Array.from({ length: 3_000 }, (_, index) => String(index).padStart(4, '0'));
    const batches = Array.from({ length: 30 }, (_, batch) => ids.slice(batch * 100, (batch + 1) * 100));
    for (const batch of batches)
      await tree.multi(
        batch.map((id) => ({
          type: 'create' as const,
          path: `/services/orders/${id}`,
          data: JSON.stringify({ ...ONE, id }),
          mode: 'persistent' as const,
        })),
      );
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(server, '/v1/service/orders')));
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(body.map(({ id }: { id: string }) => id)).toEqual(ids);
    }
    expect(events).toEqual([]);
  });
});

describe('a discovery server without ZooKeeper', () => {
  it('starts, says 503 with the reason in time, goes on with any instance from what it has seen, and is right again on return', async () => {
    const { proxy, through } = await throughProxy(`${inject('zookeeper').connect}${chroot}`);
    const own = client(through);
    const server = await start({ zookeeper: own });
    await ask(server, '/v1/service/orders/one', put(ONE));
    expect((await ask(server, '/v1/anyservice/orders')).headers.get('age')).toBeNull();
    proxy.cut();
    await expect.poll(() => own.state.status).not.toBe('connected');
    const requests: [path: string, init?: RequestInit][] = [
      ['/v1/service'],
      ['/v1/service/orders'],
      ['/v1/service/orders/one'],
      ['/v1/service/orders/two', put(TWO)],
      ['/v1/anyservice/billing'],
    ];
    await Promise.all(
      requests.map(async ([path, init]) => {
        // Two seconds, on a machine that has much else to do.
        const { status, body, headers } = await ask(server, path, {
          ...init,
          signal: AbortSignal.timeout(20_000),
        });
        expect({ status, error: body.error, retry: headers.get('retry-after') }).toEqual({
          status: 503,
          error: 'unavailable',
          retry: '1',
        });
        expect(body.message).toMatch(/\w/);
      }),
    );
    const any = await ask(server, '/v1/anyservice/orders');
    expect(any).toMatchObject({ status: 200, body: ONE });
    expect(Number(any.headers.get('age'))).toBeGreaterThan(0);
    proxy.heal();
    await expect.poll(async () => (await ask(server, '/v1/service/orders')).status).toBe(200);
    await expect.poll(async () => (await ask(server, '/v1/anyservice/orders')).headers.get('age')).toBeNull();
    expect((await ask(server, '/v1/service/orders')).body).toEqual([ONE]);
  });
});

describe('who may change anything', () => {
  let folder: string;
  let file: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodelease-server-'));
    file = join(folder, 'token');
  });

  afterEach(() => rm(folder, { recursive: true }));

  it('is each client with the token in the file, also when it is another one later; all may ask', async () => {
    await writeFile(file, 'the-first-token-of-all\n');
    const server = await start({ bearerTokenFile: file });
    const change = async (authorization?: string) =>
      (
        await ask(
          server,
          '/v1/service/orders/one',
          put(ONE, authorization === undefined ? {} : { authorization }),
        )
      ).status;
    expect(await change()).toBe(401);
    expect(await change('Bearer the-second-token-of-all')).toBe(401);
    expect(await tree.children('/services')).toBeUndefined();
    expect(await change('Bearer the-first-token-of-all')).toBe(201);
    await writeFile(file, 'the-second-token-of-all\n');
    expect(await change('Bearer the-first-token-of-all')).toBe(401);
    expect(await change('Bearer the-second-token-of-all')).toBe(201);
    await rm(file);
    expect(await change('Bearer the-second-token-of-all')).toBe(503);
    expect((await ask(server, '/v1/service/orders')).body).toEqual([ONE]);
  });

  it('is no client beyond this machine without a token, so that such a server does not start', async () => {
    for (const host of ['0.0.0.0', '::'])
      await expect(start({ listen: { host, port: 0 } })).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        message: expect.stringContaining('could register'),
      });
    // A name of loopback that somebody has given another address.
    const elsewhere = (...given: unknown[]) =>
      (given.at(-1) as (error: null, address: string, family: number) => void)(null, '0.0.0.0', 4);
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(elsewhere as unknown as typeof dns.lookup);
    try {
      const named = start({ listen: { host: 'localhost', port: 0 } });
      await expect(named).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        message: expect.stringContaining('a name that means loopback'),
      });
      expect(lookup).toHaveBeenCalled();
    } finally {
      lookup.mockRestore();
    }
    await writeFile(file, 'short');
    await expect(start({ listen: { host: '0.0.0.0', port: 0 }, bearerTokenFile: file })).rejects.toThrow(
      'bearerTokenFile: expected a file',
    );
    const server = await start({ listen: { host: '0.0.0.0', port: 0 }, readOnly: true });
    const near = { ...server, url: server.url.replace('0.0.0.0', '127.0.0.1') };
    expect(await ask(near, '/v1/service')).toMatchObject({ status: 200 });
    expect(await ask(near, '/v1/service/orders/one', put(ONE))).toMatchObject({ status: 403 });
  });

  it('is no page in a browser: not one of another origin, nor one that calls this machine by its own name', async () => {
    const server = await start();
    const asPage = (method: string, headers: Record<string, string>) =>
      new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
        const sent = request(`${server.url}/v1/service/orders/one`, {
          method,
          headers: { 'content-type': 'application/json', ...headers },
        });
        sent
          .on('error', reject)
          .on('response', async (response: IncomingMessage) =>
            resolve({ status: response.statusCode, body: await text(response) }),
          );
        sent.end(method === 'PUT' ? JSON.stringify(ONE) : undefined);
      });
    expect(await asPage('PUT', { origin: 'http://evil.example' })).toMatchObject({
      status: 403,
      body: expect.stringContaining('origin'),
    });
    expect(await asPage('DELETE', { origin: 'null' })).toMatchObject({ status: 403 });
    for (const method of ['GET', 'PUT', 'DELETE'])
      expect(await asPage(method, { host: 'evil.example' })).toMatchObject({
        status: 403,
        body: expect.stringContaining('host'),
      });
    // What a browser asks first before it sends such a request for a page of another origin.
    const preflight = await fetch(`${server.url}/v1/service/orders/one`, {
      method: 'OPTIONS',
      headers: { origin: 'http://evil.example' },
    });
    expect(preflight.status).toBe(405);
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
    expect(await tree.children('/services')).toBeUndefined();
    expect(await asPage('PUT', { origin: server.url })).toMatchObject({ status: 201 });
  });
});
