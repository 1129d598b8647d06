import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { uniqueIds } from '../../../../src/core/id/lease-ids.js';
import { acquire, type ManagedLease } from '../../../../src/node/runtime/acquire.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { zkCli } from '../../../support/servers/zookeeper-process.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { instanceOf } from '../services/curator-support.js';
import { client, closeClients } from './discovery-support.js';

const OLD = 'digest:shop:old';
const NEW = 'digest:shop:new';

let connect: string;
let folder: string;
const leases: ManagedLease[] = [];

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('access')}`;
  folder = await mkdtemp(join(tmpdir(), 'nodelease-access-'));
});
afterEach(async () => {
  await Promise.all(leases.splice(0).map((lease) => lease.release()));
  await closeClients();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** A node that stands in the tree, and has made a unique id. */
async function start(provider: 'store' | 'zookeeper', taskId: string, auth?: string): Promise<ManagedLease> {
  const store = provider === 'store' ? { store: `file:${folder}`, nodes: 4 } : {};
  const zookeeper = {
    connect,
    ...(auth !== undefined && { auth }),
    service: 'orders',
    port: 8080,
    endpoints: [{ endpoint: 'pay' }],
  };
  const lease = await acquire({ provider, ...store, taskId, zookeeper, onLost: 'signal' });
  leases.push(lease);
  await (await uniqueIds(lease)).nextAsync();
  await lease.discovery?.synced(30_000);
  return lease;
}

async function registered(zookeeper: ZooKeeperClient): Promise<readonly string[]> {
  return [...((await zookeeper.children('/services/orders')) ?? [])].sort();
}

describe.each(['store', 'zookeeper'] as const)('nodes with ids from the %s', (provider) => {
  it('change their digest one after the other, next to nodes that have none, and no other changes what is theirs', async () => {
    const one = await start(provider, 'one', OLD);
    await start(provider, 'two', OLD);
    const three = await start(provider, 'three', NEW);
    await start(provider, 'four');
    const guest = client(connect);
    expect(await registered(guest)).toEqual(['four', 'one', 'three', 'two']);

    await one.release();
    expect(await registered(guest)).toEqual(['four', 'three', 'two']);
    // It takes the id, and what the other user left behind of it.
    expect(await start(provider, 'again', NEW)).toMatchObject({ id: one.id });
    expect(await three.discovery?.withdrawService(20_000)).toBe(true);
    expect(await registered(guest)).toEqual(['again', 'four', 'two']);

    for (const path of ['/discovery/nodes/00/08', '/services/orders/again', '/services/orders/two'])
      await expect(guest.setData(path, 'theirs')).rejects.toMatchObject({ fault: 'no-auth', path });
  });
});

it("Java's own client, without any digest, registers next to a node that has one, and goes again", async () => {
  await start('store', 'one', OLD);
  await zkCli(connect, ['create', '/services/orders/java', '{}']);
  expect(await zkCli(connect, ['ls', '/services/orders'])).toBe('[java, one]');
  await zkCli(connect, ['delete', '/services/orders/java']);
  expect(await registered(client(connect))).toEqual(['one']);
});

it('an instance that outlives its user is replaced and removed by the next one, and changed by no other', async () => {
  const directoryOf = (auth: string) =>
    new ServiceDirectory<unknown>({
      zookeeper: client(connect, { auth }),
      clock: systemClock,
      payload: jsonPayload,
    });
  const instance = instanceOf({ serviceType: 'PERMANENT' });
  await directoryOf(OLD).write(instance);
  await expect(client(connect).setData('/services/orders/ours', 'theirs')).rejects.toMatchObject({
    fault: 'no-auth',
  });
  const after = directoryOf(NEW);
  await after.write({ ...instance, port: 9090 });
  expect(await after.instance('orders', 'ours')).toMatchObject({ port: 9090 });
  expect(await after.remove('orders', 'ours')).toBe(true);
});
