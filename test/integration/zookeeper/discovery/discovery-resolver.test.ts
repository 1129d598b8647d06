import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Clock } from '../../../../src/core/base/clock.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { staticLease } from '../../../../src/core/lease/hold/static-lease.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { DiscoveryResolver } from '../../../../src/zookeeper/discovery/discovery-resolver.js';
import { DiscoveryTree } from '../../../../src/zookeeper/discovery/discovery-tree.js';
import { entryPath } from '../../../../src/zookeeper/discovery/layout.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, data, restrict } from './discovery-support.js';

let connect: string;
/** Another client, which changes the tree. */
let other: ZooKeeperClient;
const opened: (() => unknown)[] = [];

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('resolver')}`;
  other = client(connect);
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  await stopProxies();
  await closeClients();
});

function resolver(zookeeper = client(connect), clock: Clock = systemClock) {
  const reports: string[] = [];
  const made = new DiscoveryResolver({
    ...{ zookeeper, clock, random: systemRandom },
    onUnreadable: (path, problem) => reports.push(`${path} ${problem}`),
  });
  opened.push(() => made.close());
  return { resolver: made, zookeeper, reports };
}

const path = (nodeId: number, key?: string) =>
  entryPath({ kind: 'endpoint', endpoint: 'pay', service: 'orders', key }, nodeId);
const at = (nodeId: number) => ({ address: `10.0.0.${nodeId}`, port: 8080 });

async function offer(
  nodeId: number,
  key?: string,
  fields: Readonly<Record<string, unknown>> = at(nodeId),
): Promise<void> {
  await other.createWithParents(path(nodeId, key), data(nodeId, 1, fields), 'ephemeral');
}

const ids = ({ instances }: { readonly instances: readonly { readonly id: string }[] }) =>
  instances.map(({ id }) => id).join();

describe('the resolver of endpoints', () => {
  it('finds the nodes that have announced one, with where they are and what they say of themselves', async () => {
    for (const id of [3, 5]) {
      const lease = staticLease({ id, taskId: `task-${id}` });
      const tree = new DiscoveryTree({
        zookeeper: client(connect),
        lease,
        clock: systemClock,
        random: systemRandom,
      });
      tree.register({ kind: 'endpoint', endpoint: 'pay', service: 'orders' }, { ...at(id), colour: 'blue' });
      opened.push(() => tree.close());
    }
    const provider = resolver().resolver.provider('pay');
    await expect.poll(() => ids(provider)).toBe('orders:3,orders:5');
    expect(provider.instances[0]).toMatchObject({
      ...{
        name: 'pay',
        id: 'orders:3',
        address: '10.0.0.3',
        port: 8080,
        serviceType: 'DYNAMIC',
        enabled: true,
      },
      payload: { taskId: 'task-3', nodeId: 3, version: 1, colour: 'blue' },
    });
    expect([provider.url(), provider.url()].sort()).toEqual(['http://10.0.0.3:8080', 'http://10.0.0.5:8080']);
  });

  it('keeps the implementations of an endpoint apart by their keys', async () => {
    await offer(1);
    await offer(2, 'visa');
    await offer(3, 'visa');
    const { resolver: made } = resolver();
    const [plain, visa, none] = [
      made.instances('pay'),
      made.instances('pay', 'visa'),
      made.provider('pay', { key: 'other' }),
    ];
    await Promise.all([plain.ready, visa.ready, none.ready]);
    expect([ids(plain), ids(visa), ids(none)]).toEqual(['orders:1', 'orders:2,orders:3', '']);
    expect(() => none.url()).toThrow('no instance of pay can be picked (none is known)');
    await offer(4, 'other');
    await expect.poll(() => none.pick()?.id).toBe('orders:4');
  });

  it('follows all keys of an endpoint, also the ones that come and go', async () => {
    await offer(2, 'visa');
    await offer(1);
    const { resolver: made, zookeeper } = resolver();
    const all = made.instancesOfAllKeys('pay');
    const reported: string[] = [];
    all.onChange(() => reported.push(ids(all)));
    await all.ready;
    expect(ids(all)).toBe('orders:1,orders:2');
    await offer(7, 'amex');
    await expect.poll(() => ids(all)).toBe('orders:1,orders:7,orders:2');
    await other.remove(path(2, 'visa'));
    await other.remove('/discovery/endpoints/pay/visa');
    await expect.poll(() => ids(all)).toBe('orders:1,orders:7');
    expect(reported).toEqual(['orders:1,orders:2', 'orders:1,orders:7,orders:2', 'orders:1,orders:7']);
    await expect.poll(() => all.stale).toBeUndefined();
    // The keys, two of them, and what stands below each.
    await expect.poll(() => zookeeper.openWatches).toBe(5);
    all.close();
    expect(zookeeper.openWatches).toBe(0);
    expect(all.stale).toBeDefined();
  });

  it('finds those of all keys that may be read, reports one that may not, and follows it as soon as it may', async () => {
    await offer(1);
    await offer(2, 'secret');
    await restrict(connect, '/discovery/endpoints/pay/secret', ['create', 'delete', 'admin']);
    const clock = new VirtualClock();
    const { resolver: made, reports, zookeeper } = resolver(client(connect), clock);
    await zookeeper.whenConnected();
    const all = made.instancesOfAllKeys('pay');
    // The servers refuse it in real time.
    await expect.poll(() => clock.advance(1_000).then(() => reports.length)).toBe(1);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(5_000);
    await all.ready;
    expect([ids(all), all.stale]).toEqual(['orders:1', undefined]);
    expect(reports).toEqual(['/discovery/endpoints/pay/secret has not let itself be read for 5 s']);
    await offer(3);
    await expect.poll(() => ids(all)).toBe('orders:1,orders:3');
    await restrict(connect, '/discovery/endpoints/pay/secret', ['read', 'create', 'delete', 'admin']);
    await expect.poll(() => ids(all)).toBe('orders:1,orders:3,orders:2');
    expect(reports).toHaveLength(1);
  });

  it('is ready where no node offers it in any way yet, and follows the first one who does', async () => {
    const { resolver: made } = resolver();
    const [one, all] = [made.instances('pay'), made.instancesOfAllKeys('pay')];
    await Promise.all([one.ready, all.ready]);
    await offer(1);
    await expect.poll(() => [ids(one), ids(all)]).toEqual(['orders:1', 'orders:1']);
    await other.remove(path(1));
    await other.remove('/discovery/endpoints/pay/_');
    await other.remove('/discovery/endpoints/pay');
    await expect.poll(() => [ids(one), ids(all)]).toEqual(['', '']);
    await offer(2);
    await expect.poll(() => [ids(one), ids(all)]).toEqual(['orders:2', 'orders:2']);
  });

  it('shows instances without an address, and picks them only where that is asked for', async () => {
    await offer(1, undefined, {});
    await offer(2);
    const { resolver: made } = resolver();
    const [usual, any] = [made.provider('pay'), made.provider('pay', { accept: () => true })];
    await Promise.all([usual.ready, any.ready]);
    expect(ids(usual)).toBe('orders:1,orders:2');
    const picked = (provider: typeof usual) =>
      [...new Set(Array.from({ length: 8 }, () => provider.pick()?.id))].sort().join();
    expect([picked(usual), picked(any)]).toEqual(['orders:2', 'orders:1,orders:2']);
  });

  it('leaves out entries without task, node id and version, and reports each once', async () => {
    await offer(1);
    await other.create('/discovery/endpoints/pay/_/junk', 'junk', 'ephemeral');
    const { resolver: made, reports } = resolver();
    const source = made.instances('pay');
    await source.ready;
    expect(ids(source)).toBe('orders:1');
    expect(reports).toEqual(['/discovery/endpoints/pay/_/junk does not tell task, node id and version']);
  });

  it('remembers all keys without a connection, and catches up with what it missed before it says otherwise', async () => {
    const { proxy, through } = await throughProxy(connect);
    await offer(1);
    await offer(2, 'visa');
    const { resolver: made, zookeeper } = resolver(client(through));
    const all = made.instancesOfAllKeys('pay');
    await all.ready;
    proxy.cut();
    await expect.poll(() => all.stale).toBeDefined();
    await offer(3, 'amex');
    await other.remove(path(2, 'visa'));
    expect(ids(all)).toBe('orders:1,orders:2');
    proxy.heal();
    await expect.poll(() => ids(all)).toBe('orders:1,orders:3');
    await expect.poll(() => all.stale).toBeUndefined();
    // The keys, what stands below each of three, and two nodes.
    await expect.poll(() => zookeeper.openWatches).toBe(6);
  });

  it('ends every watch when it is closed, and follows nothing any more', async () => {
    await offer(1);
    const { resolver: made, zookeeper } = resolver();
    const [one, all, provider] = [
      made.instances('pay'),
      made.instancesOfAllKeys('pay'),
      made.provider('pay'),
    ];
    await Promise.all([one.ready, all.ready, provider.ready]);
    one.close();
    made.close();
    made.close();
    expect(zookeeper.openWatches).toBe(0);
    expect(provider.pick()?.id).toBe('orders:1');
    expect(() => made.instances('pay')).toThrow(expect.objectContaining({ fault: 'closed' }));
  });

  it('refuses names that cannot be a znode’s, and leaves nothing open', () => {
    const { resolver: made, zookeeper } = resolver();
    for (const [endpoint, key] of [
      ['', undefined],
      ['a/b', undefined],
      ['..', undefined],
      ['pay', ''],
      ['pay', 'a/b'],
      ['pay', '_'],
    ] as const)
      expect(() => made.provider(endpoint, { key })).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID' }),
      );
    expect(() => made.instancesOfAllKeys('a/b')).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
    expect(() => made.provider('pay', { downPolicy: { threshold: 0 } })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    );
    expect(zookeeper.openWatches).toBe(0);
  });
});
