import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { connectServices } from '../../../../src/zookeeper/services/connect-services.js';
import {
  decodeInstance,
  encodeInstance,
} from '../../../../src/zookeeper/services/instance/instance-codec.js';
import type { ServiceInstanceInit } from '../../../../src/zookeeper/services/instance/new-instance.js';
import {
  type SpringInstance,
  springPayload,
} from '../../../../src/zookeeper/services/instance/payload-codec.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { ServiceDiscovery } from '../../../../src/zookeeper/services/service-discovery.js';
import { startCuratorPeer } from '../../../support/peers/curator-peer.js';
import { stopJavaPeers } from '../../../support/peers/java-peer.js';
import { type SpringPeer, startSpringPeer } from '../../../support/peers/spring-peer.js';
import { killAll, runCli } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { instanceOf } from './curator-support.js';

const SEEN = { timeout: 30_000, interval: 50 };

let connect: string;
let spring: SpringPeer;
let services = 0;
let name: string;
const discoveries: ServiceDiscovery<SpringInstance>[] = [];

beforeAll(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('spring')}`;
  await client(connect).ensurePath('/');
  spring = await startSpringPeer(connect, '/services');
});
afterEach(async () => {
  await Promise.all(discoveries.splice(0).map((each) => each.close()));
  await Promise.all([closeClients(), killAll()]);
});
afterAll(stopJavaPeers);

function discover(): ServiceDiscovery<SpringInstance> {
  const options = {
    zookeeper: client(connect),
    clock: systemClock,
    random: systemRandom,
    payload: springPayload,
  };
  const discovery = new ServiceDiscovery<SpringInstance>(options);
  discoveries.push(discovery);
  return discovery;
}

/** A new service's, of Spring's kind. */
function ours(init: Partial<ServiceInstanceInit<SpringInstance>> = {}) {
  services += 1;
  name = `orders-${services}`;
  return instanceOf<SpringInstance>({
    name,
    payload: { id: 'ours', name, metadata: { zone: 'a' } },
    ...init,
  });
}

test('an instance of ours is found by Spring’s own classes, with the URI that they build', async () => {
  await discover().register(ours());
  expect(await spring.instances(name)).toEqual([
    {
      id: 'ours',
      host: '10.0.0.7',
      port: 8080,
      secure: false,
      uri: 'http://10.0.0.7:8080',
      metadata: { zone: 'a' },
    },
  ]);
  expect(await spring.choose(name)).toMatchObject({ id: 'ours', uri: 'http://10.0.0.7:8080' });
});

test.each<[string, Partial<ServiceInstanceInit<SpringInstance>>, object]>([
  ['with both ports', { sslPort: 8443 }, { port: 8443, secure: true, uri: 'https://10.0.0.7:8443' }],
  [
    'for TLS only',
    { port: undefined, sslPort: 8443 },
    { port: 8443, secure: true, uri: 'https://10.0.0.7:8443' },
  ],
  [
    'with a uriSpec of its own',
    { uriSpec: '{scheme}://{address}:{port}/v1' },
    { port: 8080, uri: 'http://10.0.0.7:8080/v1' },
  ],
])('so is one %s', async (_, init, expected) => {
  await discover().register(ours(init));
  expect(await spring.instances(name)).toMatchObject([expected]);
});

test('what "nodelease run" and newInstance register by default is readable for Spring and for plain Curator, next to an instance of Spring’s', async () => {
  ours();
  await spring.register({ name, id: 'theirs', address: 'java-host', port: 8081, metadata: {} });
  const services = connectServices({ connect });
  await services.register(services.newInstance({ name, id: 'library', address: '10.0.0.8', port: 8082 }));
  const options = ['--store', 'memory:', '--zookeeper', connect, '--task-id', 'command'];
  const instance = ['--service', name, '--address', '10.0.0.7', '--port', '8080'];
  const run = runCli(['run', ...options, ...instance, '--', 'sleep', '600']);
  await expect.poll(() => spring.instances(name), SEEN).toHaveLength(3);
  const uris = async () => (await spring.instances(name)).map(({ id, uri }) => `${id} ${uri}`).sort();
  expect(await uris()).toEqual([
    'command http://10.0.0.7:8080',
    'library http://10.0.0.8:8082',
    'theirs http://java-host:8081',
  ]);
  expect(await spring.choose(name)).not.toBeNull();
  // Curator lacks Spring's class: it reads ours alone.
  await client(connect).remove(`/services/${name}/theirs`);
  for (const payload of ['any', 'map'] as const) {
    const curator = await startCuratorPeer({ connect, basePath: '/services', payload });
    const found = await curator.instances(name);
    expect(found.map(({ id, url }) => `${id} ${url}`).sort()).toEqual((await uris()).slice(0, 2));
  }
  run.kill('SIGTERM');
  await Promise.all([run.exit, services.close()]);
});

test('what "nodelease run --payload-type spring" registers is found by Spring’s own classes', async () => {
  ours();
  const options = [
    '--store',
    'memory:',
    '--zookeeper',
    connect,
    '--service',
    name,
    '--address',
    '10.0.0.7',
    '--port',
    '8080',
  ];
  const run = runCli([
    'run',
    ...options,
    '--payload-type',
    'spring',
    '--payload',
    '{"zone":"a"}',
    '--',
    'sleep',
    '600',
  ]);
  await expect.poll(() => spring.instances(name), SEEN).toHaveLength(1);
  expect(await spring.instances(name)).toMatchObject([
    { uri: 'http://10.0.0.7:8080', metadata: { zone: 'a', nodeId: '0', version: '1' } },
  ]);
  run.kill('SIGTERM');
  await run.exit;
});

test('an instance of Spring’s is found here, and written again byte for byte', async () => {
  ours();
  await spring.register({ name, id: 'theirs', address: 'java-host', port: 8081, metadata: { zone: 'b' } });
  const discovery = discover();
  const [found] = await discovery.queryForInstances(name);
  expect(found).toMatchObject({
    ...{ id: 'theirs', address: 'java-host', port: 8081 },
    payload: { name, metadata: { zone: 'b' } },
  });
  const provider = discovery.provider(name);
  await provider.ready;
  expect(provider.url()).toBe('http://java-host:8081');
  provider.close();

  const data = (await client(connect).read(`/services/${name}/theirs`))?.data ?? Buffer.alloc(0);
  const decoded = decodeInstance<SpringInstance>({ name, id: 'theirs', data }, springPayload);
  if (decoded.status !== 'readable') throw new Error(decoded.problem);
  expect(encodeInstance(decoded.instance, springPayload)).toBe(data.toString());
});

test('one that is out of service is picked neither by Spring nor here', async () => {
  const discovery = discover();
  await discovery.register(
    ours({ payload: { id: 'ours', name: 'x', metadata: { instance_status: 'OUT_OF_SERVICE' } } }),
  );
  await spring.register({
    name,
    id: 'theirs',
    address: 'java-host',
    port: 8081,
    metadata: { instance_status: 'UP' },
  });
  const provider = discovery.provider(name);
  await provider.ready;
  for (let times = 0; times < 10; times += 1) {
    expect(await spring.choose(name)).toMatchObject({ id: 'theirs' });
    expect(provider.pick()).toMatchObject({ id: 'theirs' });
  }
  provider.close();
});

test('what Spring cannot read makes the whole service unreadable for it, or leaves it without a URI, and is never written', async () => {
  const zookeeper = client(connect);
  const directory = new ServiceDirectory<SpringInstance>({
    zookeeper,
    clock: systemClock,
    payload: springPayload,
  });
  const instance = ours();
  const path = await directory.write(instance);
  const json = JSON.parse((await zookeeper.read(path))?.data.toString() ?? '') as object;
  const found = async (change: object) => {
    await zookeeper.setData(path, JSON.stringify({ ...json, ...change }));
    return spring.instances(name);
  };
  await expect(found({ port: null })).rejects.toThrow('the peer threw java.lang.NullPointerException');
  await expect(found({ payload: { zone: 'a' } })).rejects.toThrow(
    'the peer threw java.lang.ClassCastException',
  );
  expect(await found({ uriSpec: null })).toMatchObject([{ uri: '' }]);
  expect(await found({ payload: null })).toMatchObject([{ metadata: {} }]);
  await expect(directory.write({ ...instance, port: undefined })).rejects.toThrow(
    'instance.port: expected a port or an sslPort',
  );
});
