import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ManagedLease } from '../../../../src/node/runtime/acquire.js';
import { type AcquireZooKeeperOptions, acquire } from '../../../../src/node/runtime/acquire.js';
import type { Discovery } from '../../../../src/zookeeper/discovery/discovery.js';
import { runInProcess } from '../../../support/in-process.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { restrict } from '../discovery/discovery-support.js';
import { NODE, RegisterScene, SERVICE } from './register-support.js';

let scene: RegisterScene;
const leases: ManagedLease[] = [];

beforeEach(async () => {
  scene = await RegisterScene.open();
});
afterEach(async () => {
  await Promise.all(leases.splice(0).map((lease) => lease.release()));
  await scene.close();
});

describe('a lease of the library', () => {
  const announcement = { service: 'orders', address: 'host', port: 80 };

  async function hold(
    zookeeper: Omit<AcquireZooKeeperOptions, 'connect'> = {},
    through = scene.connect,
  ): Promise<ManagedLease & { discovery: Discovery }> {
    const announced = { connect: through, ...announcement, ...zookeeper };
    const lease = await acquire({ store: 'memory:', taskId: 'me', onLost: 'signal', zookeeper: announced });
    leases.push(lease);
    return lease as ManagedLease & { discovery: Discovery };
  }

  it('registers what it is asked to, takes it out and puts it back, and leaves nothing behind', async () => {
    const lease = await hold({ payload: { weight: 5 }, required: true });
    const { discovery } = lease;
    // It was required to be there.
    expect(await scene.directory.instance('orders', 'me')).toMatchObject({
      payload: { weight: 5, nodeId: 0, version: 1 },
    });
    const { services } = discovery;
    await services.register(
      services.newInstance({ name: 'more', address: 'host', serviceType: 'DYNAMIC_SEQUENTIAL' }),
    );
    expect(await scene.directory.names()).toEqual(['more', 'orders']);

    expect(await discovery.withdrawService(20_000)).toBe(true);
    expect([await scene.ids(), await scene.reader.at(SERVICE)]).toEqual([[], undefined]);
    expect(await scene.reader.at(NODE)).toBeDefined();
    discovery.announceService();
    await discovery.synced(20_000);
    expect([await scene.ids(), await scene.reader.at(SERVICE)]).toMatchObject([['me'], { nodeId: 0 }]);
    expect(discovery.state).toEqual({ status: 'synced' });

    await lease.release();
    expect([await scene.ids(), await scene.directory.instances('more')]).toEqual([[], []]);
    expect(discovery.state).toEqual({ status: 'closed' });
  });

  it.each(['STATIC', 'PERMANENT'] as const)(
    'registers nothing in its name that would outlive it: %s',
    async (serviceType) => {
      const { services } = (await hold({ required: true })).discovery;
      const instance = services.newInstance({ name: 'db', address: 'host', serviceType });
      await expect(services.register(instance)).rejects.toMatchObject({
        setting: 'instance.serviceType',
        value: serviceType,
      });
      expect([services.registered.length, await scene.directory.names()]).toEqual([1, ['orders']]);
    },
  );

  it('announces nothing any more once it has left', async () => {
    const lease = await hold({ required: true });
    expect(await lease.discovery.withdrawService(20_000)).toBe(true);
    await lease.release();
    lease.discovery.announceService();
    expect(lease.discovery.services.registered).toEqual([]);
  });

  it('waits for what sends work to it, and for nothing else, when that is taken out', async () => {
    await scene.reader.zookeeper.createWithParents(NODE, 'garbage', 'persistent');
    const { discovery } = await hold();
    await scene.untilIds(['me']);
    await scene.reader.until(SERVICE, (seen) => seen !== undefined);
    // This wait is not over by itself before the test is.
    expect(await discovery.withdrawService(600_000)).toBe(true);
    expect([await scene.ids(), await scene.reader.at(SERVICE), discovery.state.status]).toEqual([
      [],
      undefined,
      'degraded',
    ]);
  });

  it.each(['/services/orders', '/discovery/servicetypes/orders'])(
    'does not say that it is out while it is not: %s',
    async (parent) => {
      const lease = await hold({ required: true });
      const { discovery } = lease;
      await restrict(scene.connect, parent, ['read', 'write', 'create']);
      expect(await discovery.withdrawService(1_000)).toBe(false);
      // Neither of these waits is over by itself before the test is.
      const recalled = discovery.withdrawService(600_000);
      discovery.announceService();
      expect(await recalled).toBe(false);
      const ended = discovery.withdrawService(600_000);
      await lease.release();
      expect(await ended).toBe(false);
    },
  );

  it('does not wait at all without a connection, and is out on its return', async () => {
    const { proxy, through } = await throughProxy(scene.connect);
    const { discovery } = await hold({ required: true, sessionTimeoutMs: 60_000 }, through);
    proxy.cut();
    await expect.poll(() => discovery.zookeeper.state.status).not.toBe('connected');
    expect(await discovery.withdrawService(600_000)).toBe(false);
    proxy.heal();
    await scene.untilIds([]);
    await scene.reader.until(SERVICE, (seen) => seen === undefined);
    // It knows: the reply to the last removal may come after what the reader saw.
    expect(await discovery.withdrawService(600_000)).toBe(true);
    proxy.cut();
    await expect.poll(() => discovery.zookeeper.state.status).not.toBe('connected');
    expect(await discovery.withdrawService(600_000)).toBe(true);
  });

  it('is out of everything when its node id, which comes only from ZooKeeper, is taken away, though its session goes on until the work has ended', async () => {
    const zookeeper = {
      connect: scene.connect,
      service: 'orders',
      address: 'host',
      port: 80,
      sessionTimeoutMs: 30_000,
    };
    const lease = await acquire({ provider: 'zookeeper', taskId: 'task', onLost: 'signal', zookeeper });
    try {
      await scene.untilIds(['task']);
      expect(
        (
          await runInProcess([
            'release',
            '0',
            '--force',
            '--provider',
            'zookeeper',
            '--zookeeper',
            scene.connect,
          ])
        ).code,
      ).toBe(0);
      await scene.untilIds([]);
      await scene.reader.until(SERVICE, (seen) => seen === undefined);
      expect(lease.signal.aborted).toBe(true);
      expect(lease.discovery?.zookeeper.state.status).toBe('connected');
      expect(await lease.discovery?.withdrawService(20_000)).toBe(true);
      lease.discovery?.announceService();
      expect(lease.discovery?.services.registered).toEqual([]);
    } finally {
      await lease.release();
    }
  });
});
