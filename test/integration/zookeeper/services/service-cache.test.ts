import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { encodeInstance } from '../../../../src/zookeeper/services/instance/instance-codec.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { ServiceCache, type ServiceCacheOptions } from '../../../../src/zookeeper/services/service-cache.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { instanceOf } from '../../../support/service-instances.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, restrict } from '../discovery/discovery-support.js';

const BASE = '/services';
const SERVICE = `${BASE}/orders`;

let connect: string;
/** Another client, which changes the tree. */
let other: ZooKeeperClient;
const opened: (() => unknown)[] = [];

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('cache')}`;
  other = client(connect);
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  await stopProxies();
  await closeClients();
});

const path = (id: string) => `${SERVICE}/${id}`;
const json = (id: string, fields: Partial<ServiceInstance> = {}) =>
  encodeInstance(instanceOf(id, fields), jsonPayload);

async function add(
  id: string,
  fields: Partial<ServiceInstance> = {},
  mode: 'ephemeral' | 'persistent' = 'ephemeral',
): Promise<void> {
  await other.createWithParents(path(id), json(id, fields), mode);
}

function cached(zookeeper = client(connect), options: Partial<ServiceCacheOptions<unknown>> = {}) {
  const reports: string[] = [];
  const reported: string[] = [];
  const cache = new ServiceCache({
    ...{ zookeeper, clock: systemClock, basePath: BASE, name: 'orders', payload: jsonPayload },
    onUnreadable: (at, problem) => reports.push(`${at} ${problem}`),
    ...options,
  });
  opened.push(() => cache.close());
  cache.onChange((instances) => reported.push(instances.map(({ id }) => id).join()));
  const ids = () => cache.instances.map(({ id }) => id).join();
  return { cache, zookeeper, reports, reported, ids };
}

/** What a query returns at this moment. */
function queried(): Promise<readonly ServiceInstance[]> {
  return new ServiceDirectory({
    zookeeper: other,
    clock: systemClock,
    basePath: BASE,
    payload: jsonPayload,
  }).instances('orders');
}

describe('a service cache', () => {
  it('knows the existing instances, disabled ones too, as a query returns them', async () => {
    await add('b', { payload: { zone: 'x' } });
    await add('c', { enabled: false });
    await add('a', { sslPort: 8443 });
    const { cache, reported, reports } = cached();
    expect([cache.name, cache.instances]).toEqual(['orders', []]);
    await cache.ready;
    expect(cache.instances).toEqual(await queried());
    expect(cache.instances.map(({ id, enabled }) => `${id} ${enabled}`)).toEqual([
      'a true',
      'b true',
      'c false',
    ]);
    expect([reported, reports]).toEqual([['a,b,c'], []]);
    expect([cache.stale, cache.ageMs]).toEqual([undefined, 0]);
  });

  it('is ready where no instance was ever registered, and follows the first one who does', async () => {
    const { cache, reported, ids } = cached();
    await cache.ready;
    expect([ids(), reported]).toEqual(['', []]);
    await add('a');
    await expect.poll(ids).toBe('a');
    expect(reported).toEqual(['a']);
  });

  it('reports each join, update and leave, and keeps the same array until then', async () => {
    await add('b');
    const { cache, reported, ids } = cached();
    await cache.ready;
    const before = cache.instances;
    await add('a');
    await expect.poll(ids).toBe('a,b');
    expect(before.map(({ id }) => id)).toEqual(['b']);
    const [a, b] = cache.instances;
    await other.setData(path('a'), json('a', { enabled: false }));
    await expect.poll(() => cache.instances[0]?.enabled).toBe(false);
    expect(cache.instances[1]).toBe(b);
    expect(a?.enabled).toBe(true);
    expect(cache.instances).toBe(cache.instances);
    await other.remove(path('b'));
    await expect.poll(ids).toBe('a');
    expect(reported).toEqual(['b', 'a,b', 'a,b', 'a']);
  });

  it('reports nothing of writes that change nothing, nor to a listener that has unsubscribed, nor after its end', async () => {
    await add('a');
    await add('b');
    const { cache, reported } = cached();
    await cache.ready;
    const unsubscribed: unknown[] = [];
    cache.onChange((instances) => unsubscribed.push(instances))();
    const before = cache.instances;
    for (let i = 0; i < 5; i += 1) await other.setData(path('a'), json('a'));
    await other.multi([
      { type: 'remove', path: path('a') },
      { type: 'create', path: path('a'), data: json('a'), mode: 'ephemeral' },
    ]);
    await other.setData(path('b'), json('b', { port: 9 }));
    await expect.poll(() => cache.instances[1]?.port).toBe(9);
    expect(cache.instances[0]).toBe(before[0]);
    expect(reported).toHaveLength(2);
    cache.close();
    const witness = cached();
    await other.remove(path('a'));
    await expect.poll(witness.ids).toBe('b');
    expect([reported.length, unsubscribed]).toEqual([2, []]);
    expect(cache.instances.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(cache.stale).toBeDefined();
  });

  it('follows a service that vanishes and comes again, as containers do, with all that is above it', async () => {
    await add('a');
    const { cache, ids } = cached();
    await cache.ready;
    for (let round = 0; round < 6; round += 1) {
      await other.remove(path('a'));
      await other.remove(SERVICE);
      if (round > 3) await other.remove(BASE);
      if (round % 2 === 0) await expect.poll(ids).toBe('');
      await add('a', { port: 1_000 + round });
      await expect.poll(() => cache.instances[0]?.port).toBe(1_000 + round);
    }
  });

  it('leaves out what cannot be understood, reports it once, and finds the rest', async () => {
    const payload = {
      encode: (value: string) => value,
      decode: (value: unknown) => {
        if (typeof value !== 'string') throw new Error('expected a text');
        return value;
      },
    };
    await add('good', { payload: 'text' });
    await add('class', { payload: { '@class': 'com.example.Unknown' } });
    await other.create(path('garbage'), '\u0000\u0001{', 'ephemeral');
    await other.create(path('empty'), '', 'ephemeral');
    await other.create(path('list'), '[1]', 'ephemeral');
    await other.create(path('deep'), `{"payload":${'['.repeat(100_000)}`, 'ephemeral');
    const reports: string[] = [];
    const { cache, ids } = cached(undefined, { payload, onUnreadable: (at) => reports.push(at) });
    await cache.ready;
    expect(ids()).toBe('good');
    expect(reports.sort()).toEqual(['class', 'deep', 'empty', 'garbage', 'list'].map(path));
    await add('later', { payload: 'text' });
    await expect.poll(ids).toBe('good,later');
    expect(reports).toHaveLength(5);
  });

  it('finds one again that can be understood in the end, and gives up one that cannot any more', async () => {
    await other.createWithParents(path('a'), 'not yet', 'ephemeral');
    await add('b');
    const { cache, ids, reports } = cached();
    await cache.ready;
    expect(ids()).toBe('b');
    await other.setData(path('a'), json('a'));
    await expect.poll(ids).toBe('a,b');
    await other.setData(path('b'), 'not any more');
    await expect.poll(ids).toBe('a');
    expect(cache.instances).toEqual(await queried());
    expect(reports.map((report) => report.split(' ')[0])).toEqual([path('a'), path('b')]);
  });

  it('distinguishes sequential instances although they have one id', async () => {
    for (let i = 0; i < 3; i += 1)
      await other.createWithParents(
        path('s'),
        json('s', { port: 1 + i, serviceType: 'DYNAMIC_SEQUENTIAL' }),
        'ephemeral-sequential',
      );
    const { cache } = cached();
    await cache.ready;
    expect(cache.instances.map(({ id, port }) => `${id}${port}`)).toEqual(['s1', 's2', 's3']);
  });

  it('follows names of all kinds, in the order of their characters', async () => {
    const names = ['%2F', '__proto__', 'a b', 'ä', '日本', 'constructor', '{x}'].sort();
    for (const name of names) await add(name);
    const { cache, ids } = cached();
    await cache.ready;
    expect(ids()).toBe(names.join());
    await other.remove(path('__proto__'));
    await expect.poll(ids).toBe(names.filter((name) => name !== '__proto__').join());
  });

  it('is not held up for ever by an instance that it may not read', async () => {
    await add('a', {}, 'persistent');
    await add('b');
    await restrict(connect, path('a'), ['admin']);
    const clock = new VirtualClock();
    const { cache, zookeeper, ids, reports } = cached(undefined, { clock });
    let ready = false;
    void cache.ready.then(() => {
      ready = true;
    });
    // The list and both instances have been asked for: the patience is on this clock, the answers come in
    // real time.
    await expect.poll(() => zookeeper.openWatches).toBe(3);
    await clock.advance(4_900);
    expect(ready).toBe(false);
    // The servers refuse it in real time.
    await expect.poll(() => clock.advance(200).then(() => ready)).toBe(true);
    expect(ids()).toBe('b');
    expect(reports).toEqual([`${path('a')} has not let itself be read for 5 s`]);
  });

  it('reads no instance more often than it changes, and all of 3,000 in little time', async () => {
    const ids = Array.from({ length: 3_000 }, (_, index) => `i${String(index).padStart(4, '0')}`);
    await other.ensurePath(SERVICE);
    for (let first = 0; first < ids.length; first += 500)
      await Promise.all(
        ids.slice(first, first + 500).map((id) => other.create(path(id), json(id), 'ephemeral')),
      );
    const { cache, reported } = cached();
    await cache.ready;
    expect(cache.instances.map(({ id }) => id)).toEqual(ids);
    // What is reported to the listeners is reported once, not once for each.
    expect(reported).toHaveLength(1);
    // At one moment each: how many the servers report at once is no matter of chance then.
    for (const half of [ids.slice(0, 500), ids.slice(500, 1_000)])
      await other.multi(half.map((id) => ({ type: 'remove' as const, path: path(id) })));
    await expect.poll(() => cache.instances.length).toBe(2_000);
    expect(reported.length).toBeLessThan(700);
  });

  it('leaves no watch and no listener behind', async () => {
    for (const id of ['a', 'b', 'c']) await add(id);
    const zookeeper = client(connect);
    const listening = new Set<unknown>();
    const onState = zookeeper.onState.bind(zookeeper);
    zookeeper.onState = (listener) => {
      const forget = onState(listener);
      listening.add(forget);
      return () => {
        listening.delete(forget);
        forget();
      };
    };
    for (let round = 0; round < 20; round += 1) {
      const { cache } = cached(zookeeper);
      if (round % 3 > 0) await cache.ready;
      if (round % 3 === 1) await expect.poll(() => zookeeper.openWatches).toBe(4);
      expect(listening.size).toBe(1);
      cache.close();
      cache.close();
      expect([zookeeper.openWatches, listening.size]).toEqual([0, 0]);
    }
  });

  it('refuses a base path and a name that cannot be a znode’s', () => {
    const zookeeper = client(connect);
    for (const name of ['', 'a/b', '..', 'a\u0000'])
      expect(() => cached(zookeeper, { name })).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
    for (const basePath of ['', 'services', '/a/', '/a//b'])
      expect(() => cached(zookeeper, { basePath })).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID' }),
      );
    expect(zookeeper.openWatches).toBe(0);
  });
});

describe('a service cache without a connection', () => {
  it('keeps what it saw, says since when, and catches up with all that it missed before it says otherwise', async () => {
    const { proxy, through } = await throughProxy(connect);
    for (const id of ['a', 'b', 'c']) await add(id);
    const { cache, reported, ids } = cached(client(through));
    await cache.ready;
    const before = systemClock.monotonic();
    proxy.cut();
    await expect.poll(() => cache.stale?.since).toBeGreaterThanOrEqual(before);
    const since = cache.stale?.since;
    await other.remove(path('a'));
    await other.setData(path('b'), json('b', { port: 9 }));
    await add('d');
    expect([ids(), cache.stale?.since, reported]).toEqual(['a,b,c', since, ['a,b,c']]);
    expect(cache.ageMs).toBeGreaterThan(0);
    proxy.heal();
    // No poll: it was caught up the moment in which it said so.
    while (cache.stale !== undefined) await turn();
    expect(cache.instances).toEqual(await queried());
    expect(ids()).toBe('b,c,d');
  });

  it('catches up also when its session has expired meanwhile, and nothing flickers', async () => {
    for (const id of ['a', 'b', 'c']) await add(id);
    const zookeeper = client(connect, { sessionTimeoutMs: 10_000 });
    const { sessionId } = await zookeeper.whenConnected();
    const { cache, reported } = cached(zookeeper);
    await cache.ready;
    const before = cache.instances;
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await expect.poll(() => zookeeper.state, { timeout: 30_000 }).not.toMatchObject({ sessionId });
    await expect.poll(() => cache.stale, { timeout: 30_000 }).toBeUndefined();
    expect(cache.instances).toBe(before);
    expect(reported).toEqual(['a,b,c']);
    await add('d');
    await expect.poll(() => reported).toEqual(['a,b,c', 'a,b,c,d']);
    await expect.poll(() => zookeeper.openWatches).toBe(5);
  });

  it('may lose one connection after the other, also while it reads', async () => {
    const { proxy, through } = await throughProxy(connect);
    await other.ensurePath(SERVICE);
    const ids = Array.from({ length: 300 }, (_, index) => `i${index}`);
    await Promise.all(ids.map((id) => other.create(path(id), json(id), 'ephemeral')));
    const zookeeper = client(through, { sessionTimeoutMs: 4_000 });
    const clock = new VirtualClock();
    const { cache } = cached(zookeeper, { clock });
    await cache.ready;
    const states: string[] = [];
    const connected = (wanted: boolean) =>
      new Promise<void>((resolve) => {
        const forget = zookeeper.onState(({ status }) => {
          if ((status === 'connected') !== wanted) return;
          states.push(`${status} ${cache.stale === undefined ? 'up to date' : 'stale'}`);
          forget();
          resolve();
        });
      });
    for (let round = 0; round < 6; round += 1) {
      const [lost, restored] = [connected(false), connected(true)];
      proxy.reset();
      await lost;
      await restored;
      expect(states.splice(0)).toEqual(['suspended stale', 'connected stale']);
      await other.remove(path(`i${round}`));
      expect(cache.instances.length).toBeGreaterThanOrEqual(300 - round - 1);
    }
    await expect.poll(() => cache.stale).toBeUndefined();
    await expect.poll(() => cache.instances.length).toBe(294);
    await expect.poll(() => zookeeper.openWatches).toBe(295);
    // The patience with what could not be read over a connection that was lost is over.
    await clock.advance(20_000);
    expect(cache.instances).toHaveLength(294);
  });

  it('is not ready, and stale from the beginning, where there has never been one', async () => {
    const { cache } = cached(client('127.0.0.1:1/nothing'));
    let ready = false;
    void cache.ready.then(() => {
      ready = true;
    });
    await systemClock.sleep(200);
    expect([ready, cache.instances.length]).toEqual([false, 0]);
    expect(cache.ageMs).toBeGreaterThan(100);
  });
});
