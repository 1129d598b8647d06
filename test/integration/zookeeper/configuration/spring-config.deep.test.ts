import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { type Configuration, openConfiguration } from '../../../../src/zookeeper/configuration/index.js';
import { stopJavaPeers } from '../../../support/peers/java-peer.js';
import { type SpringConfigPeer, startSpringConfigPeer } from '../../../support/peers/spring-config-peer.js';
import { killAll, runCli } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, wholeTree } from '../discovery/discovery-support.js';
import { keys, publisher } from './config-scene.js';

const SEEN = { timeout: 30_000, interval: 50 };
const NAME = { app: 'shop', profile: 'prod' };

let connect: string;
let zookeeper: ZooKeeperClient;
/** One for all tests: a start takes seconds. */
let peer: SpringConfigPeer | undefined;

beforeAll(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('spring-config')}`;
});
beforeEach(async () => {
  zookeeper = client(connect);
  for (const path of (await wholeTree(zookeeper, '/config')).reverse()) await zookeeper.remove(path);
  await zookeeper.ensurePath('/config');
  if (peer) await springWith({});
});
afterEach(async () => {
  await Promise.all([closeClients(), killAll()]);
});
afterAll(stopJavaPeers);

/**
 * The Spring application, once it has these properties; the first test has those that it reads at its start.
 */
async function springWith(properties: Readonly<Record<string, string>>): Promise<SpringConfigPeer> {
  peer ??= await startSpringConfigPeer(connect, NAME.app, NAME.profile);
  await expect.poll(peer.properties, SEEN).toEqual(properties);
  return peer;
}

const ours = () => openConfiguration(zookeeper, { ...NAME, clock: systemClock, random: systemRandom });
const plain = ({ values }: Configuration) =>
  Object.fromEntries([...values].map(([key, { value }]) => [key, value]));

test('Spring’s own classes read what is published here, and both agree on keys, values and which context wins', async () => {
  const at = {
    'shop,prod': NAME,
    shop: { app: 'shop', profile: undefined },
    'application,prod': { ...NAME, app: 'application' },
  };
  const shared = { app: 'application', profile: undefined };
  await publisher(zookeeper, shared).publish(keys({ a: '4', b: '4', c: '4', d: '4', 'only.shared': 'x' }));
  await publisher(zookeeper, at['application,prod']).publish(keys({ a: '3', b: '3', c: '3' }));
  await publisher(zookeeper, at.shop).publish(keys({ a: '2', b: '2' }));
  await publisher(zookeeper, at['shop,prod']).publish(
    keys({
      a: '1',
      'db.pool-size': '10',
      'db.pool': 'above',
      db: 'top',
      'servers[0].host': 'h0',
      greeting: 'grüß 世界 🦊',
      empty: '',
      lines: 'a\nb ',
    }),
  );
  const expected = {
    ...{ a: '1', b: '2', c: '3', d: '4', 'only.shared': 'x' },
    ...{ 'db.pool-size': '10', 'db.pool': 'above', db: 'top', 'servers[0].host': 'h0' },
    ...{ greeting: 'grüß 世界 🦊', empty: '', lines: 'a\nb ' },
  };
  await using configuration = await ours();
  expect(plain(configuration)).toEqual(expected);
  const spring = await springWith(expected);
  expect(await spring.contexts()).toEqual([
    '/config/shop,prod',
    '/config/shop',
    '/config/application,prod',
    '/config/application',
  ]);
});

test('Spring is notified of every publish, of removals too, and has the values by then', async () => {
  const config = publisher(zookeeper, NAME);
  await config.publish(keys({ 'live.a': '1', 'live.url': 'pg://a', 'live.user': 'u' }));
  const { changes } = await springWith({ 'live.a': '1', 'live.url': 'pg://a', 'live.user': 'u' });
  const reported = (since = 0) =>
    [...new Set(changes().slice(since).flat())].filter((key) => key.startsWith('live.')).sort();
  await expect.poll(() => reported(), SEEN).toEqual(['live.a', 'live.url', 'live.user']);
  const before = changes().length;
  await config.publish(keys({ 'live.a': '2', 'live.url': null, 'live.fresh': 'new' }));
  await springWith({ 'live.a': '2', 'live.user': 'u', 'live.fresh': 'new' });
  await expect.poll(() => reported(before), SEEN).toEqual(['live.a', 'live.fresh', 'live.url']);
  await config.rollback(1);
  await springWith({ 'live.a': '1', 'live.url': 'pg://a', 'live.user': 'u' });
});

test('what "nodelease config" sets, unsets, imports and rolls back is what Spring has', async () => {
  const config = async (...args: string[]) => {
    const [command = '', ...more] = args;
    const call = runCli(
      ['config', command, ...more, '--app', 'shop', '--profile', 'prod', '--zookeeper', connect],
      {
        stdin: 'k.l=v\nk.m=w\n',
      },
    );
    expect((await call.exit).code).toBe(0);
    return call.stdout();
  };
  await config('set', 'db.pool-size=10', 'greeting=grüß=dich');
  await springWith({ 'db.pool-size': '10', greeting: 'grüß=dich' });
  await config('import', '-');
  await config('unset', 'db.pool-size');
  await springWith({ greeting: 'grüß=dich', 'k.l': 'v', 'k.m': 'w' });
  await config('rollback', '1');
  const spring = await springWith({ 'db.pool-size': '10', greeting: 'grüß=dich' });
  await spring.write('/config/shop,prod/greeting', 'jó napot');
  expect(await config('get', 'greeting')).toBe('jó napot\n');
});

test('overrides for some node ids, history and what nodes report of themselves are no properties of Spring’s', async () => {
  const config = publisher(zookeeper, NAME);
  await config.publish(keys({ a: '1' }));
  await publisher(zookeeper, { ...NAME, nodes: '0-3' }).publish(keys({ a: 'canary', b: 'canary' }));
  await using configuration = await openConfiguration(zookeeper, { ...NAME, nodeId: 2 });
  expect(plain(configuration)).toEqual({ a: 'canary', b: 'canary' });
  await config.publish(keys({ c: 'all' }));
  await springWith({ a: '1', c: 'all' });
});

test('what Java writes is read here, and reported as it changes', async () => {
  const spring = await springWith({});
  await spring.write('/config/shop/db/url', 'jdbc:grüß');
  await spring.write('/config/shop,prod/db.user', 'dotted');
  await using configuration = await ours();
  expect(plain(configuration)).toEqual({ 'db.url': 'jdbc:grüß', 'db.user': 'dotted' });
  await springWith(plain(configuration));
  const changes: object[] = [];
  configuration.onChange((change) => changes.push(...change.changes));
  await spring.write('/config/shop,prod/db/url', 'jdbc:new');
  await expect.poll(() => configuration.get('db.url'), SEEN).toBe('jdbc:new');
  await spring.remove('/config/shop,prod/db/url');
  await expect.poll(() => configuration.get('db.url'), SEEN).toBe('jdbc:grüß');
  await spring.remove('/config/shop/db/url');
  await expect.poll(() => configuration.get('db.url'), SEEN).toBeUndefined();
  expect(changes).toEqual([
    { key: 'db.url', old: 'jdbc:grüß', new: 'jdbc:new' },
    // An empty znode without children is a property, for Spring too.
    { key: 'db', old: undefined, new: '' },
    { key: 'db.url', old: 'jdbc:new', new: 'jdbc:grüß' },
    { key: 'db.url', old: 'jdbc:grüß', new: undefined },
  ]);
  await springWith({ db: '', 'db.user': 'dotted' });
});

test('a key that Java has changed is taken for what it is by the next publish here, with its value in the history', async () => {
  const config = publisher(zookeeper, NAME);
  await config.publish(keys({ a: 'ours' }));
  const spring = await springWith({ a: 'ours' });
  await spring.write('/config/shop,prod/a', 'theirs');
  const published = await config.publish(keys({ a: 'ours again' }));
  expect(published?.changes).toEqual([{ key: 'a', old: 'theirs', new: 'ours again' }]);
  await springWith({ a: 'ours again' });
});
