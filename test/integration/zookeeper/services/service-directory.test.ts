import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { ZooKeeperError } from '../../../../src/zookeeper/client/zookeeper-error.js';
import { jsonPayload, type PayloadCodec } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, restrict } from '../discovery/discovery-support.js';
import { orders, snapshot } from './services-support.js';

let connect: string;
let zookeeper: ZooKeeperClient;
let reports: [string, string][];

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  zookeeper = client(connect);
  reports = [];
});
afterEach(async () => {
  await stopProxies();
  await closeClients();
});

function directory<P = unknown>(
  payload = jsonPayload as PayloadCodec<P>,
  through = zookeeper,
): ServiceDirectory<P> {
  const onUnreadable = (path: string, problem: string) => reports.push([path, problem]);
  return new ServiceDirectory<P>({ zookeeper: through, clock: systemClock, payload, onUnreadable });
}

/** Payloads of one Java class, and of no other. */
const nodes: PayloadCodec<{ nodeId: string }> = {
  encode: ({ nodeId }) => ({ '@class': 'com.example.Node', nodeId }),
  decode: (json) => {
    const { '@class': name, nodeId } = json as Record<string, unknown>;
    if (name !== 'com.example.Node') throw new Error(`its class is ${name}`);
    return { nodeId: String(nodeId) };
  },
};

async function put(path: string, data: string): Promise<void> {
  await zookeeper.createWithParents(path, data, 'persistent');
}

describe('a query', () => {
  it('finds nothing where nothing is registered', async () => {
    const services = directory();
    expect(await services.names()).toEqual([]);
    expect(await services.instances('orders')).toEqual([]);
    expect(await services.instance('orders', 'one')).toBeUndefined();
    expect(await services.remove('orders', 'one')).toBe(false);
    expect(await zookeeper.children('/')).toBeUndefined();
  });

  it('lists names and instances in their order, disabled ones among them', async () => {
    const services = directory();
    for (const id of ['c', 'a', 'b']) await services.write(orders({ id, enabled: id !== 'b' }));
    await services.write(orders({ name: 'billing' }));
    expect(await services.names()).toEqual(['billing', 'orders']);
    expect((await services.instances('orders')).map(({ id, enabled }) => [id, enabled])).toEqual([
      ['a', true],
      ['b', false],
      ['c', true],
    ]);
  });

  it('still finds the rest where others have written garbage, another payload class, or what may not be read, and reports each once', async () => {
    const services = directory(nodes);
    const readable = orders({ payload: { nodeId: '7' } }) as ServiceInstance<{ nodeId: string }>;
    await services.write(readable);
    const garbage: [string, string][] = [
      ['garbage', '\u0000\u0001 not JSON'],
      ['empty', ''],
      ['array', '[]'],
      ['null', 'null'],
      ['deep', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
      ['proto', '{"__proto__":{"enabled":false},"port":"many"}'],
      [
        'unknown-class',
        JSON.stringify({ name: 'orders', id: 'unknown-class', payload: { '@class': 'org.other.Thing' } }),
      ],
    ];
    for (const [id, data] of garbage) await put(`/services/orders/${id}`, data);
    await put('/services/orders/secret', 'none of your business');
    await restrict(connect, '/services/orders/secret', ['delete', 'admin']);
    // Children of an instance are not instances of the service.
    await put('/services/orders/array/below', '{}');
    for (let round = 0; round < 3; round += 1) {
      expect(await services.instances('orders')).toEqual([readable]);
      for (const [id] of [...garbage, ['secret']])
        expect(await services.instance('orders', id as string)).toBeUndefined();
    }
    expect(reports.map(([path]) => path).sort()).toEqual(
      [...garbage.map(([id]) => `/services/orders/${id}`), '/services/orders/secret'].sort(),
    );
    for (const [, problem] of reports) expect(problem).not.toBe('');
  });

  it('reports an instance again when its problem is another, and when it was readable in between', async () => {
    const services = directory();
    const path = '/services/orders/one';
    await put(path, 'garbage');
    for (const data of ['garbage', '[]', '[]', JSON.stringify({ port: 1 }), '[]']) {
      await zookeeper.setData(path, data);
      await services.instances('orders');
    }
    expect(reports).toHaveLength(3);
  });

  it('has one deadline for all that it reads, and ends with its signal', async () => {
    const { proxy, through } = await throughProxy(connect);
    const services = directory(jsonPayload, client(through));
    await services.write(orders());
    proxy.delay(300);
    const begun = performance.now();
    await expect(services.instances('orders', { timeoutMs: 800 })).rejects.toMatchObject({
      fault: 'timeout',
    });
    // With one for each read it would not come at all.
    expect(performance.now() - begun).toBeLessThan(20_000);
    await expect(services.instances('orders', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      fault: 'aborted',
    });
  });

  it('rejects where ZooKeeper fails, instead of returning half of the instances', async () => {
    const services = directory();
    for (const id of ['a', 'b']) await services.write(orders({ id }));
    const read = zookeeper.read.bind(zookeeper);
    zookeeper.read = async (path, call) => {
      if (path.endsWith('/b')) throw new ZooKeeperError('lost', 'connection-loss', 'not-applied');
      return read(path, call);
    };
    await expect(services.instances('orders')).rejects.toMatchObject({ fault: 'connection-loss' });
  });

  it('leaves out an instance that goes while it is asked for', async () => {
    const services = directory();
    await services.write(orders());
    const children = zookeeper.children.bind(zookeeper);
    zookeeper.children = async (path, call) => [...((await children(path, call)) ?? []), 'gone'];
    expect(await services.instances('orders')).toHaveLength(1);
    expect(reports).toEqual([]);
  });

  it.each(['a/b', '', '.', '..', 'a\u0000b'])('refuses the name %j', async (name) => {
    await expect(directory().instances(name)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });
});

describe('a single write', () => {
  it.each(['DYNAMIC', 'STATIC', 'PERMANENT'] as const)(
    'of a %s instance replaces what stands there, in one transaction',
    async (serviceType) => {
      const services = directory();
      for (const mode of ['ephemeral', 'persistent'] as const) {
        await client(connect).createWithParents('/services/orders/one', 'another', mode);
        const instance = orders({ serviceType });
        expect(await services.write(instance)).toBe('/services/orders/one');
        expect(await services.instances('orders')).toEqual([instance]);
        const owner = (await zookeeper.read('/services/orders/one'))?.stat.owner;
        expect(owner).toBe(
          serviceType === 'DYNAMIC' ? (await zookeeper.whenConnected()).sessionId : undefined,
        );
        expect(await services.remove('orders', 'one')).toBe(true);
      }
    },
  );

  it('shows which znode the servers have made of a sequential instance', async () => {
    const services = directory();
    expect(await services.write(orders({ serviceType: 'DYNAMIC_SEQUENTIAL' }))).toBe(
      '/services/orders/one0000000000',
    );
    expect(await services.write(orders({ serviceType: 'DYNAMIC_SEQUENTIAL' }))).toBe(
      '/services/orders/one0000000001',
    );
  });

  it('is not made in the next session where its own has ended on the way', async () => {
    const services = directory();
    const { sessionId } = await zookeeper.whenConnected();
    const read = zookeeper.read.bind(zookeeper);
    zookeeper.read = async (...given) => {
      const znode = await read(...given);
      await expireSession({ connect: inject('zookeeper').connect, sessionId });
      await expect
        .poll(() => zookeeper.state, { timeout: 20_000 })
        .toMatchObject({ status: 'connected', sessionId: expect.not.stringMatching(sessionId) });
      return znode;
    };
    await expect(services.write(orders(), { timeoutMs: 30_000 })).rejects.toMatchObject({
      fault: 'session-expired',
      outcome: 'not-applied',
    });
    expect(await read('/services/orders/one')).toBeUndefined();
  });

  it('goes on when the place is taken, changed or freed by another at the same moment', async () => {
    const services = directory();
    await services.write(orders());
    const other = client(connect);
    const read = zookeeper.read.bind(zookeeper);
    const path = '/services/orders/one';
    const meanwhile = [
      () => other.setData(path, 'changed'),
      () => other.remove(path),
      () => other.create(path, 'taken', 'ephemeral'),
    ];
    zookeeper.read = async (...given) => {
      const znode = await read(...given);
      await meanwhile.shift()?.();
      return znode;
    };
    await services.write(orders({ port: 9 }));
    expect(meanwhile).toEqual([]);
    expect(await services.instance('orders', 'one')).toMatchObject({ port: 9 });
  });

  it('writes nothing of an instance that others could not read', async () => {
    const services = directory();
    await services.write(orders());
    const tree = await snapshot(zookeeper, '/');
    for (const wrong of [{ address: undefined }, { port: 0 }, { id: 'a/b' }, { payload: 1n }]) {
      await expect(services.write({ ...orders(), ...wrong })).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
      });
    }
    expect(await snapshot(zookeeper, '/')).toEqual(tree);
  });
});
