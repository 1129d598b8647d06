import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { explain } from '../../../../src/core/base/errors.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { type EtcdAccess, EtcdLeaseStore } from '../../../../src/core/store/etcd/index.js';
import type { LeaseStore, WriteResult } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { probeStore } from '../../../../src/core/store/probe/probe.js';
import { TestAuthority } from '../../../support/certificates.js';
import { newEtcdStore } from '../../../support/etcd.js';
import { enableEtcdUsers, etcdCall, etcdGet, etcdPut } from '../../../support/etcd-admin.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { type EtcdProcess, startEtcdProcess } from '../../../support/servers/etcd-process.js';
import { freePort } from '../../../support/servers/free-ports.js';

// A real etcd, reached as a user would: by URL.

const { address } = inject('etcd');
const endpoint = `http://${address}`;
const base = { clock: systemClock, random: systemRandom, requestTimeoutMs: 5_000 };
const opened: LeaseStore[] = [];

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await stopProxies();
});

async function open(url: string, etcd: EtcdAccess = {}, requestTimeoutMs = 5_000): Promise<LeaseStore> {
  const store = await openStore(url, { ...base, etcd, requestTimeoutMs });
  opened.push(store);
  return store;
}

async function failureOf(
  call: Promise<unknown>,
): Promise<{ readonly error: unknown; readonly text: string }> {
  const error = await call.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (error === undefined) throw new Error('no failure');
  return { error, text: explain(error) };
}

describe('a store on a real etcd', () => {
  it('keeps its objects where its URL says, for people to read', async () => {
    const url = newEtcdStore({ address });
    const store = await open(url);
    expect(store.url).toBe(url);
    await store.create('7.json', '{"taskId":"é"}', { taskid: 'task-a', version: '1' });
    const key = `${url.slice(`etcd://${address}/`.length)}/7.json`;
    expect(await etcdGet(endpoint, key)).toBe('{"taskid":"task-a","version":"1"}\n{"taskId":"é"}');
    await etcdPut(endpoint, [key], '{"by":"hand"}');
    expect(await store.read('7.json')).toMatchObject({ body: '{"by":"hand"}', metadata: {} });
  });

  it('lists more objects than one request shows, and no object of the stores below it', async () => {
    const url = newEtcdStore({ address });
    const prefix = url.slice(`etcd://${address}/`.length);
    const store = await open(url);
    const keys = Array.from({ length: 1_210 }, (_, id) => `${id}.json`);
    const isMarked = (key: string) => Number.parseInt(key, 10) % 3 > 0;
    for (const folder of [prefix, `${prefix}/locks/nightly`, `${prefix}2`]) {
      const names = keys.map((key) => `${folder}/${key}`);
      await etcdPut(endpoint, names, '{"marked-for-ms":"70000"}\nx');
      const marks = names.filter((_, id) => isMarked(String(id))).map((name) => `${name}~`);
      await etcdPut(endpoint, marks, '');
    }
    await store.create('z.json', 'x', {});
    const sorted = [...keys, 'z.json'].sort();
    const { objects } = await store.list();
    expect(objects.map(({ key }) => key)).toEqual(sorted);
    const old = objects.filter(({ age }) => age.min > 70_000).map(({ key }) => key);
    expect(old.filter(isMarked)).toEqual([]);
    // The mark of the last one on a page would be on the next one.
    expect(old.length).toBeGreaterThan(400);
    for (const from of [0, 5, 10, 900, 1_210, 1_211]) {
      const page = await store.listPage?.(from === 0 ? undefined : sorted[from - 1]);
      const shown = page?.objects.map(({ key }) => key) ?? [];
      expect(shown).toEqual(sorted.slice(from, from + shown.length));
      expect(page?.more || from + shown.length === sorted.length).toBe(true);
      expect(shown.length).toBeGreaterThan(from < 1_210 ? 100 : -1);
    }
  });

  it('takes no etag for one of etcd that is none', async () => {
    const store = await open(newEtcdStore({ address }));
    for (const etag of ['0', '', '-1', '1.5', '0x1', '99999999999999999999']) {
      expect(await store.replace('absent.json', 'x', {}, etag)).toEqual({ status: 'conflict' });
    }
    expect(await store.read('absent.json')).toBeUndefined();
  });

  it('passes the probe, and leaves nothing behind', async () => {
    const store = await open(newEtcdStore({ address }));
    const report = await probeStore(store, base);
    expect(report.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect((await store.list()).objects).toEqual([]);
  });

  it('shows an operator the version of each server, and which one does not answer', async () => {
    const dead = await freePort();
    const store = await open(newEtcdStore({ address: `127.0.0.1:${dead},${address}` }));
    const [servers, takeOver] = (await store.describe?.()) ?? [];
    expect(servers).toMatchObject({ id: 'etcd-servers', status: 'warning' });
    expect(servers?.detail).toMatch(
      /^examining the servers: cannot connect to \S+: [^\n]+, \S+ 3\.\d+\.\d+, \d+ in the cluster$/,
    );
    expect(takeOver).toMatchObject({
      id: 'take-over',
      status: 'ok',
      detail: expect.stringContaining('etcd has removed its mark'),
    });
  });

  it('ends a wait for changes that is given up after it has reported some', async () => {
    const store = await open(newEtcdStore({ address }));
    await store.list();
    const given = new AbortController();
    const reported: string[] = [];
    const waiting = store.changed?.(given.signal, ({ key }) => reported.push(key) < 0);
    await store.create('0.json', 'x', {});
    await expect.poll(() => reported).toEqual(['0.json']);
    given.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });

  it('resolves a wait for changes of which the first ones are compacted, and not at once', async () => {
    // Compacting takes the history from every test that uses the server.
    const server = await startEtcdProcess();
    try {
      const store = await open(newEtcdStore(server));
      const etag = (await store.create('0.json', 'x', {})) as { etag: string };
      const { header } = (await etcdCall(server.endpoint, 'kv/put', { key: 'eA==', value: 'eA==' })) as {
        header: { revision: string };
      };
      await etcdCall(server.endpoint, 'kv/put', { key: 'eA==', value: 'eQ==' });
      await etcdCall(server.endpoint, 'kv/compaction', { revision: String(BigInt(header.revision) + 1n) });
      expect(Number.parseInt(etag.etag, 10)).toBeLessThan(Number(header.revision));
      const begun = performance.now();
      await store.changed?.(new AbortController().signal, () => false);
      expect(performance.now() - begun).toBeGreaterThan(1_150);
    } finally {
      await server.dispose();
    }
  });
});

describe('the age of a write', () => {
  const forMs = { expiresAfterMs: 1_000 };
  const etagOf = (result: WriteResult) =>
    result.status === 'written' ? result.etag : expect.fail('a conflict');

  it('is known to a task that starts later, once the mark of that very write is gone', async () => {
    // Not wrapped: nothing is observed.
    const store = new EtcdLeaseStore({
      ...base,
      url: 'etcd:',
      endpoints: [endpoint],
      prefix: newEtcdStore({ address }).split('/').slice(3).join('/'),
    });
    opened.push(store);
    const begun = performance.now();
    await store.create('marked.json', 'x', { taskid: 'a' }, forMs);
    await store.create('unmarked.json', 'x', {});
    const overwritten = etagOf(await store.create('overwritten.json', 'x', {}, forMs));
    await store.replace('overwritten.json', 'y', {}, overwritten);
    let renewedAt = performance.now();
    let renewed = etagOf(await store.create('renewed.json', '0', {}, forMs));
    const young = ['overwritten.json', 'renewed.json', 'unmarked.json'];
    let knownAfterMs: number | undefined;
    let renewals = 0;
    for (let i = 1; knownAfterMs === undefined || performance.now() < begun + 5_000; i += 1) {
      const shown = await Promise.all(['marked.json', ...young].map((key) => store.read(key)));
      const { objects } = await store.list();
      expect(objects.map(({ key }) => key)).toEqual(['marked.json', ...young]);
      // A server or a test that stands still for so long lets its mark go, too.
      const isRenewed = performance.now() - renewedAt < 2_000;
      renewals += isRenewed ? 1 : 0;
      const others = [...shown, ...objects].filter(
        (row) => row?.key !== 'marked.json' && (isRenewed || row?.key !== 'renewed.json'),
      );
      for (const row of others) expect(row?.age).toEqual({ min: 0, max: Infinity });
      if (knownAfterMs === undefined && shown[0]?.age.min === 1_001) knownAfterMs = performance.now() - begun;
      if (knownAfterMs !== undefined) expect(objects[0]?.age.min).toBe(1_001);
      renewedAt = performance.now();
      renewed = etagOf(await store.replace('renewed.json', String(i), {}, renewed, forMs));
      await systemClock.sleep(100);
    }
    expect(knownAfterMs).toBeGreaterThan(3_000);
    expect(renewals).toBeGreaterThan(1);
    expect(await store.read('marked.json')).toMatchObject({ body: 'x', metadata: { taskid: 'a' } });
  });

  it('is no change that is reported to a waiting task', async () => {
    const store = await open(newEtcdStore({ address }));
    await store.list();
    const reported: string[] = [];
    const given = new AbortController();
    const waiting = store.changed?.(given.signal, ({ key }) => reported.push(key) === 2);
    await store.create('0.json', 'x', {}, forMs);
    await store.create('1.json', 'x', {}, forMs);
    await waiting;
    expect(reported).toEqual(['0.json', '1.json']);
  });
});

describe('a server of several that fails', () => {
  it('is left for the next one, at once where nothing was sent', async () => {
    const dead = await freePort();
    const url = newEtcdStore({ address: `127.0.0.1:${dead},${address}` });
    const store = await open(url);
    expect(await store.create('0.json', 'x', {})).toMatchObject({ status: 'written' });
    expect((await store.list()).objects).toHaveLength(1);
  });

  it('is left for the next one when it does not answer', async () => {
    const { proxy, through } = await throughProxy(`etcd://${address}/x`);
    const silent = new URL(through).host;
    const store = await open(newEtcdStore({ address: `${silent},${address}` }), {}, 5_000);
    proxy.stall('both');
    const begun = systemClock.monotonic();
    expect(await store.read('0.json')).toBeUndefined();
    const tookMs = systemClock.monotonic() - begun;
    expect(await store.read('0.json')).toBeUndefined();
    expect(systemClock.monotonic() - begun - tookMs).toBeLessThan(tookMs);
  });

  it('is not asked a second time for a write whose reply was lost, which is then found', async () => {
    const { proxy, through } = await throughProxy(`etcd://${address}/x`);
    const store = await open(newEtcdStore({ address: `${new URL(through).host},${address}` }));
    const dropped = proxy.dropNextReply((head) => head.startsWith('POST /v3/kv/txn'));
    await expect(store.create('0.json', 'mine', {})).rejects.toMatchObject({
      fault: 'unreachable',
      outcome: 'unknown',
    });
    expect((await dropped).status).toBe(200);
    expect(await store.read('0.json')).toMatchObject({ body: 'mine' });
  });
});

describe('a store that cannot be used says so in one line', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  it('no server there', async () => {
    const port = await freePort();
    const url = `etcd://127.0.0.1:${port}/p`;
    const { error, text } = await failureOf((await open(url)).create('0.json', 'x', {}));
    expect(error).toMatchObject({ fault: 'unreachable', outcome: 'not-applied' });
    expect(text).toBe(
      `${url}: creating 0.json: cannot connect to 127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`,
    );
  });

  it.each([
    [
      404,
      'not found',
      'rejected',
      'answered HTTP 404 (not found): is this etcd from 3.4 on, with its JSON gateway, and etcds:// where it has TLS?',
    ],
    [200, '<html>', 'rejected', 'answered no JSON of etcd'],
    [200, '{}', 'rejected', 'answered no JSON of etcd'],

    [502, 'bad gateway', 'unavailable', 'answered HTTP 502 (bad gateway)'],
  ])('a server that is not etcd, which answers %i %j', async (status, body, fault, said) => {
    const server = createServer((_, response) => response.writeHead(status).end(body)).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    const store = await open(`etcd://127.0.0.1:${(server.address() as AddressInfo).port}/p`);
    for (const call of [
      () => store.read('0.json'),
      () => store.list(),
      () => store.create('0.json', 'x', {}),
    ]) {
      const { error, text } = await failureOf(call());
      expect(error).toMatchObject({ fault, outcome: 'unknown' });
      expect(text.endsWith(said)).toBe(true);
    }
  });

  it('a database that is full, which can be read all the same', async () => {
    const server = await startEtcdProcess({ flags: ['--quota-backend-bytes', '1000000'] });
    try {
      const store = await open(`etcd://${server.address}/p`);
      let failure: { error: unknown; text: string } | undefined;
      for (let i = 0; failure === undefined && i < 50; i += 1) {
        failure = await failureOf(store.create(`${i}.json`, 'x'.repeat(100_000), {})).catch(() => undefined);
      }
      expect(failure?.error).toMatchObject({ fault: 'unavailable', outcome: 'unknown' });
      expect(failure?.text).toMatch(/: \S+ takes no more \(etcdserver: mvcc: database space exceeded\)$/);
      expect(await store.read('0.json')).toMatchObject({ key: '0.json' });
    } finally {
      await server.dispose();
    }
  });
});

describe('a cluster with users', () => {
  let server: EtcdProcess;
  const store = (prefix: string, auth?: string) =>
    open(`etcd://${server.address}/${prefix}`, auth === undefined ? {} : { auth });
  beforeAll(async () => {
    server = await startEtcdProcess();
    await enableEtcdUsers(server.endpoint, 'orders', 'prod');
  });
  afterAll(() => server.dispose());

  it('lets in a user that it knows, also after it has forgotten the token', async () => {
    const known = await store('prod', 'orders:secret');
    expect(await known.create('0.json', 'x', {})).toMatchObject({ status: 'written' });
    await server.kill();
    await server.start();
    expect(await known.create('1.json', 'x', {}, { expiresAfterMs: 1_000 })).toMatchObject({
      status: 'written',
    });
    expect((await known.list()).objects).toHaveLength(2);
  });

  it('goes to the next server where one answers for a token with a page of its proxy', async () => {
    const proxy = createServer((_, response) => response.end('<html>')).listen(0, '127.0.0.1');
    try {
      await once(proxy, 'listening');
      const { port } = proxy.address() as AddressInfo;
      const url = `etcd://127.0.0.1:${port},${server.address}/prod`;
      const store = await open(url, { auth: 'orders:secret' });
      expect(await store.read('0.json')).toBeDefined();
    } finally {
      proxy.close();
    }
  });

  it.each([
    [
      'a wrong password',
      'prod',
      'orders:wrong',
      'denied',
      'authenticating: wrong user or password (etcdserver: authentication failed, invalid user ID or password)',
    ],
    [
      'an unknown user',
      'prod',
      'nobody:secret',
      'denied',
      'authenticating: wrong user or password (etcdserver: authentication failed, invalid user ID or password)',
    ],
    [
      'a user without the right',
      'staging',
      'orders:secret',
      'denied',
      'access denied (etcdserver: permission denied), needs readwrite on the keys below the prefix',
    ],
    [
      'no user',
      'prod',
      undefined,
      'rejected',
      'if the cluster has users, set etcd.auth (--etcd-auth): refused by 127.0.0.1:PORT (etcdserver: user name is empty)',
    ],
  ])('refuses %s, in one line', async (_, prefix, auth, fault, said) => {
    const one = await store(prefix, auth);
    for (const call of [
      () => one.read('0.json'),
      () => one.list(),
      () => one.create('9.json', 'x', {}),
      () => probeStore(one, base),
    ]) {
      const { error, text } = await failureOf(call());
      expect(error).toMatchObject({ fault, outcome: 'not-applied' });
      expect(text.replace(/:\d+ \(/, ':PORT (')).toMatch(/^etcd:\/\/127\.0\.0\.1:\d+\/\w+: [^\n]+$/);
      expect(text.replace(/:\d+ \(/, ':PORT (').endsWith(said)).toBe(true);
      expect(text).not.toMatch(/secret|:wrong/);
    }
  });

  it('is distinguished from one that has none', async () => {
    const { error, text } = await failureOf(
      (await open(newEtcdStore({ address }), { auth: 'orders:secret' })).read('0.json'),
    );
    expect(error).toMatchObject({ fault: 'denied' });
    expect(text).toMatch(
      /: the cluster has no users \(etcdserver: authentication is not enabled\): leave out etcd\.auth \(--etcd-auth\)$/,
    );
  });
});

describe('a cluster with TLS', () => {
  const authority = new TestAuthority();
  const { cert: serverCert, key: serverKey } = authority.issue({ name: 'etcd', hosts: 'IP:127.0.0.1' });
  const client = authority.issue({ name: 'orders' });
  const pem = (file: string) => readFileSync(file, 'utf8');
  const ca = pem(authority.ca);
  const pair = { cert: pem(client.cert), key: pem(client.key) };
  let server: EtcdProcess;
  beforeAll(async () => {
    const trust = ['--client-cert-auth', '--trusted-ca-file', authority.ca];
    server = await startEtcdProcess({
      tls: true,
      flags: ['--cert-file', serverCert, '--key-file', serverKey, ...trust],
    });
  });
  afterAll(async () => {
    await server.dispose();
    authority.dispose();
  });
  const first = async (url: string, etcd: EtcdAccess) => failureOf((await open(url, etcd)).list());

  it('lets in a client with a certificate, and notifies it of changes', async () => {
    const store = await open(`etcds://${server.address}/p`, { ca, ...pair });
    expect(await store.create('0.json', 'x', {})).toMatchObject({ status: 'written' });
    const waiting = store.changed?.(new AbortController().signal);
    await store.create('1.json', 'x', {});
    await waiting;
  });

  it('says in one line what is wrong', async () => {
    const url = `etcds://${server.address}/p`;
    const at = `${url}: listing: ${server.address}: `;
    expect((await first(url, pair)).text).toBe(
      `${at}the server's certificate is signed by no CA that is trusted here (unable to verify the first certificate)`,
    );
    expect((await first(url.replace('127.0.0.1', 'localhost'), { ca, ...pair })).text).toMatch(
      /: the server's certificate is for another host \([^\n]+\)$/,
    );
    expect((await first(url, { ca })).text).toMatch(/: the server wants a client certificate \([^\n:]+\)$/);
    const other = new TestAuthority('Other CA');
    const foreign = other.issue({ name: 'orders' });
    const refused = await first(url, { ca, cert: pem(foreign.cert), key: pem(foreign.key) });
    expect(refused.text).toMatch(/: the server refuses the client certificate \([^\n:]+\)$/);
    other.dispose();
    expect((await first(url.replace('etcds', 'etcd'), {})).text).toMatch(
      /: connection lost to \S+: [^\n]+ \(is it one for etcds:\/\/\?\)$/,
    );
    expect((await first(`etcds://${address}/p`, {})).text).toMatch(
      /: cannot connect to \S+: [^\n]+ \(is it one for etcd:\/\/\?\)$/,
    );
  });

  it.each([
    ['etcd', { ca }, 'etcd.ca: expected a store of etcds:// (nothing is encrypted without)'],
    ['etcds', { ca: 'no PEM' }, 'etcd.ca: expected certificates in PEM'],
    ['etcds', { cert: pair.cert }, 'etcd.key: expected the private key of the certificate'],
    [
      'etcds',
      { auth: 'hunter2' },
      'etcd.auth: expected USER:PASSWORD of a user of the etcd cluster, got "…"',
    ],
  ])('of %s:// with unusable options is refused before anything is sent', async (scheme, etcd, said) => {
    await expect(open(`${scheme}://127.0.0.1/p`, etcd)).rejects.toThrow(said);
  });
});
