import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { DiscoveryTree } from '../../src/discovery/discovery-tree.js';
import { NodeWatcher } from '../../src/discovery/node-watcher.js';
import { awaitReadiness, type ReadinessOptions } from '../../src/discovery/readiness.js';
import { acquireLease } from '../../src/lease/acquire-lease.js';
import { inspectCluster } from '../../src/lease/inspect.js';
import { StoreSession } from '../../src/lease/store-session.js';
import { MemoryLeaseStore } from '../../src/store/memory/memory-lease-store.js';
import { systemClock, systemRandom } from '../../src/system.js';
import { openZooKeeper } from '../../src/zookeeper/zookeeper-client.js';
import { uniqueChroot } from '../support/zookeeper.js';

const DURATION_MS = 1_500;

let connect: string;
let store: MemoryLeaseStore;
const opened: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('ready')}`;
  store = new MemoryLeaseStore({ clock: systemClock });
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});

/** A task with a lease, and, unless it is `deaf`, in the discovery tree: it announces itself and publishes whom it knows. */
async function start(taskId: string, { deaf = false }: { deaf?: boolean } = {}) {
  let alive = true;
  let origin: ReadinessOptions['origin'] = 'static';
  const lease = await acquireLease({
    clock: systemClock,
    random: systemRandom,
    taskId,
    nodes: 3,
    durationMs: DURATION_MS,
    graceMs: 100,
    store: store.connect((_, apply) => (alive ? Promise.resolve(apply()) : new Promise(() => undefined))),
    onEvent: (event) => {
      if (event.type === 'acquired') origin = event.from;
    },
  });
  const stop: (() => Promise<unknown>)[] = [() => lease.release()];
  if (!deaf) {
    const zookeeper = openZooKeeper({ connect, sessionTimeoutMs: 4_000, clock: systemClock, random: systemRandom });
    const tree = new DiscoveryTree({ zookeeper, lease, clock: systemClock, random: systemRandom });
    const watcher = new NodeWatcher({ zookeeper, clock: systemClock });
    watcher.onChange(() => lease.setKnownNodes(watcher.knownVersions()));
    tree.put({ kind: 'node' });
    stop.unshift(async () => {
      watcher.close();
      await zookeeper.close();
      await tree.close();
    });
  }
  const end = async () => {
    for (const step of stop.splice(0)) await step();
  };
  opened.push(end);
  /** Ends as a process that is killed does: nothing is released. */
  const die = () => {
    alive = false;
    return end();
  };
  const session = new StoreSession(store, systemClock, 1_000);
  const ready = (options: Partial<ReadinessOptions> = {}) =>
    awaitReadiness({ lease, origin, leases: () => inspectCluster(session), clock: systemClock, random: systemRandom, ...options });
  return { lease, end, die, ready };
}

describe('readiness beside a discovery tree', () => {
  it('comes, after a take-over of an expired lease, when the live nodes have seen the new version there', async () => {
    const first = await start('first');
    await start('second');
    await start('third');
    await first.die();
    const successor = await start('successor');
    expect(successor.lease).toMatchObject({ id: 0, version: 2 });
    const readiness = await successor.ready({ pollMs: 50 });
    expect(readiness).toMatchObject({ ready: true, why: 'known', ignorant: [] });
    // The others publish what they know with their next renewal, a third of the duration later at the most.
    expect(readiness.tookMs).toBeLessThan(DURATION_MS);
    const status = await inspectCluster(new StoreSession(store, systemClock, 1_000));
    expect(status?.nodes.slice(1).map(({ knownNodes }) => knownNodes[0])).toEqual([2, 2]);
  });

  it('comes after the time-out where a live node never hears of the tree, and names it', async () => {
    const first = await start('first');
    await start('second');
    await start('deaf', { deaf: true });
    await first.die();
    const successor = await start('successor');
    const timeoutMs = 2 * DURATION_MS;
    expect(await successor.ready({ timeoutMs })).toMatchObject({ ready: true, why: 'timeout', ignorant: [2] });
  });

  it('comes at once after a graceful release, without asking anybody', async () => {
    const first = await start('first');
    await start('deaf', { deaf: true });
    await start('third');
    await first.end();
    const successor = await start('successor');
    expect(successor.lease).toMatchObject({ id: 0, version: 2 });
    expect(await successor.ready()).toMatchObject({ ready: true, why: 'released', tookMs: expect.closeTo(0, -2) });
  });
});
