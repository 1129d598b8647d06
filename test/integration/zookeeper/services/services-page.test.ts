import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { leaseText, servicesIn } from '../../../../src/app/console/services/services-model.js';
import { startNodeServer } from '../../../../src/app/http/node-server.js';
import {
  type DiscoveryServer,
  type DiscoveryServerOptions,
  startDiscoveryServer,
} from '../../../../src/app/services/curator/discovery-server.js';
import { servicesPage } from '../../../../src/app/services/services-api.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { ServiceEntry } from '../../../../src/node/wire/entries-wire.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { type FollowedServices, followServices } from '../../../support/followed-services.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, data, restrict } from '../discovery/discovery-support.js';
import { closeRegistrants, orders, registrant, sessionIdOf, until } from './services-support.js';

const LOOPBACK = { host: '127.0.0.1', port: 0 };
const TOKEN = 'a-token-for-the-tests';
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

let address: string;
let tree: ZooKeeperClient;
let folder: string;
let bearerTokenFile: string;
const closed: (() => unknown)[] = [];

beforeEach(async () => {
  address = `${inject('zookeeper').connect}${uniqueChroot('page')}`;
  tree = client(address);
  folder = await mkdtemp(join(tmpdir(), 'nodelease-page-'));
  bearerTokenFile = join(folder, 'token');
  await writeFile(bearerTokenFile, `${TOKEN}\n`);
});

afterEach(async () => {
  for (const close of closed.splice(0).reverse()) await close();
  await closeRegistrants();
  await rm(folder, { recursive: true });
});

async function start(options: Partial<DiscoveryServerOptions> = {}): Promise<DiscoveryServer> {
  const server = await startDiscoveryServer({
    zookeeper: tree,
    clock: systemClock,
    random: systemRandom,
    listen: LOOPBACK,
    ...options,
  });
  closed.push(() => server.close());
  return server;
}

function follow({ url }: { readonly url: string }, headers?: Record<string, string>): FollowedServices {
  const followed = followServices(url, headers);
  closed.push(followed.close);
  return followed;
}

const writable = () => start({ bearerTokenFile, allowWrites: true });

const change = (
  { url }: DiscoveryServer,
  id: string,
  enabled: unknown,
  headers: Record<string, string> = AUTHORIZED,
) =>
  fetch(`${url}/api/services/orders/${encodeURIComponent(id)}/enabled`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(enabled),
  });

const remove = ({ url }: DiscoveryServer, id: string, headers: Record<string, string> = AUTHORIZED) =>
  fetch(`${url}/api/services/orders/${encodeURIComponent(id)}`, { method: 'DELETE', headers });

const stored = async (id: string) => (await tree.read(`/services/orders/${id}`))?.data.toString();

describe('the page of services is notified', () => {
  it('of services, instances and payloads, of what is no instance, and of every change', async () => {
    const [one, two] = [registrant(address), registrant(address)];
    await one.discovery.register(orders({ id: 'one', payload: { zone: '<b>a</b>' } }));
    await two.discovery.register(orders({ id: 'two', enabled: false, address: 'fd00::1' }));
    await tree.createWithParents('/services/orders/broken', '{"name":', 'persistent');
    await tree.createWithParents('/services/orders/empty', '', 'persistent');
    await tree.createWithParents(
      '/services/orders/other',
      '{"name":"billing","id":"x","address":"10.0.0.9"}',
      'persistent',
    );
    await tree.createWithParents('/services/orders/deep/below', 'x', 'persistent');
    await tree.ensurePath('/services/idle');
    const followed = follow(await start());
    await until(() => followed.model.store.isWhole);
    expect(followed.model.about).toEqual({ zookeeper: tree.description, path: '/services', writes: false });
    expect(servicesIn(followed.model.entries).map(({ service }) => service.service)).toEqual([
      'idle',
      'orders',
    ]);
    expect(followed.instances('orders')).toEqual([
      'broken: is not JSON',
      'deep: is empty',
      'empty: is empty',
      'one: enabled',
      'other: enabled',
      'two: disabled',
    ]);
    expect(followed.order('one')).toMatchObject({
      instance: { address: '10.0.0.7', port: 8080, serviceType: 'DYNAMIC' },
      text: '{"zone":"<b>a</b>"}',
      sessionId: sessionIdOf(one.zookeeper),
      changedAt: expect.stringMatching(/^\d{4}-.*T.*Z$/),
      node: null,
      problem: null,
    });
    expect(followed.order('broken')).toMatchObject({ instance: null, text: '{"name":', sessionId: null });
    expect(followed.order('other')).toMatchObject({ problem: 'says that it is billing/x' });

    await one.discovery.update(orders({ id: 'one', payload: { zone: 'b' } }));
    await until(() => followed.order('one')?.text === '{"zone":"b"}');
    await two.discovery.close();
    await tree.remove('/services/orders/broken');
    await tree.createWithParents('/services/billing/new', '{"address":"10.0.0.3"}', 'persistent');
    await until(
      () => followed.instances('billing').length === 1 && followed.instances('orders').length === 4,
    );
    expect([...followed.model.takeSpoken()].sort()).toEqual([
      'billing new has come',
      'orders broken has gone',
      'orders two has gone',
    ]);
    await tree.remove('/services/idle');
    await until(() => !followed.model.entries.has('/services/idle'));
  });

  it('whose lease an instance is, by the discovery tree or else by its payload', async () => {
    const { discovery } = registrant(address);
    const spring = {
      '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
      id: 's',
      name: 'orders',
      metadata: { nodeId: '2', version: '4' },
    };
    await discovery.register(orders({ id: 'mapped', payload: { nodeId: 1, version: 7 } }));
    await discovery.register(orders({ id: 'claims', payload: { nodeId: 9, version: 1 } }));
    await discovery.register(orders({ id: 'spring', payload: spring }));
    await discovery.register(orders({ id: 'task-3' }));
    await discovery.register(orders({ id: 'no-node' }));
    const node = (id: number, version: number) =>
      tree.createWithParents(
        `/discovery/nodes/00/${(id + 8).toString(16).padStart(2, '0')}`,
        data(id, version),
        'ephemeral',
      );
    await node(1, 7);
    await node(2, 5);
    await node(3, 2);
    const followed = follow(await start());
    const lease = (id: string) => leaseText(followed.order(id) as ServiceEntry);
    await until(() => followed.model.store.isWhole);
    // The two trees are read at the same time.
    await expect
      .poll(() => ['mapped', 'task-3', 'spring', 'claims', 'no-node'].map(lease))
      .toEqual([
        'node id 1, version 7, task task-1',
        'node id 3, version 2, task task-3',
        'node id 2, version 4, says its payload: the discovery tree has version 5',
        'node id 9, version 1, says its payload: the discovery tree has no such node',
        '',
      ]);
    await node(9, 1);
    await until(() => lease('claims') === 'node id 9, version 1, task task-9');
  });

  it('of an instance that may not be read, and of all others', async () => {
    await tree.createWithParents('/services/orders/secret', '{}', 'persistent');
    await tree.createWithParents('/services/orders/open', '{}', 'persistent');
    await restrict(address, '/services/orders/secret', ['write', 'delete', 'admin']);
    const clock = new VirtualClock();
    const followed = follow(await start({ clock }));
    await until(() => followed.model.about !== undefined);
    await until(async () => {
      await clock.advance(200);
      return followed.model.store.isWhole;
    });
    expect(followed.instances('orders')).toEqual([
      'open: enabled',
      'secret: has not let itself be read for 5 s',
    ]);
  });

  it('on as many pages as there are, and on the next one after the last has gone', async () => {
    for (let id = 0; id < 50; id += 1)
      await tree.createWithParents(`/services/orders/${id}`, '{}', 'persistent');
    const server = await start();
    const pages = [follow(server), follow(server), follow(server)];
    await until(() =>
      pages.every((page) => page.model.store.isWhole && page.instances('orders').length === 50),
    );
    for (const page of pages) page.close();
    await tree.remove('/services/orders/0');
    const next = follow(server);
    await until(() => next.model.store.isWhole);
    expect(next.instances('orders').length).toBe(49);
    await tree.setData('/services/orders/1', '{"enabled":false}');
    await until(() => next.instances('orders').includes('1: disabled'));
    expect(pages[0]?.instances('orders')).toContain('1: enabled');
  });

  it('that ZooKeeper is away, and of what has changed meanwhile', async () => {
    const { proxy, through } = await throughProxy(address);
    await tree.createWithParents('/services/orders/one', '{}', 'persistent');
    const followed = follow(await start({ zookeeper: client(through) }));
    await until(() => followed.model.store.isWhole);
    proxy.cut();
    await until(() => followed.model.store.state === 'failing');
    expect(followed.instances('orders')).toEqual(['one: enabled']);
    expect(followed.model.staleSince).toBeDefined();
    await tree.setData('/services/orders/one', '{"enabled":false}');
    proxy.heal();
    await until(
      () => followed.model.store.state === 'ok' && followed.instances('orders')[0] === 'one: disabled',
    );
    expect(followed.model.staleSince).toBeUndefined();
  });

  it('nothing more once the server ends', async () => {
    const server = await start();
    const followed = follow(server);
    await until(() => followed.model.store.isWhole);
    const before = followed.states.length;
    const begun = performance.now();
    await server.close();
    // A second or so, on a machine that has much else to do.
    expect(performance.now() - begun).toBeLessThan(20_000);
    await until(() => followed.states.slice(before).some(({ kind }) => kind === 'waiting'));
  });
});

describe('a change by the page', () => {
  it('is refused without --allow-writes, without the right token, and from another site', async () => {
    await tree.createWithParents('/services/orders/one', '{}', 'persistent');
    const readOnly = await start({ bearerTokenFile });
    expect([(await change(readOnly, 'one', false)).status, (await remove(readOnly, 'one')).status]).toEqual([
      403, 403,
    ]);
    const server = await writable();
    const cookies = { origin: 'https://evil.example', cookie: `token=${TOKEN}` };
    for (const headers of [{}, { authorization: 'Bearer another-token-of-16' }, cookies]) {
      expect([
        (await change(server, 'one', false, headers)).status,
        (await remove(server, 'one', headers)).status,
      ]).toEqual([401, 401]);
    }
    // What a browser asks before it sends the header for a page of another origin.
    const preflight = {
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'authorization',
      ...cookies,
    };
    const asked = await fetch(`${server.url}/api/services/orders/one/enabled`, {
      method: 'OPTIONS',
      headers: preflight,
    });
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([405, null]);
    expect(await stored('one')).toBe('{}');
  });

  it('needs a token from the start, and a server that is not read-only', async () => {
    await expect(start({ allowWrites: true })).rejects.toThrow(
      /^allowWrites: expected a bearer token file with it/,
    );
    await expect(start({ allowWrites: true, readOnly: true, bearerTokenFile })).rejects.toThrow(
      /^allowWrites: expected a server that is not read-only/,
    );
  });

  it('disables an instance for every discovery client, and enables it again, and leaves all else as its registrant wrote it', async () => {
    const json =
      '{"name":"orders","id":"one","address":"10.0.0.1","port":80,"big":9007199254740993,"serviceType":"STATIC","enabled":true}';
    await tree.createWithParents('/services/orders/one', json, 'persistent');
    const { discovery } = registrant(address);
    const provider = discovery.provider('orders');
    await provider.ready;
    expect(provider.pick()?.id).toBe('one');
    const server = await writable();
    expect((await change(server, 'one', false)).status).toBe(204);
    await until(() => provider.pick() === undefined);
    expect(await stored('one')).toBe(json.replace('"enabled":true', '"enabled":false'));
    expect((await change(server, 'one', true)).status).toBe(204);
    await until(() => provider.pick()?.id === 'one');
    expect(JSON.parse((await stored('one')) ?? '')).not.toHaveProperty('enabled');
    expect(await stored('one')).toContain('"big":9007199254740993');
  });

  it('disables an instance of a live task, which keeps it so until it registers or updates it again', async () => {
    const { discovery, events, zookeeper } = registrant(address);
    await discovery.register(orders());
    const server = await writable();
    const before = await tree.read('/services/orders/one');
    expect((await change(server, 'one', false)).status).toBe(204);
    const isEnabled = async () => (await discovery.queryForInstance('orders', 'one'))?.enabled;
    // A read behind the watch: what the registrant does about it has been done then.
    for (let round = 0; round < 20; round += 1) expect(await isEnabled()).toBe(false);
    const after = await tree.read('/services/orders/one');
    expect([after?.stat.owner, after?.stat.createdZxid, after?.stat.version]).toEqual([
      sessionIdOf(zookeeper),
      before?.stat.createdZxid,
      1,
    ]);
    expect(events.filter(({ type }) => type === 'restored')).toEqual([]);
    const updated = orders({ payload: { zone: 'b' } });
    await discovery.update(updated);
    expect(await isEnabled()).toBe(true);
    // What the registrant itself enables and disables is no operator's word.
    for (const enabled of [false, true, false, true]) {
      await discovery.update({ ...updated, enabled });
      expect(await isEnabled()).toBe(enabled);
    }
  });

  it('removes an instance, and what is none', async () => {
    await tree.createWithParents('/services/orders/one', '{}', 'persistent');
    await tree.createWithParents('/services/orders/not json? 100%/below', '', 'persistent');
    const server = await writable();
    expect((await remove(server, 'one')).status).toBe(204);
    expect((await remove(server, 'one')).status).toBe(404);
    expect(await (await change(server, 'not json? 100%', false)).json()).toMatchObject({
      message: expect.stringContaining('got a znode that is empty'),
    });
    expect(await (await remove(server, 'not json? 100%')).json()).toMatchObject({
      error: 'refused-by-zookeeper',
    });
    await tree.remove('/services/orders/not json? 100%/below');
    expect((await remove(server, 'not json? 100%')).status).toBe(204);
    expect(await tree.children('/services/orders')).toEqual([]);
  });

  it('says what is wrong with the request', async () => {
    const server = await writable();
    await tree.createWithParents('/services/orders/one', '{}', 'persistent');
    expect((await change(server, 'one', 'no')).status).toBe(400);
    expect((await change(server, 'two', false)).status).toBe(404);
    expect((await change(server, '..', false)).status).toBe(404);
    expect((await change(server, 'one', false, { ...AUTHORIZED, 'content-type': 'text/plain' })).status).toBe(
      415,
    );
  });
});

it('a console reports the same behind its token, and names it in its own page', async () => {
  await tree.createWithParents('/services/orders/one', '{}', 'persistent');
  const options = {
    listen: LOOPBACK,
    clock: systemClock,
    parts: [servicesPage({ zookeeper: tree, allowWrites: true })],
  };
  await expect(startNodeServer(options)).rejects.toThrow(/a bearer token file with it/);
  const server = await startNodeServer({ ...options, bearerTokenFile });
  closed.push(() => server.close());
  expect((await fetch(`${server.url}/api/services`)).status).toBe(401);
  const followed = follow(server, AUTHORIZED);
  await until(() => followed.instances('orders')[0] === 'one: enabled');
  expect(followed.model.about?.writes).toBe(true);
});
