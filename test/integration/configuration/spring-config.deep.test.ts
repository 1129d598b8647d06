import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { systemClock, systemRandom } from '../../../src/base/system.js';
import { type Configuration, openConfiguration } from '../../../src/configuration/index.js';
import type { ZooKeeperClient } from '../../../src/zookeeper/zookeeper-client.js';
import { stopJavaPeers } from '../../support/peers/java-peer.js';
import { type SpringConfigPeer, startSpringConfigPeer } from '../../support/peers/spring-config-peer.js';
import { killAll, runCli } from '../../support/processes.js';
import { uniqueChroot } from '../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { keys, publisher } from './config-scene.js';

const SEEN = { timeout: 30_000, interval: 50 };
const NAME = { app: 'shop', profile: 'prod' };

let connect: string;
let zookeeper: ZooKeeperClient;

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('spring-config')}`;
  zookeeper = client(connect);
  await zookeeper.ensurePath('/');
});
afterEach(async () => {
  await Promise.all([stopJavaPeers(), killAll()]);
  await closeClients();
});

const spring = () => startSpringConfigPeer(connect, NAME.app, NAME.profile);
const ours = () => openConfiguration(zookeeper, { ...NAME, clock: systemClock, random: systemRandom });
const plain = ({ values }: Configuration) => Object.fromEntries([...values].map(([key, { value }]) => [key, value]));
const told = (peer: SpringConfigPeer) => [...new Set(peer.changes().flat())].sort();

test('Spring’s own classes read what is published here, and both agree on keys, values and which context wins', async () => {
  const at = { 'shop,prod': NAME, shop: { app: 'shop', profile: undefined }, 'application,prod': { ...NAME, app: 'application' } };
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
  const peer = await spring();
  expect(await peer.contexts()).toEqual(['/config/shop,prod', '/config/shop', '/config/application,prod', '/config/application']);
  const expected = {
    ...{ a: '1', b: '2', c: '3', d: '4', 'only.shared': 'x' },
    ...{ 'db.pool-size': '10', 'db.pool': 'above', db: 'top', 'servers[0].host': 'h0' },
    ...{ greeting: 'grüß 世界 🦊', empty: '', lines: 'a\nb ' },
  };
  await using configuration = await ours();
  expect(plain(configuration)).toEqual(expected);
  expect(await peer.properties()).toEqual(expected);
});

test('Spring is told of every publish, of removals too, and has the values by then', async () => {
  const config = publisher(zookeeper, NAME);
  await config.publish(keys({ a: '1', 'db.url': 'pg://a', 'db.user': 'u' }));
  const peer = await spring();
  await config.publish(keys({ a: '2', 'db.url': null, fresh: 'new' }));
  await expect.poll(() => peer.properties(), SEEN).toEqual({ a: '2', 'db.user': 'u', fresh: 'new' });
  await expect.poll(() => told(peer), SEEN).toEqual(['a', 'db.url', 'fresh']);
  await config.rollback(1);
  await expect.poll(() => peer.properties(), SEEN).toEqual({ a: '1', 'db.url': 'pg://a', 'db.user': 'u' });
});

test('what "nodelease config" sets, unsets, imports and rolls back is what Spring has', async () => {
  const config = async (...args: string[]) => {
    const [command = '', ...more] = args;
    const call = runCli(['config', command, ...more, '--app', 'shop', '--profile', 'prod', '--zookeeper', connect], {
      stdin: 'k.l=v\nk.m=w\n',
    });
    expect((await call.exit).code).toBe(0);
    return call.stdout();
  };
  await config('set', 'db.pool-size=10', 'greeting=grüß=dich');
  const peer = await spring();
  expect(await peer.properties()).toEqual({ 'db.pool-size': '10', greeting: 'grüß=dich' });
  await config('import', '-');
  await config('unset', 'db.pool-size');
  await expect.poll(() => peer.properties(), SEEN).toEqual({ greeting: 'grüß=dich', 'k.l': 'v', 'k.m': 'w' });
  await config('rollback', '1');
  await expect.poll(() => peer.properties(), SEEN).toEqual({ 'db.pool-size': '10', greeting: 'grüß=dich' });
  await peer.write('/config/shop,prod/greeting', 'jó napot');
  expect(await config('get', 'greeting')).toBe('jó napot\n');
});

test('overrides for some node ids, history and what nodes tell of themselves are no properties of Spring’s', async () => {
  const config = publisher(zookeeper, NAME);
  await config.publish(keys({ a: '1' }));
  await config.publish(keys({ a: 'canary', b: 'canary' }, '0-3'));
  await using configuration = await openConfiguration(zookeeper, { ...NAME, nodeId: 2 });
  expect(plain(configuration)).toEqual({ a: 'canary', b: 'canary' });
  const peer = await spring();
  expect(await peer.properties()).toEqual({ a: '1' });
});

test('what Java writes is read here, and told as it changes', async () => {
  const peer = await spring();
  await peer.write('/config/shop/db/url', 'jdbc:grüß');
  await peer.write('/config/shop,prod/db.user', 'dotted');
  await using configuration = await ours();
  expect(plain(configuration)).toEqual({ 'db.url': 'jdbc:grüß', 'db.user': 'dotted' });
  await expect.poll(() => peer.properties(), SEEN).toEqual(plain(configuration));
  const changes: object[] = [];
  configuration.onChange((change) => changes.push(...change.changes));
  await peer.write('/config/shop,prod/db/url', 'jdbc:new');
  await expect.poll(() => configuration.get('db.url'), SEEN).toBe('jdbc:new');
  await peer.remove('/config/shop,prod/db/url');
  await expect.poll(() => configuration.get('db.url'), SEEN).toBe('jdbc:grüß');
  await peer.remove('/config/shop/db/url');
  await expect.poll(() => configuration.get('db.url'), SEEN).toBeUndefined();
  expect(changes).toEqual([
    { key: 'db.url', old: 'jdbc:grüß', new: 'jdbc:new' },
    // An empty znode without children is a property, for Spring too.
    { key: 'db', old: undefined, new: '' },
    { key: 'db.url', old: 'jdbc:new', new: 'jdbc:grüß' },
    { key: 'db.url', old: 'jdbc:grüß', new: undefined },
  ]);
  await expect.poll(() => peer.properties(), SEEN).toEqual({ db: '', 'db.user': 'dotted' });
});

test('a key that Java has changed is taken for what it is by the next publish here, with its value in the history', async () => {
  const config = publisher(zookeeper, NAME);
  await config.publish(keys({ a: 'ours' }));
  const peer = await spring();
  await peer.write('/config/shop,prod/a', 'theirs');
  const published = await config.publish(keys({ a: 'ours again' }));
  expect(published?.changes).toEqual([{ key: 'a', old: 'theirs', new: 'ours again' }]);
  await expect.poll(() => peer.properties(), SEEN).toEqual({ a: 'ours again' });
});
