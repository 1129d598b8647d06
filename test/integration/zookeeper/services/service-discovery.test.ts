import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { ZooKeeperError } from '../../../../src/zookeeper/client/zookeeper-error.js';
import {
  jsonPayload,
  type PayloadCodec,
  springPayload,
} from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { startZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import {
  closeRegistrants,
  orders,
  type Registrant,
  registrant,
  renewSession,
  sessionIdOf,
  snapshot,
  until,
} from './services-support.js';

const PATH = '/services/orders/one';
const SPRING = { id: 'three', name: 'users', metadata: {} };

let connect: string;
let reader: ZooKeeperClient;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  reader = client(connect);
});
afterEach(closeRegistrants);

async function at(path = PATH): Promise<{ port?: number; owner: string | undefined } | undefined> {
  const znode = await reader.read(path);
  return znode && { ...JSON.parse(znode.data.toString()), owner: znode.stat.owner };
}

function types({ events }: Registrant): string[] {
  return events.map(({ type }) => type);
}

/**
 * Has the registrants, whose clock stands still otherwise, wait for more than whatever they may be waiting
 * for, and answer reads behind their watches: what they do about what they have seen has been done then.
 */
async function letAct(clock: VirtualClock, ...all: readonly Registrant[]): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    await clock.advance(500);
    for (const { zookeeper } of all) await zookeeper.read(PATH);
  }
}

/**
 * Has it read what it has made, as answers come in order: a persistent znode that is replaced before that is
 * not known for what it is.
 */
async function letSee({ zookeeper }: Registrant): Promise<void> {
  await setImmediate();
  await zookeeper.read(PATH);
}

/** What distinguishes a znode from another one in its place, and shows whether it was changed. */
async function identity(): Promise<unknown> {
  const { createdZxid, version } = (await reader.read(PATH))?.stat ?? {};
  return { createdZxid, version };
}

describe('registering an instance', () => {
  it.each([
    ['DYNAMIC', true],
    ['STATIC', false],
    ['PERMANENT', false],
  ] as const)(
    'writes Curator’s JSON for a %s one, which %s goes with the session, and takes it back',
    async (serviceType, isEphemeral) => {
      const one = registrant(connect);
      const instance = orders({
        serviceType,
        payload: { nodeId: '7' },
        sslPort: 8443,
        uriSpec: '{scheme}://{address}:{port}',
      });
      await one.discovery.register(instance);
      expect((await at())?.owner).toBe(isEphemeral ? sessionIdOf(one.zookeeper) : undefined);
      expect(await one.discovery.queryForNames()).toEqual(['orders']);
      expect(await one.discovery.queryForInstances('orders')).toEqual([instance]);
      expect(await one.discovery.queryForInstance('orders', 'one')).toEqual(instance);
      expect(one.discovery.registered).toEqual([instance]);
      await one.discovery.unregister(instance);
      expect(await at()).toBeUndefined();
      expect(await one.discovery.queryForInstances('orders')).toEqual([]);
      expect(one.discovery.registered).toEqual([]);
      expect(types(one)).not.toContain('superseded');
    },
  );

  it('refuses what would keep the program of a present instance from reading the service, and registers it once that has gone', async () => {
    const dubbo = await readFile('test/fixtures/dubbo/registered.znode');
    const path = '/services/orders/192.0.2.2:20880';
    await reader.createWithParents(path, dubbo, 'persistent');
    await reader.createWithParents('/services/orders/providers', '10.0.0.7', 'persistent');
    const { discovery } = registrant(connect);
    const refusal = {
      ...{ fault: 'mixed-payloads', outcome: 'not-applied', path: '/services/orders' },
      message: expect.stringContaining('org.apache.dubbo.registry.zookeeper.ZookeeperInstance'),
    };
    const more = new ServiceDirectory({ zookeeper: reader, clock: systemClock, payload: jsonPayload });
    const registering = discovery.register(orders());
    await Promise.all([
      expect(registering).rejects.toMatchObject(refusal),
      expect(discovery.register(orders({ serviceType: 'DYNAMIC_SEQUENTIAL' }))).rejects.toMatchObject(
        refusal,
      ),
      expect(more.write(orders({ serviceType: 'STATIC' }))).rejects.toMatchObject(refusal),
      discovery.register(orders({ name: 'users' })),
    ]);
    expect(discovery.registered.map(({ name }) => name)).toEqual(['users']);
    expect((await reader.children('/services/orders'))?.length).toBe(2);
    await reader.remove(path);
    await discovery.register(orders());
    expect(await reader.children('/services/orders')).toContain('one');
  });

  it('warns once of present plain JSON, whose readers may not read the new instance', async () => {
    await reader.createWithParents(
      '/services/orders/old',
      '{"port":80,"payload":{"zone":"a"}}',
      'persistent',
    );
    const one = registrant(connect, { payload: springPayload as PayloadCodec<unknown> });
    await one.discovery.register(orders({ payload: SPRING }));
    await one.discovery.register(orders({ payload: SPRING, port: 9090 }));
    const kinds = 'plain JSON, org.springframework.cloud.zookeeper.discovery.ZookeeperInstance';
    const problem = `has instances of different payload classes, so Java programs cannot read it: ${kinds}`;
    const warnings = () => one.events.filter(({ type }) => type === 'mixed-payloads');
    await expect.poll(warnings).toEqual([{ type: 'mixed-payloads', path: '/services/orders', problem }]);
  });

  it('lets the servers number a DYNAMIC_SEQUENTIAL one, and takes back its own number only', async () => {
    const one = registrant(connect);
    const other = registrant(connect);
    const instance = orders({ serviceType: 'DYNAMIC_SEQUENTIAL' });
    await one.discovery.register(instance);
    await other.discovery.register(orders({ serviceType: 'DYNAMIC_SEQUENTIAL', port: 9090 }));
    expect([...((await reader.children('/services/orders')) ?? [])].sort()).toEqual([
      'one0000000000',
      'one0000000001',
    ]);
    expect(await one.discovery.queryForInstance('orders', 'one0000000000')).toEqual(instance);
    await one.discovery.unregister(instance);
    expect(await reader.children('/services/orders')).toEqual(['one0000000001']);
  });

  it('reports an update in the same znode, and refuses one of an instance that is not registered here or has another type', async () => {
    const one = registrant(connect);
    for (const serviceType of ['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC'] as const) {
      const instance = orders({ serviceType, id: serviceType });
      await one.discovery.register(instance);
      const [before] = (await one.discovery.queryForInstances('orders')).filter(
        ({ id }) => id === serviceType,
      );
      expect(before).toEqual(instance);
      await one.discovery.update({ ...instance, enabled: false, port: 9090 });
      const [after] = (await one.discovery.queryForInstances('orders')).filter(
        ({ id }) => id === serviceType,
      );
      expect(after).toEqual({ ...instance, enabled: false, port: 9090 });
    }
    expect(await reader.children('/services/orders')).toHaveLength(3);
    const tree = await snapshot(reader, '/services');
    expect(
      tree.filter((line) => line.includes('"enabled":false')).every((line) => / \d+ 1 /.test(line)),
    ).toBe(true);
    await expect(one.discovery.update(orders({ id: 'unknown' }))).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
    const other = orders({ id: 'STATIC', serviceType: 'PERMANENT' });
    await expect(one.discovery.update(other)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      setting: 'instance.serviceType',
    });
    expect(await snapshot(reader, '/services')).toEqual(tree);
    expect(types(one)).not.toContain('restored');
  });

  it('can change the type of one that is registered, in any direction, and no reader ever sees two of them', async () => {
    const one = registrant(connect);
    const sequence = [
      'DYNAMIC',
      'STATIC',
      'DYNAMIC',
      'DYNAMIC_SEQUENTIAL',
      'PERMANENT',
      'DYNAMIC_SEQUENTIAL',
      'DYNAMIC',
    ] as const;
    for (const serviceType of sequence) {
      const instance = orders({ serviceType });
      await one.discovery.register(instance);
      expect(await one.discovery.queryForInstances('orders')).toEqual([instance]);
    }
    await one.discovery.unregister(orders());
    expect(await reader.children('/services/orders')).toEqual([]);
  });

  it('takes names with characters of all kinds', async () => {
    const one = registrant(connect, { basePath: '/über services/%2F' });
    const instances = ['naïve 100%', '%41', '日本語', ' ', '__proto__', 'constructor', 'a:b?c#d\\e"f'].map(
      (name) => orders({ name, id: name }),
    );
    await Promise.all(instances.map((instance) => one.discovery.register(instance)));
    expect(await one.discovery.queryForNames()).toEqual(instances.map(({ name }) => name).sort());
    for (const instance of instances)
      expect(await one.discovery.queryForInstances(instance.name)).toEqual([instance]);
    await Promise.all(instances.map((instance) => one.discovery.unregister(instance)));
    for (const { name } of instances) expect(await one.discovery.queryForInstances(name)).toEqual([]);
  });

  it.each<[string, Partial<ServiceInstance>]>([
    ['a name with a slash', { name: 'a/b' }],
    ['an empty name', { name: '' }],
    ['a name that is too long', { name: 'n'.repeat(300) }],
    ['a dot for a name', { name: '..' }],
    ['an id with a slash', { id: 'a/b' }],
    ['an empty id', { id: '' }],
    ['no address', { address: undefined }],
    ['port 0', { port: 0 }],
    ['port 65536', { port: 65_536 }],
    ['a port that is no number', { port: '80' as unknown as number }],
    ['a payload that is no JSON', { payload: 1n }],
    ['a payload that goes in a circle', { payload: circle() }],
    ['a payload that is too large', { payload: { text: 'x'.repeat(1_100_000) } }],
    ['an unknown type', { serviceType: 'dynamic' as 'DYNAMIC' }],
  ])('refuses %s, clearly, and writes nothing', async (_, wrong) => {
    const one = registrant(connect);
    await one.discovery.register(orders());
    const tree = await snapshot(reader, '/');
    const instance = { ...orders(), ...wrong };
    await expect(one.discovery.register(instance)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/expected/),
    });
    if (!('name' in wrong) && !('id' in wrong))
      await expect(one.discovery.update(instance)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    expect(await snapshot(reader, '/')).toEqual(tree);
    expect(one.discovery.registered).toHaveLength(1);
    expect(one.discovery.state.status).toBe('synced');
  });

  it.each(['services', '/services/', '', '/a//b', '/..'])('refuses the base path %j', (basePath) => {
    expect(() => registrant(connect, { basePath })).toThrow(/basePath: expected an absolute path/);
  });
});

describe('an instance that is registered', () => {
  it.each(['DYNAMIC', 'STATIC', 'DYNAMIC_SEQUENTIAL'] as const)(
    'is restored within a moment when somebody removes or overwrites it (%s)',
    async (serviceType) => {
      const clock = new VirtualClock();
      const one = registrant(connect, { clock });
      const instance = orders({ serviceType });
      await one.discovery.register(instance);
      const [name] = (await reader.children('/services/orders')) ?? [];
      const stands = () => until(async () => (await one.discovery.queryForInstances('orders')).length === 1);
      await reader.setData(`/services/orders/${name}`, 'scribble');
      // At once: the clock stands still.
      await stands();
      await expect.poll(() => one.discovery.state.status).toBe('synced');
      await reader.remove(`/services/orders/${name}`);
      if (serviceType !== 'DYNAMIC_SEQUENTIAL') {
        await until(() => clock.sleepers > 0);
        await clock.advance(300);
      }
      await stands();
      await expect.poll(() => one.discovery.state.status).toBe('synced');
      expect(await one.discovery.queryForInstances('orders')).toEqual([instance]);
      expect(one.events.filter(({ type }) => type === 'restored')).toMatchObject(
        [{ problem: 'was overwritten' }, { problem: /removed/ }].map(({ problem }) => ({
          problem: expect.stringMatching(problem),
        })),
      );
      await one.discovery.unregister(instance);
      expect(await reader.children('/services/orders')).toEqual([]);
    },
  );

  it('is made again with its parents when those were removed', async () => {
    const one = registrant(connect);
    await one.discovery.register(orders());
    await reader.remove(PATH);
    // Whichever is quicker: the parents can only be removed while they are empty.
    await Promise.allSettled([reader.remove('/services/orders'), reader.remove('/services')]);
    await until(async () => (await at()) !== undefined);
  });

  it('exists in every new session, once, whatever its type', async () => {
    const one = registrant(connect);
    const instances = (['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC'] as const).map((serviceType) =>
      orders({ serviceType, id: serviceType }),
    );
    for (const instance of instances) await one.discovery.register(instance);
    for (let round = 0; round < 2; round += 1) {
      await renewSession(one);
      const sessionId = sessionIdOf(one.zookeeper);
      await until(async () => {
        const names = (await reader.children('/services/orders')) ?? [];
        const owners = await Promise.all(
          names.map(async (name) => (await at(`/services/orders/${name}`))?.owner),
        );
        return owners.filter((owner) => owner === sessionId).length === 2;
      });
      await expect.poll(() => one.discovery.state.status).toBe('synced');
      expect(await one.discovery.queryForInstances('orders')).toEqual(instances);
      expect((await at('/services/orders/STATIC'))?.owner).toBeUndefined();
    }
    expect(types(one)).not.toContain('superseded');
    expect(types(one)).not.toContain('restored');
    for (const instance of instances) await one.discovery.unregister(instance);
    expect(await reader.children('/services/orders')).toEqual([]);
  });

  it('replaces the content of that moment, of whatever mode and session, and no reader ever sees the place empty', async () => {
    // Slow enough for whatever is not done at once to be seen.
    const { proxy, through } = await throughProxy(connect);
    proxy.delay(30);
    const watched: (string | undefined)[] = [];
    const seen = reader.watchData(PATH, (znode) => watched.push(znode?.data.toString()));
    await seen.first;
    for (const mode of ['ephemeral', 'persistent'] as const) {
      for (const serviceType of ['DYNAMIC', 'STATIC'] as const) {
        await client(connect).createWithParents(PATH, 'a leftover', mode);
        watched.length = 0;
        const one = registrant(through);
        await one.discovery.register(orders({ serviceType }));
        expect((await at())?.owner).toBe(serviceType === 'DYNAMIC' ? sessionIdOf(one.zookeeper) : undefined);
        await until(() => watched.length > 0);
        expect(watched).not.toContain(undefined);
        await one.discovery.close();
        await until(() => watched.at(-1) === undefined);
      }
    }
  });
});

describe('two that register the same id', () => {
  it.each([
    ['DYNAMIC', 'DYNAMIC'],
    ['STATIC', 'STATIC'],
    ['DYNAMIC', 'STATIC'],
    ['STATIC', 'DYNAMIC'],
  ] as const)(
    'do not fight over it: the last one has it until it goes (%s, then %s)',
    async (earlier, later) => {
      const clock = new VirtualClock();
      const first = registrant(connect, { clock });
      const second = registrant(connect, { clock });
      await first.discovery.register(orders({ port: 1, serviceType: earlier }));
      await letSee(first);
      await second.discovery.register(orders({ port: 2, serviceType: later }));
      const before = await identity();
      await until(() => types(first).includes('superseded'));
      await letAct(clock, first, second);
      expect(await identity()).toEqual(before);
      expect(await at()).toMatchObject({ port: 2 });
      expect(first.discovery.state).toMatchObject({
        status: 'degraded',
        problem: expect.stringContaining('registered by somebody else'),
      });
      expect(second.discovery.state.status).toBe('synced');
      // What the last one does to its own is no news for the first, and what the first wants is not written.
      await second.discovery.update(orders({ port: 3, serviceType: later }));
      const updating = expect(
        first.discovery.update(orders({ port: 4, serviceType: earlier })),
      ).rejects.toMatchObject({ fault: 'timeout' });
      await letAct(clock, first, second);
      await updating;
      expect(await at()).toMatchObject({ port: 3 });
      expect(first.events.filter(({ type }) => type === 'superseded')).toEqual([
        {
          type: 'superseded',
          path: PATH,
          by: later === 'DYNAMIC' ? sessionIdOf(second.zookeeper) : undefined,
        },
      ]);
      await second.discovery.unregister(orders());
      await until(() => clock.sleepers > 0);
      await clock.advance(300);
      await until(async () => (await at())?.port === 4);
      await expect.poll(() => first.discovery.state.status).toBe('synced');
      expect(types(second)).not.toContain('superseded');
    },
  );

  it('do not fight over it when they share a session, not even over the sessions that follow', async () => {
    const clock = new VirtualClock();
    const first = registrant(connect, { clock });
    const second = registrant(connect, { clock, zookeeper: first.zookeeper });
    await first.discovery.register(orders({ port: 1 }));
    await second.discovery.register(orders({ port: 2 }));
    const before = await identity();
    await until(() => types(first).includes('superseded'));
    await letAct(clock, first, second);
    expect(await identity()).toEqual(before);
    await renewSession(first);
    await until(async () => (await at())?.owner === sessionIdOf(first.zookeeper));
    await letAct(clock, first, second);
    const after = await identity();
    await letAct(clock, first, second);
    expect(await identity()).toEqual(after);
    expect([first, second].map(({ discovery }) => discovery.state.status).sort()).toEqual([
      'degraded',
      'synced',
    ]);
  });

  it('do not fight over it when both lose their sessions, and one of them has it afterwards', async () => {
    const clock = new VirtualClock();
    const both = [registrant(connect, { clock }), registrant(connect, { clock })];
    for (const [index, { discovery }] of both.entries())
      await discovery.register(orders({ port: index + 1 }));
    await Promise.all(both.map((each) => renewSession(each)));
    await until(async () => {
      const owner = (await at())?.owner;
      return owner !== undefined && both.some(({ zookeeper }) => sessionIdOf(zookeeper) === owner);
    });
    await letAct(clock, ...both);
    const before = await identity();
    await letAct(clock, ...both);
    expect(await identity()).toEqual(before);
    expect(both.map(({ discovery }) => discovery.state.status).sort()).toEqual(['degraded', 'synced']);
  });

  it('take it back only when they are asked to again', async () => {
    const clock = new VirtualClock();
    const first = registrant(connect, { clock });
    const second = registrant(connect, { clock });
    await first.discovery.register(orders({ port: 1 }));
    await second.discovery.register(orders({ port: 2 }));
    await until(() => types(first).includes('superseded'));
    await first.discovery.register(orders({ port: 1 }));
    expect(await at()).toMatchObject({ port: 1 });
    const before = await identity();
    await until(() => types(second).includes('superseded'));
    await letAct(clock, first, second);
    expect(await identity()).toEqual(before);
    expect(first.discovery.state.status).toBe('synced');
  });

  it.each(['DYNAMIC', 'STATIC'] as const)('remove nothing of each other (%s)', async (serviceType) => {
    const first = registrant(connect);
    const second = registrant(connect);
    await first.discovery.register(orders({ port: 1, serviceType }));
    await letSee(first);
    await second.discovery.register(orders({ port: 2, serviceType }));
    await until(() => types(first).includes('superseded'));
    const tree = await snapshot(reader, '/services');
    await first.discovery.unregister(orders());
    await expect.poll(() => first.discovery.state.status).toBe('synced');
    expect(await snapshot(reader, '/services')).toEqual(tree);
  });

  it('bound what they write against a third one that overwrites it all the time', async () => {
    const clock = new VirtualClock();
    const one = registrant(connect, { clock });
    await one.discovery.register(orders());
    let scribbles = 0;
    const watch = reader.watchData(PATH, (znode) => {
      if (znode === undefined || znode.data.toString() === 'scribble') return;
      scribbles += 1;
      reader.setData(PATH, 'scribble').catch(() => undefined);
    });
    // Twenty writes in five seconds, its first one among them.
    await until(() => scribbles >= 20);
    for (let read = 0; read < 10; read += 1) await one.zookeeper.read(PATH);
    expect(scribbles).toBe(20);
    expect(one.discovery.state.status).toBe('degraded');
    watch.close();
    await until(async () => {
      await clock.advance(500);
      return (await at().catch(() => undefined))?.port === 8080;
    });
  });
});

describe('while ZooKeeper is away', () => {
  it('everything is kept for its return: what was registered, changed and taken back meanwhile', async () => {
    const server = await startZooKeeperProcess();
    try {
      const one = registrant(`${server.connect}/away`, { sessionTimeoutMs: 4_000 });
      const other = client(`${server.connect}/away`);
      await one.discovery.register(orders({ id: 'stays' }));
      await one.discovery.register(orders({ id: 'fixed', serviceType: 'STATIC' }));
      await one.discovery.register(orders({ id: 'goes' }));
      await server.stop();
      await until(() => one.discovery.state.status === 'degraded');
      const late = one.discovery.register(orders({ id: 'late' }), { timeoutMs: 60_000 });
      await expect(one.discovery.register(orders({ id: 'later' }), { timeoutMs: 50 })).rejects.toMatchObject({
        ...{ code: 'ZOOKEEPER_FAILED', fault: 'timeout', message: expect.stringContaining('no connection') },
      });
      const reason = new Error('enough');
      const gone = one.discovery.unregister(orders({ id: 'goes' }), { signal: AbortSignal.abort(reason) });
      await expect(gone).rejects.toBe(reason);
      expect(one.discovery.registered.map(({ id }) => id)).toContain('goes');
      const leaving = one.discovery.unregister(orders({ id: 'goes' }), { timeoutMs: 60_000 });
      // Nothing of it was ever written: it need not be waited for.
      const never = one.discovery.register(orders({ id: 'never' }), { timeoutMs: 60_000 });
      await one.discovery.unregister(orders({ id: 'never' }), { timeoutMs: 50 });
      await expect(never).rejects.toMatchObject({ fault: 'aborted' });
      await one.discovery.update(orders({ id: 'stays', port: 9 }), { timeoutMs: 50 }).catch(() => undefined);
      await server.start();
      await Promise.all([late, leaving]);
      await expect.poll(() => one.discovery.state.status).toBe('synced');
      expect([...((await other.children('/services/orders')) ?? [])].sort()).toEqual([
        'fixed',
        'late',
        'later',
        'stays',
      ]);
      expect(await one.discovery.queryForInstance('orders', 'stays')).toMatchObject({ port: 9 });
    } finally {
      await closeRegistrants();
      await server.dispose();
    }
  });

  it('a wait ends at once with the reason of its signal, and what was asked for is done all the same', async () => {
    const { proxy, through } = await throughProxy(connect);
    proxy.cut();
    const one = registrant(through);
    const abort = new AbortController();
    const waiting = one.discovery.register(orders(), { signal: abort.signal });
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    proxy.heal();
    await until(async () => (await at()) !== undefined);
  });
});

describe('an answer that is lost', () => {
  it.each(['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC'] as const)(
    'leads to no second znode, and to none that is left behind (%s)',
    async (serviceType) => {
      const { proxy, through } = await throughProxy(connect);
      const one = registrant(through);
      const instance = orders({ serviceType });
      // So that the parents are there, and a single request makes the znode.
      await one.discovery.register(orders({ id: 'parents', serviceType: 'STATIC' }));
      const create = one.zookeeper.createWithParents.bind(one.zookeeper);
      for (const unregisters of [false, true]) {
        one.zookeeper.createWithParents = (...given) => {
          one.zookeeper.createWithParents = create;
          proxy.stall('to-client');
          return create(...given);
        };
        const registering = one.discovery.register(instance, { timeoutMs: 60_000 });
        registering.catch(() => undefined);
        await until(async () => (await reader.children('/services/orders'))?.length === 2);
        const leaving = unregisters ? one.discovery.unregister(instance, { timeoutMs: 60_000 }) : undefined;
        proxy.heal();
        await (leaving ?? registering);
        await expect.poll(() => one.discovery.state.status).toBe('synced');
        expect(await one.discovery.queryForInstances('orders')).toHaveLength(unregisters ? 1 : 2);
        await one.discovery.unregister(instance);
        expect(await reader.children('/services/orders')).toEqual(['parents']);
      }
    },
  );

  it.each(['createWithParents', 'multi', 'setData', 'remove'] as const)(
    'of %s is read back',
    async (method) => {
      for (const serviceType of ['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC'] as const) {
        const one = registrant(connect);
        const instance = orders({ serviceType, id: serviceType });
        if (method === 'multi')
          await client(connect).createWithParents(
            `/services/orders/${serviceType}`,
            'a leftover',
            'ephemeral',
          );
        let lost = 0;
        const call = one.zookeeper[method].bind(one.zookeeper) as (...given: unknown[]) => Promise<unknown>;
        const deaf = async (...given: unknown[]) => {
          const answer = await call(...given);
          if (lost > 2) return answer;
          lost += 1;
          throw new ZooKeeperError('lost', 'connection-loss', 'unknown');
        };
        Object.assign(one.zookeeper, { [method]: deaf });
        await one.discovery.register(instance, { timeoutMs: 20_000 });
        await one.discovery.update({ ...instance, port: 9 }, { timeoutMs: 20_000 });
        const mine = (await one.discovery.queryForInstances('orders')).filter(({ id }) => id === serviceType);
        expect(mine).toEqual([{ ...instance, port: 9 }]);
        await one.discovery.unregister(instance, { timeoutMs: 20_000 });
        const left = ((await reader.children('/services/orders')) ?? []).filter(
          (name) => !(method === 'multi' && name === serviceType),
        );
        expect(left).toEqual([]);
        expect(types(one)).not.toContain('superseded');
        expect(types(one)).not.toContain('restored');
        await closeClients();
        reader = client(connect);
      }
    },
  );

  it('of a session that has ended since makes nothing in the next one but what is wanted', async () => {
    const one = registrant(connect);
    await one.zookeeper.whenConnected();
    const create = one.zookeeper.createWithParents.bind(one.zookeeper);
    let late: Promise<unknown> | undefined;
    one.zookeeper.createWithParents = async (...given) => {
      one.zookeeper.createWithParents = create;
      await renewSession(one);
      late = create(...given);
      return late as Promise<string>;
    };
    const instance = orders({ serviceType: 'DYNAMIC_SEQUENTIAL' });
    await one.discovery.register(instance, { timeoutMs: 20_000 });
    await expect(late).rejects.toMatchObject({ fault: 'session-expired' });
    expect(await one.discovery.queryForInstances('orders')).toEqual([instance]);
  });
});

describe('under a lease', () => {
  it('nothing is written while it is not valid, and everything taken away', async () => {
    const lease = { valid: true, isValid: () => lease.valid };
    const one = registrant(connect, { lease });
    await one.discovery.register(orders());
    lease.valid = false;
    await reader.remove(PATH);
    await expect(one.discovery.register(orders({ id: 'two' }), { timeoutMs: 500 })).rejects.toMatchObject({
      ...{ fault: 'timeout', message: expect.stringContaining('the lease is not valid') },
    });
    expect(await reader.children('/services/orders')).toEqual([]);
    lease.valid = true;
    await until(async () => (await reader.children('/services/orders'))?.length === 2);
    await expect.poll(() => one.discovery.state.status).toBe('synced');
    lease.valid = false;
    expect(await one.discovery.withdraw(5_000)).toBe(true);
    expect(await reader.children('/services/orders')).toEqual([]);
  });
});

describe('the end', () => {
  it('unregisters everything of every type, nothing of others, and leaves the session open', async () => {
    const one = registrant(connect);
    for (const serviceType of ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'] as const) {
      await one.discovery.register(orders({ serviceType, id: serviceType }));
    }
    const other = registrant(connect);
    await other.discovery.register(orders({ id: 'other' }));
    await one.discovery.close();
    expect(await reader.children('/services/orders')).toEqual(['other']);
    expect(one.zookeeper.state.status).toBe('connected');
    expect(one.discovery.state.status).toBe('closed');
    await expect(one.discovery.register(orders())).rejects.toMatchObject({ fault: 'closed' });
    expect(one.zookeeper.openWatches).toBe(0);
  });

  it('closes the caches and providers that were made of it, and the ones that were closed before are forgotten', async () => {
    const one = registrant(connect);
    await one.discovery.register(orders());
    const cache = one.discovery.cache('orders');
    const provider = one.discovery.provider('orders');
    await Promise.all([cache.ready, provider.ready]);
    expect(cache.instances).toEqual([
      orders({ registrationTimeUTC: cache.instances[0]?.registrationTimeUTC }),
    ]);
    expect(provider.url()).toBe('http://10.0.0.7:8080');
    const open = one.zookeeper.openWatches;
    cache.close();
    expect(one.zookeeper.openWatches).toBeLessThan(open);
    await one.discovery.close();
    expect(one.zookeeper.openWatches).toBe(0);
    expect(() => one.discovery.cache('orders')).toThrow(/closed/);
  });

  it('comes within a bounded time where no server answers', async () => {
    const { proxy, through } = await throughProxy(connect);
    const clock = new VirtualClock();
    const one = registrant(through, { clock });
    await one.discovery.register(orders());
    proxy.stall('both');
    const waiting = expect(one.discovery.register(orders({ id: 'two' }))).rejects.toMatchObject({
      fault: 'aborted',
    });
    const closing = one.discovery.close();
    await clock.advance(2_000);
    await closing;
    await waiting;
  });

  it('comes at once where the client was closed before', async () => {
    // It waits for nothing: its clock stands still.
    const one = registrant(connect, { clock: new VirtualClock() });
    await one.discovery.register(orders());
    await one.zookeeper.close();
    await one.discovery.close();
    await until(async () => (await at()) === undefined);
  });
});

function circle(): unknown {
  const self: { self?: unknown } = {};
  self.self = self;
  return self;
}
