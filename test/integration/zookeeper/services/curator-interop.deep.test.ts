import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import type { ServiceInstanceInit } from '../../../../src/zookeeper/services/instance/new-instance.js';
import { jsonPayload, type PayloadCodec } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { parseUriSpec } from '../../../../src/zookeeper/services/instance/uri-spec.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { ServiceDiscovery, type ServiceEvent } from '../../../../src/zookeeper/services/service-discovery.js';
import { packageRoot } from '../../../support/package-root.js';
import {
  type CuratorPeer,
  type CuratorPeerOptions,
  type JavaInit,
  type JavaInstance,
  startCuratorPeer,
} from '../../../support/peers/curator-peer.js';
import { stopJavaPeers } from '../../../support/peers/java-peer.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { asJava, instanceOf } from './curator-support.js';

const { connect } = inject('zookeeper');
const SEEN = { timeout: 20_000, interval: 50 };

/**
 * A killed process was heard of last up to a third of its session's time-out before, and the servers look for
 * silent clients in steps.
 */
const KILLED = { sessionTimeoutMs: 6_000, notBeforeMs: 3_000, withinMs: 12_000 };

const discoveries: ServiceDiscovery<never>[] = [];
let basePath: string;

beforeEach(() => {
  basePath = `${uniqueChroot('curator')}/services`;
});

afterEach(async () => {
  await Promise.all(discoveries.splice(0).map((each) => each.close()));
  await Promise.all([closeClients(), stopJavaPeers(), killAll()]);
});

function discover<P = unknown>({
  zookeeper = client(connect),
  ...options
}: {
  zookeeper?: ZooKeeper;
  payload?: PayloadCodec<P>;
  onEvent?: (event: ServiceEvent) => void;
} = {}): ServiceDiscovery<P> {
  const discovery = new ServiceDiscovery<P>({
    zookeeper,
    clock: systemClock,
    random: systemRandom,
    basePath,
    ...options,
  });
  discoveries.push(discovery as unknown as ServiceDiscovery<never>);
  return discovery;
}

function java(options: Partial<CuratorPeerOptions> = {}): Promise<CuratorPeer> {
  return startCuratorPeer({ connect, basePath, ...options });
}

describe('an instance that is registered here', () => {
  const rows: [string, Partial<ServiceInstanceInit>, Partial<JavaInstance>?][] = [
    ['without a payload', {}],
    [
      'with a map as its payload',
      { payload: { nodeId: 7, zone: 'a' } },
      { payloadClass: 'java.util.LinkedHashMap' },
    ],
    ['with a port for TLS', { sslPort: 8443 }],
    ['with a uriSpec', { uriSpec: '{scheme}://{address}:{port}/v1' }, { url: 'http://10.0.0.7:8080/v1' }],
    ['that stays', { serviceType: 'STATIC' }],
  ];

  test.each(rows)('is found by Java with a query, a cache and a provider: %s', async (_, init, more) => {
    const peer = await java({ payload: 'map' });
    await peer.follow('orders');
    await peer.provide('orders');
    const instance = instanceOf(init);
    await discover().register(instance);
    const expected = asJava(instance, more);
    expect(await peer.names()).toEqual(['orders']);
    expect(await peer.instances('orders')).toEqual([expected]);
    expect(await peer.instance('orders', 'ours')).toEqual(expected);
    await expect.poll(() => peer.cached('orders'), SEEN).toEqual([expected]);
    await expect.poll(() => peer.pick('orders'), SEEN).toEqual(expected);
    await expect
      .poll(() => peer.events, SEEN)
      .toContainEqual({ event: 'cache', name: 'orders', instances: [expected] });
  });

  test('is seen by Java when it is updated, disabled, enabled again and taken back', async () => {
    const peer = await java();
    await peer.follow('orders');
    await peer.provide('orders');
    const discovery = discover();
    const first = instanceOf({ payload: { load: 1 } });
    await discovery.register(first);
    await expect.poll(() => peer.pick('orders'), SEEN).toMatchObject({ payload: { load: 1 } });

    await discovery.update({ ...first, port: 9090, payload: { load: 2 } });
    await expect.poll(() => peer.pick('orders'), SEEN).toMatchObject({ port: 9090, payload: { load: 2 } });

    await discovery.update({ ...first, enabled: false });
    await expect.poll(() => peer.pick('orders'), SEEN).toBeNull();
    await expect.poll(() => peer.cached('orders'), SEEN).toMatchObject([{ id: 'ours', enabled: false }]);
    expect(await peer.instances('orders')).toMatchObject([{ id: 'ours', enabled: false }]);

    await discovery.update(first);
    await expect.poll(() => peer.pick('orders'), SEEN).toMatchObject({ id: 'ours', enabled: true });

    await discovery.unregister(first);
    await expect.poll(() => peer.cached('orders'), SEEN).toEqual([]);
    expect(await peer.instances('orders')).toEqual([]);
    await expect.poll(() => peer.pick('orders'), SEEN).toBeNull();
  });

  test('is gone for Java’s cache and provider when its process is killed, after its session’s time-out and not before', async () => {
    const peer = await java();
    await peer.follow('orders');
    await peer.provide('orders');
    const run = registrant({ id: 'killed', sessionTimeoutMs: KILLED.sessionTimeoutMs });
    await expect.poll(() => peer.cached('orders'), SEEN).toMatchObject([{ id: 'killed' }]);
    await expect.poll(() => peer.pick('orders'), SEEN).toMatchObject({ id: 'killed' });
    const gone = untilGone([
      async () => (await peer.cached('orders')).length === 0,
      async () => (await peer.pick('orders')) === null,
    ]);
    run.kill('SIGKILL');
    for (const ms of await gone) expectTimedOut(ms);
    expect(await peer.instances('orders')).toEqual([]);
  });

  test('is there again for Java after its session has expired', async () => {
    const peer = await java();
    await peer.follow('orders');
    const zookeeper = client(connect);
    const discovery = discover({ zookeeper });
    await discovery.register(instanceOf());
    await expect.poll(() => peer.cached('orders'), SEEN).toMatchObject([{ id: 'ours' }]);
    const { sessionId } = await zookeeper.whenConnected();
    await expireSession({ connect, sessionId });
    // It came, it went, and it came again.
    await expect
      .poll(() => peer.events.filter(({ event }) => event === 'cache').length, SEEN)
      .toBeGreaterThanOrEqual(3);
    await expect.poll(() => peer.cached('orders'), SEEN).toMatchObject([{ id: 'ours' }]);
    expect(await peer.instances('orders')).toMatchObject([{ id: 'ours' }]);
  });

  test('is gone for Java at once when it ends as it should', async () => {
    const peer = await java();
    await peer.follow('orders');
    const discovery = discover();
    await discovery.register(instanceOf());
    await discovery.register(instanceOf({ id: 'static', serviceType: 'STATIC' }));
    await expect.poll(() => peer.cached('orders'), SEEN).toHaveLength(2);
    await discovery.close();
    expect(await peer.instances('orders')).toEqual([]);
    await expect.poll(() => peer.cached('orders'), SEEN).toEqual([]);
  });

  test('with a number from the servers is one of several with its id, for Java too', async () => {
    const peer = await java();
    const discovery = discover();
    const instance = instanceOf({ serviceType: 'DYNAMIC_SEQUENTIAL' });
    await discovery.register(instance);
    await peer.register({
      name: 'orders',
      id: 'ours',
      address: 'java-host',
      serviceType: 'DYNAMIC_SEQUENTIAL',
    });
    expect(await peer.instances('orders')).toHaveLength(2);
    expect(await discovery.queryForInstances('orders')).toMatchObject([
      { id: 'ours', address: '10.0.0.7', serviceType: 'DYNAMIC_SEQUENTIAL' },
      { id: 'ours', address: 'java-host', serviceType: 'DYNAMIC_SEQUENTIAL' },
    ]);
    await discovery.unregister(instance);
    expect(await peer.instances('orders')).toMatchObject([{ address: 'java-host' }]);
  });
});

describe('an instance that Java has registered', () => {
  const rows: [string, Partial<JavaInit>, Partial<ServiceInstance>][] = [
    ['without a payload', {}, {}],
    [
      'with a map as its payload',
      { payload: { nodeId: '7' } },
      { payload: { '@class': 'java.util.TreeMap', nodeId: '7' } },
    ],
    ['with a port for TLS', { sslPort: 8443 }, { sslPort: 8443 }],
    [
      'with a uriSpec',
      { uriSpec: '{scheme}://{address}:{port}/v1' },
      { uriSpec: parseUriSpec('{scheme}://{address}:{port}/v1') },
    ],
    ['that stays', { serviceType: 'PERMANENT' }, { serviceType: 'PERMANENT' }],
  ];

  test.each(rows)('is found here with a query, a cache and a provider: %s', async (_, init, more) => {
    const peer = await java();
    const discovery = discover();
    const cache = discovery.cache('orders');
    const provider = discovery.provider('orders');
    const reported = vi.fn();
    cache.onChange(reported);
    await peer.register({ name: 'orders', id: 'theirs', address: 'java-host', port: 8080, ...init });
    const expected = {
      ...instanceOf({ id: 'theirs', address: 'java-host' }),
      uriSpec: undefined,
      ...more,
      registrationTimeUTC: expect.closeTo(Date.now(), -6),
    };
    expect(await discovery.queryForNames()).toEqual(['orders']);
    expect(await discovery.queryForInstances('orders')).toEqual([expected]);
    expect(await discovery.queryForInstance('orders', 'theirs')).toEqual(expected);
    await expect.poll(() => cache.instances, SEEN).toEqual([expected]);
    await expect.poll(() => provider.pick(), SEEN).toEqual(expected);
    await expect.poll(() => reported, SEEN).toHaveBeenCalledWith([expected]);
    expect(provider.url()).toBe(
      init.uriSpec
        ? 'http://java-host:8080/v1'
        : init.sslPort
          ? 'https://java-host:8443'
          : 'http://java-host:8080',
    );
  });

  test('is seen here when it is updated, disabled, enabled again and taken back', async () => {
    const peer = await java();
    const discovery = discover();
    const cache = discovery.cache('orders');
    const provider = discovery.provider('orders');
    const first = { name: 'orders', id: 'theirs', address: 'java-host', port: 8080 };
    await peer.register(first);
    await expect.poll(() => provider.pick(), SEEN).toMatchObject({ port: 8080, payload: undefined });

    await peer.update({ ...first, port: 9090, payload: { load: 2 } });
    await expect.poll(() => provider.pick(), SEEN).toMatchObject({ port: 9090, payload: { load: 2 } });

    await peer.update({ ...first, enabled: false });
    await expect.poll(() => provider.pick(), SEEN).toBeUndefined();
    expect(await discovery.queryForInstances('orders')).toMatchObject([{ id: 'theirs', enabled: false }]);
    await expect.poll(() => cache.instances, SEEN).toMatchObject([{ id: 'theirs', enabled: false }]);

    await peer.update(first);
    await expect.poll(() => provider.pick(), SEEN).toMatchObject({ id: 'theirs', enabled: true });

    await peer.unregister('orders', 'theirs');
    await expect.poll(() => cache.instances, SEEN).toEqual([]);
    expect(await discovery.queryForInstances('orders')).toEqual([]);
    await expect.poll(() => provider.pick(), SEEN).toBeUndefined();
  });

  test('is disabled from here for both, and so is one of ours for Java, and enabled again', async () => {
    const peer = await java();
    const zookeeper = client(connect);
    const discovery = discover();
    const directory = new ServiceDirectory({ zookeeper, clock: systemClock, basePath, payload: jsonPayload });
    const provider = discovery.provider('orders');
    await peer.register({
      name: 'orders',
      id: 'theirs',
      address: 'java-host',
      port: 8080,
      payload: { zone: 'a' },
    });
    await discovery.register(instanceOf());
    await peer.provide('orders');
    const picked = async () => {
      const ids = await Promise.all(
        Array.from({ length: 4 }, async () => [(await peer.pick('orders'))?.id, provider.pick()?.id]),
      );
      return [...new Set(ids.flat())].sort();
    };
    await expect.poll(picked, SEEN).toEqual(['ours', 'theirs']);
    for (const [id, other] of [
      ['theirs', 'ours'],
      ['ours', 'theirs'],
    ] as const) {
      await directory.setEnabled('orders', id, false);
      await expect.poll(picked, SEEN).toEqual([other]);
      expect(await peer.instance('orders', id)).toMatchObject({ id, enabled: false });
      await directory.setEnabled('orders', id, true);
      await expect.poll(picked, SEEN).toEqual(['ours', 'theirs']);
    }
    expect(await peer.instance('orders', 'theirs')).toMatchObject({ payload: { zone: 'a' }, enabled: true });
  });

  test('cannot disable itself unless its serializer is configured to write the field', async () => {
    const peer = await java({ enabledField: false });
    const discovery = discover();
    await peer.register({ name: 'orders', id: 'theirs', address: 'java-host', port: 8080, enabled: false });
    expect(await discovery.queryForInstances('orders')).toMatchObject([{ id: 'theirs', enabled: true }]);
    // Written from here the field is read all the same.
    await discovery.register(instanceOf({ enabled: false }));
    expect(await peer.instance('orders', 'ours')).toMatchObject({ enabled: false });
  });

  test('is gone here, for cache and provider, when Java is killed, after its session’s time-out, and at once when it ends as it should', async () => {
    const killed = await java({ sessionTimeoutMs: KILLED.sessionTimeoutMs });
    const stopped = await java();
    const discovery = discover();
    const cache = discovery.cache('orders');
    const provider = discovery.provider('orders');
    await killed.register({ name: 'orders', id: 'killed', address: 'java-host', port: 1 });
    await stopped.register({ name: 'orders', id: 'stopped', address: 'java-host', port: 2 });
    await expect.poll(() => cache.instances.map(({ id }) => id), SEEN).toEqual(['killed', 'stopped']);
    await stopped.stop();
    await expect.poll(() => cache.instances.map(({ id }) => id), SEEN).toEqual(['killed']);
    await expect.poll(() => [provider.pick()?.id, provider.pick()?.id], SEEN).toEqual(['killed', 'killed']);
    const gone = untilGone([() => cache.instances.length === 0, () => provider.pick() === undefined]);
    await killed.kill();
    for (const ms of await gone) expectTimedOut(ms);
    expect(await discovery.queryForInstances('orders')).toEqual([]);
  });

  test('in the place of ours is left alone, and ours comes back when it leaves', async () => {
    const events: ServiceEvent[] = [];
    const peer = await java();
    const discovery = discover({ onEvent: (event) => events.push(event) });
    await discovery.register(instanceOf());
    await peer.register({ name: 'orders', id: 'ours', address: 'java-host', port: 1 });
    await expect
      .poll(() => events, SEEN)
      .toContainEqual(expect.objectContaining({ type: 'superseded', path: `${basePath}/orders/ours` }));
    expect(await discovery.queryForInstances('orders')).toMatchObject([{ address: 'java-host' }]);
    await peer.unregister('orders', 'ours');
    await expect
      .poll(() => discovery.queryForInstances('orders'), SEEN)
      .toMatchObject([{ address: '10.0.0.7' }]);
    expect(await peer.instances('orders')).toMatchObject([{ address: '10.0.0.7' }]);
  });
});

test('where we have a digest and Java has none, both register, find each other and leave, also after the digest has changed', async () => {
  const peer = await java();
  for (const auth of ['digest:shop:old', 'digest:shop:new']) {
    const discovery = discover({ zookeeper: client(connect, { auth }) });
    await discovery.register(instanceOf({ id: auth }));
    await peer.register({ name: 'orders', id: 'theirs', address: 'java-host', port: 1 });
    expect((await peer.instances('orders')).map(({ id }) => id).sort()).toEqual([auth, 'theirs']);
    expect((await discovery.queryForInstances('orders')).map(({ id }) => id).sort()).toEqual([
      auth,
      'theirs',
    ]);
    await peer.unregister('orders', 'theirs');
    await discovery.unregister(instanceOf({ id: auth }));
    expect(await peer.instances('orders')).toEqual([]);
  }
});

describe('next to znodes that Java cannot read', () => {
  test('the rest is found here, and the two are reported once; only Java’s query finds nothing at all', async () => {
    const events: ServiceEvent[] = [];
    const discovery = discover<{ weight: number }>({
      payload: weights,
      onEvent: (event) => events.push(event),
    });
    const peer = await java();
    await peer.register({
      name: 'orders',
      id: 'good',
      address: 'java-host',
      port: 1,
      payload: { weight: 5 },
    });
    const zookeeper = client(connect);
    await zookeeper.create(`${basePath}/orders/garbage`, '127.0.0.1', 'persistent');
    const unknown = { name: 'orders', id: 'unknown', payload: { '@class': 'com.example.Unknown', size: 5 } };
    await zookeeper.create(`${basePath}/orders/unknown`, JSON.stringify(unknown), 'persistent');

    const cache = discovery.cache('orders');
    const provider = discovery.provider('orders');
    await Promise.all([cache.ready, provider.ready]);
    for (let times = 0; times < 3; times += 1) {
      expect(await discovery.queryForInstances('orders')).toMatchObject([
        { id: 'good', payload: { weight: 5 } },
      ]);
      expect(provider.pick()).toMatchObject({ id: 'good' });
    }
    expect(cache.instances).toMatchObject([{ id: 'good' }]);
    expect(await discovery.queryForInstance('orders', 'garbage')).toBeUndefined();
    const reports = events
      .filter((event) => event.type === 'unreadable')
      .map(({ path, problem }) => `${path} ${problem}`);
    expect(new Set(reports)).toEqual(
      new Set([
        `${basePath}/orders/garbage is not JSON`,
        `${basePath}/orders/unknown has a payload of another kind: it has no weight`,
      ]),
    );
    // Once for all who look: the queries, the cache, and the provider's.
    expect(reports).toHaveLength(2);

    // Measured: Curator's cache and provider leave them out too, but either of them is enough for its query
    // to throw, for the whole service.
    await peer.follow('orders');
    await peer.provide('orders');
    expect(await peer.cached('orders')).toMatchObject([{ id: 'good' }]);
    expect(await peer.pick('orders')).toMatchObject({ id: 'good' });
    await expect(peer.instances('orders')).rejects.toThrow('the peer threw');
    await zookeeper.remove(`${basePath}/orders/garbage`);
    await expect(peer.instances('orders')).rejects.toThrow(
      'the peer threw com.fasterxml.jackson.databind.exc.InvalidTypeIdException',
    );
    await zookeeper.remove(`${basePath}/orders/unknown`);
    expect(await peer.instances('orders')).toMatchObject([{ id: 'good' }]);
  });

  const weights: PayloadCodec<{ weight: number }> = {
    encode: (payload) => payload,
    decode: (json) => {
      const { weight } = json as { weight?: unknown };
      if (typeof weight !== 'number') throw new Error('it has no weight');
      return { weight };
    },
  };
});

/** How long it takes from now, in milliseconds, until each of these finds nothing any more. */
function untilGone(checks: readonly (() => boolean | Promise<boolean>)[]): Promise<number[]> {
  const begun = systemClock.monotonic();
  const gone = async (check: () => boolean | Promise<boolean>) => {
    while (!(await check())) {
      if (systemClock.monotonic() - begun > SEEN.timeout)
        throw new Error(`still there after ${SEEN.timeout} ms: ${check}`);
      await systemClock.sleep(20);
    }
    return systemClock.monotonic() - begun;
  };
  return Promise.all(checks.map(gone));
}

function expectTimedOut(ms: number): void {
  expect(ms).toBeGreaterThan(KILLED.notBeforeMs);
  expect(ms).toBeLessThan(KILLED.withinMs);
}

/** Registers an instance from a process of its own, with the built code. */
function registrant({ id, sessionTimeoutMs }: { id: string; sessionTimeoutMs: number }) {
  const built = (file: string) => JSON.stringify(pathToFileURL(join(packageRoot, 'dist', file)).href);
  const script = `
    import { newInstance } from ${built('zookeeper/services/instance/new-instance.js')};
    import { ServiceDiscovery } from ${built('zookeeper/services/service-discovery.js')};
    import { systemClock as clock, systemRandom as random } from ${built('core/base/system.js')};
    import { openZooKeeper } from ${built('zookeeper/client/zookeeper-client.js')};
    const zookeeper = openZooKeeper({ connect: ${JSON.stringify(connect)}, clock, random, sessionTimeoutMs: ${sessionTimeoutMs} });
    const discovery = new ServiceDiscovery({ zookeeper, clock, random, basePath: ${JSON.stringify(basePath)} });
    await discovery.register(newInstance({ name: 'orders', id: ${JSON.stringify(id)}, address: 'h', port: 1 }, { clock, random }), { timeoutMs: 20_000 });
    setInterval(() => {}, 1000);`;
  return runProcess(process.execPath, ['--input-type=module', '-e', script]);
}
