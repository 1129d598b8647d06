import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { openZooKeeper } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { DiscoveryTree, type TreeEvent } from '../../../../src/zookeeper/discovery/discovery-tree.js';
import { entryPath } from '../../../../src/zookeeper/discovery/layout.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';

const NODE = '/discovery/nodes/00/08';

interface Task {
  readonly zookeeper: ZooKeeper;
  readonly tree: DiscoveryTree;
  readonly events: TreeEvent[];
  readonly lease: { valid: boolean };
}

describe('a discovery tree', () => {
  let connect: string;
  let reader: TreeReader;
  const tasks: Task[] = [];

  beforeEach(() => {
    connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
    reader = new TreeReader(connect);
  });
  afterEach(async () => {
    await Promise.all(
      tasks.splice(0).map(({ tree, zookeeper }) => tree.close().then(() => zookeeper.close())),
    );
    await stopProxies();
    await reader.close();
  });

  function task(
    version: number,
    options: { id?: number; taskId?: string; through?: string; sessionTimeoutMs?: number } = {},
  ): Task {
    const { id = 0, taskId = `task-${version}`, through = connect, sessionTimeoutMs = 10_000 } = options;
    const zookeeper = openZooKeeper({
      connect: through,
      sessionTimeoutMs,
      clock: systemClock,
      random: systemRandom,
    });
    const events: TreeEvent[] = [];
    const state = { valid: true };
    const lease = { id, version, taskId, isValid: () => state.valid };
    const tree = new DiscoveryTree({
      zookeeper,
      lease,
      clock: systemClock,
      random: systemRandom,
      onEvent: (event) => events.push(event),
    });
    const made = { zookeeper, tree, events, lease: state };
    tasks.push(made);
    return made;
  }

  const synced = ({ tree }: Task) => expect.poll(() => tree.state).toEqual({ status: 'synced' });

  it('shows the assignment, the service and any number of endpoints, keyed or not', async () => {
    const one = task(3, { id: 300 });
    one.tree.register({ kind: 'node' }, { address: '10.0.0.7' });
    one.tree.register({ kind: 'service', service: 'orders' });
    one.tree.register({ kind: 'endpoint', endpoint: 'pay', service: 'orders' }, { port: 8080 });
    one.tree.register({ kind: 'endpoint', endpoint: 'pay', key: 'visa', service: 'orders' });
    one.tree.register({ kind: 'endpoint', endpoint: 'audit' });
    await synced(one);
    const who = { taskId: 'task-3', nodeId: 300, version: 3 };
    expect([...(await reader.all())]).toEqual([
      ['/discovery/endpoints/audit/_/300', who],
      ['/discovery/endpoints/pay/_/orders:300', { ...who, port: 8080 }],
      ['/discovery/endpoints/pay/visa/orders:300', who],
      ['/discovery/nodes/01/34', { ...who, address: '10.0.0.7' }],
      ['/discovery/servicetypes/orders/300', who],
    ]);
  });

  it('follows changes of the data, and removals', async () => {
    const one = task(1);
    one.tree.register({ kind: 'node' }, { port: 1 });
    one.tree.register({ kind: 'service', service: 'orders' });
    await synced(one);
    for (let port = 2; port <= 50; port += 1) one.tree.register({ kind: 'node' }, { port });
    one.tree.unregister({ kind: 'service', service: 'orders' });
    await reader.until(NODE, (seen) => seen?.port === 50);
    await reader.until('/discovery/servicetypes/orders/0', (seen) => seen === undefined);
    expect(await reader.zookeeper.children('/discovery/servicetypes/orders')).toEqual([]);
  });

  it('says that it is not in step with what was announced until that exists, and reports only troubles', async () => {
    const one = task(1);
    one.tree.register({ kind: 'node' });
    await synced(one);
    one.tree.register({ kind: 'node' }, { port: 2 });
    expect(one.tree.state.status).toBe('degraded');
    await synced(one);
    expect(await reader.at(NODE)).toMatchObject({ port: 2 });
    one.tree.register({ kind: 'service', service: 'orders' });
    expect(one.tree.state.status).toBe('degraded');
    await synced(one);
    expect(await reader.at('/discovery/servicetypes/orders/0')).toMatchObject({ version: 1 });
    expect(one.events).toEqual([{ type: 'synced' }]);
  });

  it('takes a place in a new session that was blocked in the one before', async () => {
    const { proxy, through } = await throughProxy(connect);
    await reader.zookeeper.createWithParents(NODE, 'in the way', 'ephemeral');
    const one = task(1, { through, sessionTimeoutMs: 40_000 });
    one.tree.register({ kind: 'node' });
    await expect.poll(() => one.events.map(({ type }) => type)).toContain('blocked');
    const { sessionId } = await one.zookeeper.whenConnected();
    proxy.cut();
    await expect.poll(() => one.zookeeper.state.status).toBe('suspended');
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await reader.zookeeper.remove(NODE);
    proxy.heal();
    await synced(one);
    expect(await reader.at(NODE)).toMatchObject({ version: 1 });
    expect(await one.zookeeper.whenConnected()).not.toMatchObject({ sessionId });
  });

  it('can announce again what was taken back', async () => {
    const one = task(1);
    const entry = { kind: 'service', service: 'orders' } as const;
    for (let round = 0; round < 10; round += 1) {
      one.tree.register(entry);
      one.tree.unregister(entry);
      if (round % 2 === 0) await sleep(round);
    }
    one.tree.register(entry, { round: 'last' });
    await reader.until('/discovery/servicetypes/orders/0', (seen) => seen?.round === 'last');
    await synced(one);
    expect(await reader.at('/discovery/servicetypes/orders/0')).toMatchObject({ round: 'last' });
  });

  it('restores what another client removes or overwrites', async () => {
    const one = task(1);
    one.tree.register({ kind: 'node' });
    await synced(one);
    await reader.zookeeper.remove(NODE);
    await reader.until(NODE, (seen) => seen?.version === 1);
    await reader.zookeeper.setData(NODE, 'scribble');
    await reader.until(NODE, (seen) => seen?.version === 1);
    await synced(one);
  });

  it('replaces the leftover of a holder with a lower version, while that one’s session is still alive', async () => {
    const old = task(4);
    old.tree.register({ kind: 'node' });
    old.tree.register({ kind: 'service', service: 'orders' });
    await synced(old);
    const successor = task(5);
    successor.tree.register({ kind: 'node' });
    successor.tree.register({ kind: 'service', service: 'orders' });
    await synced(successor);
    // The old one sees that it has been replaced, and does not fight for its place.
    await expect.poll(() => old.events.filter(({ type }) => type === 'superseded').length).toBe(2);
    // By the time this stands, a write of the other two would have been made as well.
    old.tree.register({ kind: 'service', service: 'witness' });
    await reader.until('/discovery/servicetypes/witness/0', (seen) => seen?.version === 4);
    expect(await reader.at(NODE)).toMatchObject({ taskId: 'task-5', version: 5 });
    expect(await reader.at('/discovery/servicetypes/orders/0')).toMatchObject({
      taskId: 'task-5',
      version: 5,
    });
    expect(old.tree.state).toMatchObject({
      status: 'degraded',
      problem: expect.stringContaining('version 5'),
    });
    expect(successor.tree.state.status).toBe('synced');
  });

  it('leaves a higher version alone, reports it once, and never writes for a lease that is not valid, even when the place is free', async () => {
    const current = task(9);
    current.tree.register({ kind: 'node' });
    await synced(current);
    const stale = task(8);
    stale.tree.register({ kind: 'node' });
    await expect.poll(() => stale.events.map(({ type }) => type)).toContain('superseded');
    expect(stale.events.find(({ type }) => type === 'superseded')).toMatchObject({
      path: NODE,
      by: { taskId: 'task-9', version: 9 },
    });
    stale.lease.valid = false;
    await current.zookeeper.close();
    const refused = { status: 'degraded', problem: expect.stringContaining('the lease is not valid') };
    await expect.poll(() => stale.tree.state).toMatchObject(refused);
    expect(await reader.at(NODE)).toBeUndefined();
    expect(stale.tree.state.status).toBe('degraded');
    // The twin: with a valid lease it is the one that may stand there.
    stale.lease.valid = true;
    await reader.until(NODE, (seen) => seen?.version === 8);
    expect(stale.events.filter(({ type }) => type === 'superseded')).toHaveLength(1);
  });

  it.each([
    ['something without a version', 'persistent', 'hello'],
    [
      'another task under the same version',
      'ephemeral',
      JSON.stringify({ taskId: 'other', nodeId: 0, version: 7 }),
    ],
  ] as const)('leaves %s alone, and takes the place when it is gone', async (_, mode, data) => {
    await reader.zookeeper.createWithParents(NODE, data, mode);
    const one = task(7);
    one.tree.register({ kind: 'node' });
    await expect.poll(() => one.events.map(({ type }) => type)).toContain('blocked');
    expect((await reader.zookeeper.read(NODE))?.data.toString()).toBe(data);
    await reader.zookeeper.remove(NODE);
    await reader.until(NODE, (seen) => seen?.taskId === 'task-7');
    await synced(one);
  });

  it('replaces what it announced itself in a session before', async () => {
    const data = JSON.stringify({ taskId: 'task-7', nodeId: 0, version: 7 });
    await reader.zookeeper.createWithParents(NODE, data, 'ephemeral');
    const one = task(7);
    one.tree.register({ kind: 'node' });
    await synced(one);
    expect((await reader.zookeeper.read(NODE))?.stat.owner).toBe(
      (one.zookeeper.state as { sessionId?: string }).sessionId,
    );
  });

  it('is restored after a cut, with what was changed meanwhile, in a new session where the old one expired', async () => {
    const { proxy, through } = await throughProxy(connect);
    const one = task(2, { through, sessionTimeoutMs: 40_000 });
    one.tree.register({ kind: 'node' });
    one.tree.register({ kind: 'endpoint', endpoint: 'pay' });
    await synced(one);
    const { sessionId } = await one.zookeeper.whenConnected();
    proxy.cut();
    await expect.poll(() => one.tree.state.status).toBe('degraded');
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    expect(await reader.at(NODE)).toBeUndefined();
    // Changes meanwhile are kept for the return.
    one.tree.register({ kind: 'node' }, { port: 99 });
    proxy.heal();
    await reader.until(NODE, (seen) => seen?.port === 99);
    await synced(one);
    expect(await reader.at('/discovery/endpoints/pay/_/0')).toMatchObject({ version: 2 });
  });

  it('withdraws everything that it announced, and nothing of others', async () => {
    const one = task(1);
    one.tree.register({ kind: 'node' });
    one.tree.register({ kind: 'service', service: 'orders' });
    const other = task(1, { id: 1, taskId: 'other' });
    other.tree.register({ kind: 'service', service: 'orders' });
    await synced(one);
    await synced(other);
    expect(await one.tree.withdraw(30_000)).toBe(true);
    expect([...(await reader.all()).keys()]).toEqual(['/discovery/servicetypes/orders/1']);
    expect(() => one.tree.register({ kind: 'node' })).toThrow(/withdrawn/);
  });

  it.each([
    ['service', { kind: 'service', service: 'a/b' }, /service: expected .*got "a\/b"/],
    ['empty service', { kind: 'service', service: '' }, /service: expected .*got ""/],
    ['endpoint', { kind: 'endpoint', endpoint: '..' }, /endpoint: expected .*got "\.\."/],
    ['endpoint key', { kind: 'endpoint', endpoint: 'pay', key: '_' }, /endpoint key: expected .*got "_"/],
  ] as const)('refuses a name that cannot be a znode’s: %s', (_, entry, message) => {
    expect(() => task(1).tree.register(entry)).toThrow(message);
  });

  it.each([-1, 65_528, 1.5])('refuses the node id %s, whose cluster node id is out of range', (nodeId) => {
    expect(() => entryPath({ kind: 'node' }, nodeId)).toThrow(/expected .* got/);
  });
});
