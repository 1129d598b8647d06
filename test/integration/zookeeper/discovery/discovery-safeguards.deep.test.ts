import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { ConfigError } from '../../../../src/core/base/errors.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { acquireLease } from '../../../../src/core/lease/acquire/acquire-lease.js';
import { staticLease } from '../../../../src/core/lease/hold/static-lease.js';
import { evictHolder } from '../../../../src/core/lease/operate/evict.js';
import { inspectCluster } from '../../../../src/core/lease/operate/inspect.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { MemoryLeaseStore } from '../../../../src/core/store/memory/memory-lease-store.js';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import { ZooKeeperError } from '../../../../src/zookeeper/client/zookeeper.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { Discoverer } from '../../../../src/zookeeper/discovery/discoverer.js';
import type { Discovery, DiscoveryEvent } from '../../../../src/zookeeper/discovery/discovery.js';
import { DiscoveryTree, type TreeEvent } from '../../../../src/zookeeper/discovery/discovery-tree.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { newFolder, removeFolders, untilDead } from '../../app/cli/run-support.js';
import { renewSession } from '../services/services-support.js';
import { client, closeClients, data } from './discovery-support.js';

// What keeps a node from doing harm to others in moments that are rare: each of these tests fails when its
// safeguard is taken out.

const NODE = '/discovery/nodes/00/08';
const SERVICE = '/discovery/servicetypes/orders/0';

let connect: string;
let reader: TreeReader;
const trees: DiscoveryTree[] = [];

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  reader = new TreeReader(connect);
});
afterEach(async () => {
  await killAll();
  await Promise.all(trees.splice(0).map((tree) => tree.close()));
  await closeClients();
  await stopProxies();
  await reader.close();
  removeFolders();
});

describe('a node id that comes only from ZooKeeper', () => {
  function allocate(through: string, sessionMs: number, script: string): TestProcess {
    const options = [
      '--zookeeper',
      through,
      '--zookeeper-session-timeout',
      `${sessionMs}ms`,
      '--service',
      'orders',
    ];
    return runCli(['run', '--provider', 'zookeeper', ...options, '--', 'sh', '-c', script]);
  }

  it('stays taken until its session has run out when the command left processes behind that were not waited for', async () => {
    const sessionMs = 4_000;
    const stubborn = `sh -c 'trap "" TERM; echo "left $$"; while :; do sleep 0.05; done' &`;
    const end = join(newFolder(), 'end');
    const task = allocate(
      connect,
      sessionMs,
      `${stubborn} while [ ! -e ${end} ]; do sleep 0.1; done; exit 0`,
    );
    const [, left] = await task.waitForOutput(/^left (\d+)$/m);
    await reader.until(SERVICE, (seen) => seen !== undefined);
    writeFileSync(end, '');
    await task.waitForOutput(/left processes behind/);
    task.kill('SIGTERM');
    await task.waitForOutput(/the lease is not released, but left to expire/);
    const leftAt = performance.now();
    await task.exit;
    // No client is sent there any more, no other task gets the id: the last heartbeat was at most a sixth of
    // the time-out before the end.
    expect(await reader.at(SERVICE)).toBeUndefined();
    await reader.until(NODE, (seen) => seen === undefined);
    expect(performance.now() - leftAt).toBeGreaterThan(sessionMs / 2);
    await untilDead([Number(left)], 0);
  });

  it('stays taken until a command that ignores SIGTERM is dead when ZooKeeper comes back after the loss', async () => {
    const { proxy, through } = await throughProxy(connect);
    const task = allocate(
      through,
      20_000,
      `trap '' TERM; echo begun; while :; do date +%s%3N; sleep 0.02; done`,
    );
    await task.waitForOutput(/begun/);
    await reader.until(SERVICE, (seen) => seen !== undefined);
    // Requests reach the server, answers do not come back: the session lives, and its holder cannot know.
    proxy.stall('to-client');
    await task.waitForOutput(/is lost/);
    // From here on it could end its session within a moment, a second before the command is killed.
    proxy.heal({ deliverHeld: true });
    await reader.until(NODE, (seen) => seen === undefined);
    const goneAt = Date.now();
    expect(await task.exit).toEqual({ code: 76, signal: null });
    const beats = [...task.stdout().matchAll(/^\d{13}$/gm)].map(Number);
    expect(beats.length).toBeGreaterThan(0);
    expect(Math.max(...beats)).toBeLessThan(goneAt);
    expect(await reader.at(SERVICE)).toBeUndefined();
  });
});

interface Announcer {
  readonly zookeeper: ZooKeeperClient;
  readonly tree: DiscoveryTree;
  readonly events: TreeEvent[];
}

describe('a discovery tree', () => {
  function announcer(version: number): Announcer {
    const zookeeper = client(connect);
    const events: TreeEvent[] = [];
    const lease = { id: 0, version, taskId: 'task-0', isValid: () => true };
    const onEvent = (event: TreeEvent) => events.push(event);
    const tree = new DiscoveryTree({ zookeeper, lease, clock: systemClock, random: systemRandom, onEvent });
    trees.push(tree);
    return { zookeeper, tree, events };
  }

  async function synced({ tree }: Announcer): Promise<void> {
    await expect.poll(() => tree.state.status).toBe('synced');
  }

  it.each([
    ['a successor', 'ephemeral', data(0, 5)],
    ['something that names no version', 'persistent', 'hello'],
  ] as const)('withdraws nothing of %s that stands at its place', async (_, mode, theirs) => {
    await reader.zookeeper.createWithParents(NODE, theirs, mode);
    const one = announcer(4);
    one.tree.register({ kind: 'node' });
    one.tree.register({ kind: 'service', service: 'orders' });
    await reader.until(SERVICE, (seen) => seen?.version === 4);
    await expect
      .poll(() => one.events.some(({ type }) => type === 'superseded' || type === 'blocked'))
      .toBe(true);
    const before = await reader.zookeeper.read(NODE);
    expect(await one.tree.withdraw(5_000)).toBe(true);
    expect(await reader.at(SERVICE)).toBeUndefined();
    expect(await reader.zookeeper.read(NODE)).toEqual(before);
  });

  it.each([
    ['overwrites', 'setData', (tree: DiscoveryTree) => tree.register({ kind: 'node' }, { port: 2 })],
    ['removes', 'remove', (tree: DiscoveryTree) => tree.unregister({ kind: 'node' })],
  ] as const)(
    '%s no node that has taken its place in the moment after its last look, while its session ended',
    async (_, method, change) => {
      const one = announcer(4);
      one.tree.register({ kind: 'node' });
      await synced(one);
      const call = one.zookeeper[method].bind(one.zookeeper) as (...given: unknown[]) => Promise<unknown>;
      let answered = false;
      const late = async (...given: unknown[]) => {
        Object.assign(one.zookeeper, { [method]: call });
        await renewSession(one);
        await reader.zookeeper.createWithParents(NODE, data(0, 5), 'ephemeral');
        return call(...given).finally(() => {
          answered = true;
        });
      };
      Object.assign(one.zookeeper, { [method]: late });
      change(one.tree);
      await expect.poll(() => answered).toBe(true);
      expect(await reader.at(NODE)).toEqual({ taskId: 'task-0', nodeId: 0, version: 5 });
    },
  );

  it('leaves nothing behind that was made without its knowing, and that a server which lags behind does not show yet', async () => {
    const one = announcer(4);
    const { zookeeper } = one;
    const [create, read, multi] = [zookeeper.createWithParents, zookeeper.read, zookeeper.multi].map((each) =>
      each.bind(zookeeper),
    ) as [typeof zookeeper.createWithParents, typeof zookeeper.read, typeof zookeeper.multi];
    let caughtUp = false;
    Object.assign(zookeeper, {
      createWithParents: async (...call: Parameters<typeof create>) => {
        await create(...call);
        one.tree.unregister({ kind: 'node' });
        throw new ZooKeeperError('the reply is lost', 'connection-loss', 'unknown');
      },
      read: (...call: Parameters<typeof read>) => (caughtUp ? read(...call) : Promise.resolve(undefined)),
      multi: (...call: Parameters<typeof multi>) => {
        caughtUp = true;
        return multi(...call);
      },
    });
    one.tree.register({ kind: 'node' });
    await synced(one);
    expect(await reader.at(NODE)).toBeUndefined();
  });

  it('replaces no leftover that has come to have a higher version since it was looked at', async () => {
    await reader.zookeeper.createWithParents(NODE, data(0, 4), 'ephemeral');
    const one = announcer(5);
    const multi = one.zookeeper.multi.bind(one.zookeeper);
    let changes = 0;
    one.zookeeper.multi = async (...call) => {
      if (changes === 0) await reader.zookeeper.setData(NODE, data(0, 9));
      changes += 1;
      return multi(...call);
    };
    one.tree.register({ kind: 'node' });
    await expect.poll(() => one.tree.state.status === 'synced' || one.events.length > 0).toBe(true);
    expect(changes).toBe(1);
    expect(await reader.at(NODE)).toMatchObject({ version: 9 });
    await expect.poll(() => one.events.map(({ type }) => type)).toContain('superseded');
  });
});

describe('a discovery', () => {
  const discoverers: Discoverer[] = [];

  afterEach(async () => {
    await Promise.all(discoverers.splice(0).map((each) => each.close()));
  });

  async function discover(): Promise<{
    discovery: Discovery;
    events: DiscoveryEvent[];
    lease: { valid: boolean };
  }> {
    const events: DiscoveryEvent[] = [];
    const state = { valid: true };
    const lease = { ...staticLease({ id: 0, taskId: 'task-0' }), isValid: () => state.valid };
    const announcement = { service: 'orders', address: 'host', port: 80 };
    const onEvent = (event: DiscoveryEvent) => void events.push(event);
    const discoverer = new Discoverer({
      connect,
      clock: systemClock,
      random: systemRandom,
      announcement,
      onEvent,
    });
    discoverers.push(discoverer);
    const discovery = await discoverer.start({
      lease,
      origin: 'static',
      leases: undefined,
      announcesNode: true,
    });
    return { discovery, events, lease: state };
  }

  it('registers nothing in the name of a lease that is not valid any more, though its session goes on', async () => {
    const { discovery, lease } = await discover();
    await discovery.synced(10_000);
    lease.valid = false;
    const more = discovery.services.newInstance({ name: 'more', address: 'host' });
    const message = expect.stringContaining('the lease is not valid');
    await expect(discovery.services.register(more)).rejects.toMatchObject({ fault: 'timeout', message });
    expect(discovery.zookeeper.state.status).toBe('connected');
    expect(await reader.zookeeper.children('/services')).toEqual(['orders']);
    lease.valid = true;
    await expect.poll(() => reader.zookeeper.children('/services/more')).toEqual([more.id]);
  });

  it('says that its instance is none that could be registered, for as long as it is announced', async () => {
    const { discovery, events } = await discover();
    await discovery.synced(10_000);
    expect(await discovery.withdrawService(10_000)).toBe(true);
    // Whatever can be known of it beforehand is refused before.
    const refused = async () => {
      throw new ConfigError('instance', 'this one', 'another');
    };
    Object.assign(discovery.services, { register: refused });
    // Twice in one turn: neither refusal stays behind.
    discovery.announceService();
    void discovery.withdrawService(10_000);
    discovery.announceService();
    const degraded = { status: 'degraded', problem: 'instance: expected another, got "this one"' };
    await expect.poll(() => discovery.state).toEqual(degraded);
    await expect.poll(() => events).toContainEqual({ type: 'degraded', problem: degraded.problem });
    expect(await discovery.withdrawService(10_000)).toBe(true);
    await discovery.synced(10_000);
    await expect.poll(() => events.at(-1)).toEqual({ type: 'synced' });
  });
});

describe('a lease in a store', () => {
  it('that was lost before it could be announced leaves no session behind', async () => {
    const store = new MemoryLeaseStore({ clock: systemClock });
    const common = { clock: systemClock, random: systemRandom };
    const lease = await acquireLease({ store, ...common, taskId: 'task-0', nodes: 1, durationMs: 1_500 });
    const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve, { once: true }));
    await evictHolder(new StoreSession(store.connect(), systemClock, 1_000), 0);
    await lost;
    const discoverer = new Discoverer({ connect, ...common, announcement: { service: 'orders' } });
    try {
      await discoverer.zookeeper.whenConnected();
      const discovery = await discoverer.start({
        lease,
        origin: 'vacant',
        leases: undefined,
        announcesNode: true,
      });
      await expect.poll(() => discovery.state.status).toBe('closed');
      await expect.poll(() => discoverer.zookeeper.state.status).toBe('closed');
    } finally {
      await discoverer.close();
      await lease.release();
    }
  });

  it('is given back, and not handed over, when it cannot be announced where that is required', async () => {
    await reader.zookeeper.createWithParents(NODE, 'in the way', 'ephemeral');
    const store = new MemoryLeaseStore({ clock: systemClock });
    const options = { store, nodes: 1, durationMs: 60_000, onLost: 'signal' } as const;
    const result = await acquire({ ...options, zookeeper: { connect, required: true } }).then(
      (lease) => lease.release().then(() => 'handed over'),
      (error: unknown) => error,
    );
    expect(result).toMatchObject({
      code: 'ZOOKEEPER_FAILED',
      fault: 'timeout',
      message: expect.stringContaining(NODE),
    });
    const status = await inspectCluster(new StoreSession(store.connect(), systemClock, 1_000));
    expect(status?.nodes).toMatchObject([{ id: 0, state: 'released', version: 1 }]);
    expect((await reader.zookeeper.read(NODE))?.data.toString()).toBe('in the way');
  });
});
