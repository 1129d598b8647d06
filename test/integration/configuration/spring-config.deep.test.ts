import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { stopJavaPeers } from '../../support/peers/java-peer.js';
import { type SpringConfigPeer, startSpringConfigPeer } from '../../support/peers/spring-config-peer.js';
import { uniqueChroot } from '../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';

const SEEN = { timeout: 30_000, interval: 50 };
const APP = '/config/testApp';

let connect: string;
let spring: SpringConfigPeer;

beforeAll(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('spring-config')}`;
  const zookeeper = client(connect);
  await zookeeper.ensurePath(`${APP}`);
  await zookeeper.create(`${APP}/key`, 'value', 'persistent');
  spring = await startSpringConfigPeer(connect, 'testApp', 'dev');
});
afterEach(closeClients);
afterAll(stopJavaPeers);

test('x', async () => {
  expect(await spring.contexts()).toEqual([]);
});
test('y', async () => {
  expect(await spring.properties()).toEqual({ key: 'value' });
  await spring.write(`${APP}/db/pool-size`, 'ü');
  await expect.poll(() => spring.changes(), SEEN).toEqual([['db.pool-size']]);
});
