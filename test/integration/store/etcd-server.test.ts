import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { explain } from '../../../src/base/errors.js';
import { systemClock, systemRandom } from '../../../src/base/system.js';
import type { EtcdAccess } from '../../../src/store/etcd/index.js';
import type { LeaseStore } from '../../../src/store/lease-store.js';
import { openStore } from '../../../src/store/open-store.js';
import { probeStore } from '../../../src/store/probe/probe.js';
import { newEtcdStore } from '../../support/etcd.js';
import { enableEtcdUsers, etcdCall, etcdGet, etcdPut } from '../../support/etcd-admin.js';
import { stopProxies, throughProxy } from '../../support/network/proxies.js';
import { freePort } from '../../support/servers/free-ports.js';
import { type EtcdProcess, startEtcdProcess } from '../../support/servers/etcd-process.js';

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

const causeOf = (call: Promise<unknown>) => call.then(() => 'no failure', explain);

describe('a store on a real etcd', () => {
  it('keeps its objects where its URL says, for people to read', async () => {
    const url = newEtcdStore({ address });
    const store = await open(url);
    expect(store.url).toBe(url);
    await store.create('7.json', '{"taskId":"é"}', { taskid: 'task-a', version: '1' });
    const key = `${url.slice(`etcd://${address}/`.length)}/7.json`;
    expect(await etcdGet(endpoint, key)).toBe('{"taskid":"task-a","version":"1"}\n{"taskId":"é"}');
    await etcdPut(endpoint, key, '{"by":"hand"}');
    expect(await store.read('7.json')).toMatchObject({ body: '{"by":"hand"}', metadata: {} });
  });

  it('lists more objects than one request shows, and none of the stores below it', async () => {
    const url = newEtcdStore({ address });
    const store = await open(url);
    const deeper = await open(`${url}/locks/nightly`);
    const keys = Array.from({ length: 1_210 }, (_, id) => `${id}.json`);
    for (let at = 0; at < keys.length; at += 50) {
      await Promise.all(keys.slice(at, at + 50).map((key) => Promise.all([store, deeper].map((each) => each.create(key, 'x', {})))));
    }
    await store.create('z.json', 'x', {});
    await (await open(`${url}2`)).create('0.json', 'x', {});
    const sorted = [...keys, 'z.json'].sort();
    expect((await store.list()).objects.map(({ key }) => key)).toEqual(sorted);
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
    const store = await open(newEtcdStore({ address: `${silent},${address}` }), {}, 400);
    proxy.stall('both');
    await expect(store.read('0.json')).rejects.toMatchObject({ fault: 'unreachable', outcome: 'unknown' });
    expect(await store.read('0.json')).toBeUndefined();
  });

  it('is not asked a second time for a write whose reply was lost, which is then found', async () => {
    const { proxy, through } = await throughProxy(`etcd://${address}/x`);
    const store = await open(newEtcdStore({ address: `${new URL(through).host},${address}` }));
    const dropped = proxy.dropNextReply((head) => head.startsWith('POST /v3/kv/txn'));
    await expect(store.create('0.json', 'mine', {})).rejects.toMatchObject({ fault: 'unreachable', outcome: 'unknown' });
    expect((await dropped).status).toBe(200);
    expect(await store.read('0.json')).toMatchObject({ body: 'mine' });
  });
});

describe('a store that cannot be used', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  it('says so in one line: no server there', async () => {
    const port = await freePort();
    const url = `etcd://127.0.0.1:${port}/p`;
    const failing = (await open(url)).create('0.json', 'x', {});
    await expect(failing).rejects.toMatchObject({ fault: 'unreachable', outcome: 'not-applied' });
    expect(await causeOf(failing)).toBe(`${url}: creating 0.json: cannot connect to 127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`);
  });

  it.each([
    [404, 'not found', 'rejected'],
    [200, '<html>', 'rejected'],
    [200, '{}', 'rejected'],
    [502, 'bad gateway', 'unavailable'],
  ])('says so in one line: a server that is not etcd, which answers %i %j', async (status, body, fault) => {
    const server = createServer((_, response) => response.writeHead(status).end(body)).listen(0, '127.0.0.1');
    servers.push(server);
    await new Promise((resolve) => server.once('listening', resolve));
    const store = await open(`etcd://127.0.0.1:${(server.address() as AddressInfo).port}/p`);
    for (const call of [store.read('0.json'), store.list(), store.create('0.json', 'x', {})]) {
      await expect(call).rejects.toMatchObject({ fault, outcome: 'unknown' });
      console.log(await causeOf(call));
    }
  });
});

describe('a cluster with users', () => {
  let server: EtcdProcess;
  const store = (prefix = 'prod', auth = 'orders:secret') => open(`etcd://${server.address}/${prefix}`, { auth });
  beforeAll(async () => {
    server = await startEtcdProcess();
    await enableEtcdUsers(server.endpoint, 'orders', 'prod');
  });
  afterAll(() => server.dispose());

  it('lets in a user that it knows, also after it has forgotten the token', async () => {
    const known = await store();
    expect(await known.create('0.json', 'x', {})).toMatchObject({ status: 'written' });
    await server.kill();
    await server.start();
    expect(await known.create('1.json', 'x', {})).toMatchObject({ status: 'written' });
    expect((await known.list()).objects).toHaveLength(2);
  });

  it('refuses in one line', async () => {
    for (const one of [await store('prod', 'orders:wrong'), await store('prod', 'nobody:secret'), await store('staging'), await open(`etcd://${server.address}/prod`)]) {
      for (const call of [one.read('0.json'), one.create('9.json', 'x', {}), probeStore(one, base)]) console.log(await causeOf(call), await call.catch((e) => `${e.fault} ${e.outcome}`));
    }
    const other = await open(newEtcdStore({ address }), { auth: 'orders:secret' });
    console.log(await causeOf(other.read('0.json')));
  });
});

describe('a database that is full', () => {
  it('is', async () => {
    const server = await startEtcdProcess({ flags: ['--quota-backend-bytes', '1000000'] });
    const store = await open(`etcd://${server.address}/p`);
    for (let i = 0; i < 30; i++) {
      const call = store.create(`${i}.json`, 'x'.repeat(100_000), {});
      const text = await causeOf(call);
      if (text !== 'no failure') {
        console.log(text, await call.catch((e) => `${e.fault} ${e.outcome}`), (await store.read('0.json'))?.etag);
        break;
      }
    }
    await server.dispose();
  });
});
