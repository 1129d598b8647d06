import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createServer as createTlsServer } from 'node:tls';
import { inspect } from 'node:util';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { TestAuthority } from '../../../../test/support/certificates.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { systemClock as clock } from '../../base/system.js';
import { observedAge } from '../observed-age.js';
import { EtcdLeaseStore, type EtcdLeaseStoreOptions } from './etcd-lease-store.js';

const authority = new TestAuthority();
const other = new TestAuthority('Other CA');
const pem = (file: string) => readFileSync(file, 'utf8');
const ca = pem(authority.ca);
const hosts = 'IP:127.0.0.1';
const pairOf = (of: TestAuthority) => {
  const { cert, key } = of.issue({ name: 'etcd', hosts });
  return { cert: pem(cert), key: pem(key) };
};
const own = pairOf(authority);
const servers: Server[] = [];
const stores: EtcdLeaseStore[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => {
  authority.dispose();
  other.dispose();
});

async function listening(server: Server): Promise<string> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function open(options: Partial<EtcdLeaseStoreOptions> & Pick<EtcdLeaseStoreOptions, 'endpoints'>) {
  const store = new EtcdLeaseStore({
    url: 'etcds://hosts/p',
    prefix: 'p',
    clock,
    requestTimeoutMs: 5_000,
    ...options,
  });
  stores.push(store);
  return store;
}

/** Answers each call as an etcd without keys does. */
const answering = () =>
  createHttpServer((_, response) => response.end('{"header":{"revision":"1"},"token":"t"}'));

describe('a server of several with which no exchange is possible', () => {
  const noHttp = () =>
    createServer((socket) => void socket.once('data', () => socket.end('no HTTP\r\n\r\n')));

  it.each([
    ['does not speak HTTP', undefined],
    ['does not speak HTTP to a user who authenticates', 'orders:secret'],
  ])('is left by the next call: it %s', async (_, auth) => {
    const addresses = [await listening(noHttp()), await listening(answering())];
    const store = open({ endpoints: addresses.map((address) => `http://${address}`), etcd: { auth } });
    await expect(store.read('0.json')).rejects.toMatchObject({ fault: 'rejected', transient: false });
    expect(await store.read('0.json')).toBeUndefined();
  });

  it.each([
    ['has a certificate of another CA', () => createTlsServer(pairOf(other))],
    ['does not speak TLS', noHttp],
  ])('is left by the next call: it %s', async (_, first) => {
    const second = createTlsServer(own, (socket) => void http.emit('connection', socket));
    const http = answering();
    const addresses = [await listening(first()), await listening(second)];
    const store = open({ endpoints: addresses.map((address) => `https://${address}`), etcd: { ca } });
    await expect(store.read('0.json')).rejects.toMatchObject({ fault: 'rejected', transient: false });
    expect(await store.read('0.json')).toBeUndefined();
  });
});

it('a server of several that does not answer leaves a read to the next one in time', async () => {
  const clock = new VirtualClock();
  const silent = createServer();
  const addresses = [await listening(silent), await listening(answering())];
  const store = open({ endpoints: addresses.map((address) => `http://${address}`), clock });
  const reading = store.read('0.json');
  const [socket] = (await once(silent, 'connection')) as [Socket];
  await clock.advance(2_500);
  expect(await reading).toBeUndefined();
  expect(clock.sleepers).toBe(0);
  socket.destroy();
});

it('a server that changes the protocol has lost the connection, and holds up no call', async () => {
  const other = createServer((socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  );
  const store = open({ endpoints: [`http://${await listening(other)}`] });
  await expect(store.create('0.json', 'x', {})).rejects.toMatchObject({
    fault: 'unreachable',
    outcome: 'unknown',
    message: expect.stringContaining('connection lost'),
  });
});

it('a write that uses up the space may be applied though etcd refuses it: it is not repeated, and its outcome is unknown', async () => {
  const asked: unknown[] = [];
  const full = () =>
    createHttpServer(({ url }, response) => {
      asked.push(url);
      response.writeHead(429).end('{"code":8,"message":"etcdserver: mvcc: database space exceeded"}');
    });
  const addresses = [await listening(full()), await listening(full())];
  const store = open({ endpoints: addresses.map((address) => `http://${address}`) });
  await expect(store.create('0.json', 'x', {})).rejects.toMatchObject({
    fault: 'unavailable',
    outcome: 'unknown',
  });
  expect(asked).toEqual(['/v3/kv/txn']);
});

it('a revision that comes again in a cluster that was restored is another state, seen for no time yet', async () => {
  const virtual = new VirtualClock();
  const kv = { key: btoa('p/0.json'), value: btoa('{}\nx'), mod_revision: '7' };
  let header = { revision: '9', cluster_id: '1' };
  let watches: (body: string) => void = () => undefined;
  const watched = new Promise<string>((resolve) => {
    watches = resolve;
  });
  const etcd = createHttpServer(async (request, response) => {
    if (request.url === '/v3/watch') watches(await text(request));
    response.end(JSON.stringify({ header, kvs: [kv], succeeded: true }));
  });
  const store = observedAge(open({ endpoints: [`http://${await listening(etcd)}`] }), virtual);
  const look = async () => {
    const [read, { objects }] = [await store.read('0.json'), await store.list()];
    const etags = new Set([read?.etag, objects[0]?.etag]);
    return { etags, ages: [read?.age.min, objects[0]?.age.min] };
  };
  const before = await look();
  virtual.freeze(60_000);
  expect(await look()).toEqual({ ...before, ages: [60_000, 60_000] });
  header = { revision: '7', cluster_id: '2' };
  const after = await look();
  expect(after.ages).toEqual([0, 0]);
  expect(after.etags).not.toEqual(before.etags);
  expect(await store.create('0.json', 'x', {})).toMatchObject({ etag: [...after.etags][0] });
  // A watch does not wait until the revisions have caught up.
  const given = new AbortController();
  const waiting = store.changed?.(given.signal);
  expect(await watched).toContain('"start_revision":"8"');
  given.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

it.each([408, 499])(
  'a write that the server canceled with HTTP %i, as it does when it ends, may have been applied',
  async (status) => {
    const canceled = '{"code":1,"message":"grpc: the client connection is closing"}';
    const ending = createHttpServer((_, response) => response.writeHead(status).end(canceled));
    const store = open({ endpoints: [`http://${await listening(ending)}`] });
    await expect(store.create('0.json', 'x', {})).rejects.toMatchObject({
      ...{ fault: 'unavailable', outcome: 'unknown', transient: true },
    });
  },
);

it('shows neither its private key nor its password when it is printed', () => {
  const store = open({
    endpoints: ['https://127.0.0.1:2379'],
    etcd: { ca, ...own, auth: 'orders:hunter2' },
  });
  const shown = inspect(store, { depth: Number.POSITIVE_INFINITY, showHidden: true });
  expect(shown).toContain('etcds://hosts/p');
  expect(shown).not.toMatch(/PRIVATE KEY|hunter2/);
});
