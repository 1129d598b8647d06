import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { openZooKeeper } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { readFleet } from '../../../../src/zookeeper/configuration/fleet.js';
import {
  type Configuration,
  type ConfigurationEvent,
  type ConfigurationOptions,
  openConfiguration,
} from '../../../../src/zookeeper/configuration/index.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { expireSession } from '../../../support/zookeeper.js';
import { RecipeScene } from '../recipes/recipe-scene.js';
import { keys, publisher } from './config-scene.js';

const HISTORY = '/config/.nodelease/history/shop,prod';
let scene: RecipeScene;
let folder: string;
let opened: Configuration[];
beforeEach(async () => {
  scene = new RecipeScene();
  folder = await mkdtemp(join(tmpdir(), 'nodelease-config-'));
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((config) => config.close()));
  await scene.close();
  await stopProxies();
  await rm(folder, { recursive: true });
});

async function open(client: ZooKeeper, options: Partial<ConfigurationOptions> = {}): Promise<Configuration> {
  const config = await openConfiguration(client, { app: 'shop', profile: 'prod', ...options });
  opened.push(config);
  return config;
}
const plain = ({ values }: Configuration) =>
  Object.fromEntries([...values].map(([key, { value }]) => [key, value]));
const nodesOf = async (client: ZooKeeper) =>
  (await readFleet(client, '/config', {}, 'shop,prod'))[0]?.nodes ?? [];
const shared = { app: 'application', profile: undefined };

describe('a configuration', () => {
  it('is merged of four contexts, the most specific first, and shows where each value comes from', async () => {
    const client = await scene.open();
    await publisher(client, shared).publish(keys({ a: '4', b: '4', c: '4', d: '4' }));
    await publisher(client, { app: 'application' }).publish(keys({ a: '3', b: '3', c: '3' }));
    await publisher(client, { profile: undefined }).publish(keys({ a: '2', b: '2' }));
    await publisher(client).publish(keys({ a: '1' }));
    const config = await open(client);
    expect(Object.fromEntries(config.values)).toEqual({
      a: { value: '1', context: 'shop,prod' },
      b: { value: '2', context: 'shop' },
      c: { value: '3', context: 'application,prod' },
      d: { value: '4', context: 'application' },
    });
    expect(config.revisions).toEqual({ 'shop,prod': 1, shop: 1, 'application,prod': 1, application: 1 });
  });

  it('is empty where nothing was published, and follows from then on what is published and what is changed directly', async () => {
    const client = await scene.open();
    const config = await open(await scene.open());
    const reported: unknown[] = [];
    config.onChange(({ changes }) => reported.push(...changes));
    expect(plain(config)).toEqual({});
    await publisher(client).publish(keys({ 'db.url': 'a', 'db.user': 'u' }));
    await expect.poll(() => plain(config)).toEqual({ 'db.url': 'a', 'db.user': 'u' });
    await publisher(client, shared).publish(keys({ 'log.level': 'info' }));
    await expect.poll(() => config.get('log.level')).toBe('info');
    await client.setData('/config/shop,prod/db/url', 'b');
    await expect.poll(() => config.get('db.url')).toBe('b');
    await client.create('/config/shop,prod/by-hand', 'x', 'shared');
    await expect.poll(() => config.get('by-hand')).toBe('x');
    await client.remove('/config/shop,prod/db/user');
    await expect.poll(() => config.get('db.user')).toBeUndefined();
    expect(reported).toEqual([
      { key: 'db.url', old: undefined, new: 'a' },
      { key: 'db.user', old: undefined, new: 'u' },
      { key: 'log.level', old: undefined, new: 'info' },
      { key: 'db.url', old: 'a', new: 'b' },
      { key: 'by-hand', old: undefined, new: 'x' },
      { key: 'db.user', old: 'u', new: undefined },
    ]);
  });

  it('never shows a part of what was published together', async () => {
    const client = await scene.open();
    const config = await open(await scene.open());
    const torn: unknown[] = [];
    config.onChange(() => {
      const values = new Set([config.get('a'), config.get('b.c'), config.get('z')]);
      if (values.size > 1) torn.push([...values]);
    });
    for (let n = 1; n <= 40; n += 1)
      await publisher(client).publish(keys({ a: String(n), 'b.c': String(n), z: String(n) }));
    await expect.poll(() => config.get('z')).toBe('40');
    expect(torn).toEqual([]);
  });

  it('has the overrides of its node id, from when they are published until they go', async () => {
    const client = await scene.open();
    await publisher(client).publish(keys({ a: 'all' }));
    const [canary, other] = [
      await open(await scene.open(), { nodeId: 3 }),
      await open(await scene.open(), { nodeId: 4 }),
    ];
    await publisher(client, { nodes: '0-3' }).publish(keys({ a: 'new', b: 'new' }));
    await expect.poll(() => canary.values.get('a')).toEqual({ value: 'new', context: 'shop,prod@nodes=0-3' });
    // Of two ranges the narrower one counts.
    await publisher(client, { nodes: '3' }).publish(keys({ a: 'newer' }));
    await expect.poll(() => plain(canary)).toEqual({ a: 'newer', b: 'new' });
    expect(canary.revisions).toMatchObject({
      'shop,prod@nodes=3': 1,
      'shop,prod@nodes=0-3': 1,
      'shop,prod': 1,
    });
    await publisher(client).publish(keys({ a: 'all of them' }));
    await expect.poll(() => other.revisions['shop,prod']).toBe(2);
    expect(plain(other)).toEqual({ a: 'all of them' });
    for (const nodes of ['3', '0-3'])
      await publisher(client, { nodes }).publish(({ properties }) =>
        [...properties.keys()].map((key) => ({ key, new: null })),
      );
    await expect.poll(() => plain(canary)).toEqual({ a: 'all of them' });
  });

  it('is what a schema makes of it, or says which keys are wrong', async () => {
    const client = await scene.open();
    await publisher(client).publish(keys({ 'db.pool-size': '10', 'db.url': 'secret', other: 'x' }));
    const config = await open(client);
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          const size = Number((value as Record<string, string>)['pool-size']);
          return size <= 10
            ? { value: { size } }
            : { issues: [{ message: 'too many', path: ['pool-size'] }] };
        },
      },
    };
    const { size }: { size: number } = config.get(schema, 'db');
    expect(size).toBe(10);
    await publisher(client).publish(keys({ 'db.pool-size': '11' }));
    await expect.poll(() => config.get('db.pool-size')).toBe('11');
    expect(() => config.get(schema, 'db')).toThrow(
      'the configuration is not as expected: db.pool-size: too many',
    );
    const slow = { '~standard': { ...schema['~standard'], validate: async () => ({ value: 1 }) } };
    expect(() => config.get(slow)).toThrow('without waiting');
  });

  it('is there with a damaged history, too', async () => {
    const client = await scene.open();
    await publisher(client).publish(keys({ a: '1' }));
    await client.setData('/config/.nodelease/history/shop,prod', Buffer.from([0xff, 0x00]));
    const config = await open(client);
    expect([plain(config), config.revisions['shop,prod']]).toEqual([{ a: '1' }, 0]);
  });

  it('is read by all users, and published by its own; readers of all users report which revision they run', async () => {
    const owner = await scene.open({ auth: 'digest:ada:secret' });
    const other = await scene.open({ auth: 'digest:bob:secret' });
    await publisher(owner).publish(keys({ 'a.b': '1' }));
    await publisher(owner, { nodes: '3' }).publish(keys({ 'a.b': '2' }));
    const config = await open(other, { nodeId: 3 });
    expect(plain(config)).toEqual({ 'a.b': '2' });
    for (const client of [other, await scene.open()]) {
      await expect(publisher(client).publish(keys({ c: '1' }))).rejects.toMatchObject({ fault: 'no-auth' });
      await expect(client.create('/config/shop,prod/c', '1', 'persistent')).rejects.toMatchObject({
        fault: 'no-auth',
      });
      await expect(client.remove('/config/shop,prod/a/b')).rejects.toMatchObject({ fault: 'no-auth' });
    }
    await expect(publisher(other, { app: 'mail' }).publish(keys({ c: '1' }))).resolves.toMatchObject({
      revision: 1,
    });
    await expect
      .poll(() => nodesOf(owner))
      .toMatchObject([{ nodeId: 3, revisions: { 'shop,prod@nodes=3': 1, 'shop,prod': 1 } }]);
  });

  it('does not go back, as where a server lags behind or the tree is gone, and says so', async () => {
    const client = await scene.open();
    const folders = [
      '/config/shop,prod/a',
      '/config/shop,prod',
      ...[1, 2].map((n) => `${HISTORY}/rev-000000000${n}`),
      HISTORY,
    ];
    for (const a of ['1', '2']) await publisher(client).publish(keys({ a }));
    const events: ConfigurationEvent[] = [];
    const snapshot = join(folder, 'shop.json');
    const config = await open(await scene.open(), { snapshot, onEvent: (event) => events.push(event) });
    await client.multi(folders.map((path) => ({ type: 'remove', path })));
    const problem = 'shop,prod is at revision 0, where revision 2 was seen before';
    await expect.poll(() => events).toContainEqual({ type: 'read-failed', problem });
    expect(plain(config)).toEqual({ a: '2' });
    // Who starts now has nothing, and leaves the snapshot alone.
    await (await open(client, { snapshot })).close();
    expect(JSON.parse(await readFile(snapshot, 'utf8'))).toMatchObject({ values: { a: { value: '2' } } });
    for (const a of ['3', '4', '5']) await publisher(client).publish(keys({ a }));
    await expect.poll(() => config.get('a')).toBe('5');
    await expect.poll(() => events.at(-1)).toEqual({ type: 'read-again' });
  });

  it('can be iterated, change by change, until it is closed', async () => {
    const client = await scene.open();
    const config = await open(await scene.open());
    const reported: string[] = [];
    const iteration = (async () => {
      for await (const { changes } of config) reported.push(...changes.map(({ key }) => key));
    })();
    for (const key of ['a', 'b', 'c']) {
      await publisher(client).publish(keys({ [key]: '1' }));
      await expect.poll(() => reported).toContain(key);
    }
    await config.close();
    await iteration;
    expect(reported).toEqual(['a', 'b', 'c']);
  });

  it('goes on after a lost connection and a lost session, with what was changed meanwhile, and leaves no watch', async () => {
    const client = await scene.open();
    await publisher(client).publish(keys({ a: '1' }));
    const { client: own, proxy } = await scene.openThroughProxy({ sessionTimeoutMs: 4_000 });
    const config = await open(own, { nodeId: 1 });
    proxy.cut();
    await publisher(client).publish(keys({ a: '2' }));
    expect(config.get('a')).toBe('1');
    proxy.heal();
    await expect.poll(() => config.get('a')).toBe('2');
    const { sessionId } = await own.whenConnected();
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await publisher(client).publish(keys({ a: '3' }));
    await expect.poll(() => config.get('a')).toBe('3');
    await expect
      .poll(async () =>
        (await nodesOf(client)).map(({ nodeId, revisions }) => [nodeId, revisions['shop,prod']]),
      )
      .toEqual([[1, 3]]);
    await config.close();
    expect(await nodesOf(client)).toEqual([]);
    expect(own.openWatches).toBe(0);
  });
});

describe('the snapshot', () => {
  const nowhere = () => openZooKeeper({ connect: `127.0.0.1:1${scene.chroot}`, clock, random });

  it('is used, and said so, while ZooKeeper is away at the start; then the tree counts again', async () => {
    const client = await scene.open();
    const snapshot = join(folder, 'shop.json');
    await publisher(client).publish(keys({ a: '1', 'db.password': 'secret' }));
    await (await open(client, { snapshot })).close();
    expect((await stat(snapshot)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['shop.json']);
    await publisher(client).publish(keys({ a: '2' }));

    const { client: own, proxy } = await scene.openThroughProxy();
    proxy.cut();
    const events: ConfigurationEvent[] = [];
    const config = await open(own, { snapshot, timeoutMs: 500, onEvent: (event) => events.push(event) });
    expect(events).toEqual([
      {
        type: 'snapshot-used',
        at: expect.stringMatching(/^20/),
        revisions: expect.objectContaining({ 'shop,prod': 1 }),
        problem: expect.any(String),
      },
    ]);
    expect(config.source).toMatchObject({ from: 'snapshot' });
    expect(plain(config)).toEqual({ a: '1', 'db.password': 'secret' });
    proxy.heal();
    await expect.poll(() => config.get('a')).toBe('2');
    expect(config.source).toEqual({ from: 'zookeeper' });
    await expect.poll(async () => JSON.parse(await readFile(snapshot, 'utf8')).values.a.value).toBe('2');
  });

  it('of another configuration, a broken one and a missing one are refused', async () => {
    const client = await scene.open();
    const snapshot = join(folder, 'shop.json');
    const away = nowhere();
    try {
      const start = (options: Partial<ConfigurationOptions>) =>
        open(away, { snapshot, timeoutMs: 50, ...options });
      await expect(start({})).rejects.toThrow(/there is no snapshot: ENOENT.*shop\.json/);
      await (await open(client, { snapshot })).close();
      await expect(start({ app: 'mail' })).rejects.toThrow(
        'is a snapshot of /config/shop,prod, not of /config/mail,prod',
      );
      // Without overrides it is every node's.
      await (await start({ nodeId: 1 })).close();
      await publisher(client, { nodes: '0' }).publish(keys({ a: 'canary' }));
      await (await open(client, { snapshot, nodeId: 0 })).close();
      await expect(start({ nodeId: 1 })).rejects.toThrow(
        'is a snapshot of /config/shop,prod for node 0, not of /config/shop,prod for node 1',
      );
      await expect(start({})).rejects.toThrow(
        'is a snapshot of /config/shop,prod for node 0, not of /config/shop,prod',
      );
      await writeFile(snapshot, '{}');
      await expect(start({})).rejects.toMatchObject({
        code: 'ZOOKEEPER_FAILED',
        message: expect.stringContaining('is no snapshot of a configuration'),
      });
    } finally {
      await away.close();
    }
  });

  it('that cannot be written is reported, and the configuration goes on', async () => {
    const events: ConfigurationEvent[] = [];
    const client = await scene.open();
    await publisher(client).publish(keys({ a: '1' }));
    await open(client, {
      snapshot: join(folder, 'missing', 'shop.json'),
      onEvent: (event) => events.push(event),
    });
    await expect
      .poll(() => events)
      .toEqual([{ type: 'snapshot-failed', problem: expect.stringContaining('ENOENT') }]);
  });
});
