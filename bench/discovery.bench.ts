import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../src/core/base/system.js';
import { clusterNodeIdOf } from '../src/core/id/cluster-node-id.js';
import { openZooKeeper, type ZooKeeperClient } from '../src/zookeeper/client/zookeeper-client.js';
import { groupPath, NODES_PATH } from '../src/zookeeper/discovery/layout.js';
import { NodeWatcher } from '../src/zookeeper/discovery/node-watcher.js';
import { uniqueChroot } from '../test/support/zookeeper.js';
import {
  type Compared,
  compare,
  inTurns,
  medianAndP99,
  medianAndSlowest,
  medianRatio,
  type Samples,
} from './comparison.js';
import { PlainClient } from './plain-client.js';
import { PlainWatcher } from './plain-watcher.js';
import { propagation, type WatchedTree } from './propagation.js';
import { microsEach, ourReader, plainReader } from './reads.js';
import { nodePath, registerNodes } from './registered-nodes.js';
import {
  ANNOUNCED_PATHS,
  announceByDiscovery,
  announcePlainly,
  type RegistrationTimes,
  registerInTree,
  registerPlainly,
} from './registration.js';
import { median } from './report.js';
import { settledHeap } from './settled-heap.js';

/** So many times what the bare calls take: a call, and a registration with all that goes with it. */
const CALL_BOUND = 1.3;
const REGISTRATION_BOUND = 2;

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const client of opened.splice(0).reverse()) await client.close();
});

/** Servers and a chroot of its own, which exists. */
async function newTree(): Promise<string> {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('bench')}`;
  const zookeeper = openZooKeeper({ connect, clock: systemClock, random: systemRandom });
  for (const path of [groupPath(0), ...ANNOUNCED_PATHS])
    await zookeeper.ensurePath(path.slice(0, path.lastIndexOf('/')));
  await zookeeper.ensurePath(groupPath(0));
  await zookeeper.close();
  return connect;
}

async function ours(connect: string): Promise<ZooKeeperClient> {
  const client = openZooKeeper({ connect, clock: systemClock, random: systemRandom });
  opened.push(client);
  await client.whenConnected();
  return client;
}

async function plain(connect: string): Promise<PlainClient> {
  const client = await PlainClient.open(connect);
  opened.push(client);
  return client;
}

let plainTree: string;
let ourTree: string;

beforeEach(async () => {
  [plainTree, ourTree] = [await newTree(), await newTree()];
});

it('registration latency', async () => {
  const [plainClient, ourClient] = [await plain(plainTree), await ours(ourTree)];
  const one = await inTurns(
    { counted: 300, warmUp: 50 },
    () => registerPlainly(plainClient),
    () => registerInTree(ourClient),
  );
  const four = await inTurns(
    { counted: 200, warmUp: 50 },
    () => announcePlainly(plainTree),
    () => announceByDiscovery(ourTree),
  );
  const counted = (from: keyof RegistrationTimes): Samples => ({
    plain: four.plain.map((times) => times[from]),
    ours: four.ours.map((times) => times[from]),
  });
  const announced = counted('connectedMs');
  compare(
    'Registration, from a session that stands unless it says otherwise until the znodes stand',
    'ms',
    2,
    [
      ...medianAndP99('the node', one),
      ...medianAndP99('node, service, 2 endpoints', announced),
      ...medianAndP99('the same, the new session included', counted('wholeMs')),
    ],
  );
  expect(medianRatio(announced)).toBeLessThanOrEqual(REGISTRATION_BOUND);
});

it('propagation delay', async () => {
  const standing = 100;
  for (const connect of [plainTree, ourTree]) await registerNodes(await ours(connect), 0, standing);
  const plainClient = await plain(plainTree);
  const plainWatcher = new PlainWatcher(plainClient.library);
  await plainWatcher.watch(NODES_PATH);
  const byPlain: WatchedTree = {
    writer: await plain(plainTree),
    reported: (nodeId) =>
      new Promise((resolve) => {
        plainWatcher.onChange = (path) => {
          if (path === nodePath(nodeId)) resolve();
        };
      }),
    settled: () => plainClient.read(NODES_PATH),
  };
  const ourClient = await ours(ourTree);
  const ourWatcher = new NodeWatcher({ zookeeper: ourClient, clock: systemClock });
  await ourWatcher.ready;
  const byOurs: WatchedTree = {
    writer: await plain(ourTree),
    reported: (nodeId) =>
      new Promise((resolve) => {
        const forget = ourWatcher.onChange((changed) => {
          if (!changed.has(clusterNodeIdOf(nodeId))) return;
          forget();
          resolve();
        });
      }),
    settled: () => ourClient.read(NODES_PATH),
  };
  const rows = await propagation({ plain: byPlain, ours: byOurs, standing, rounds: 500, warmUp: 50 });
  ourWatcher.close();
  compare(
    `Propagation to a watcher of ${standing} nodes in another session, from the request of the write until it is reported`,
    'ms',
    2,
    rows,
  );
});

it('memory of watched nodes', async () => {
  const registrar = await ours(ourTree);
  const heldByPlain = async (nodes: number) => {
    const client = await PlainClient.open(ourTree);
    const before = await settledHeap();
    const watcher = new PlainWatcher(client.library);
    await watcher.watch(NODES_PATH);
    const held = (await settledHeap()) - before;
    expect(watcher.nodes.size).toBe(nodes);
    await client.close();
    return held / 1_024;
  };
  const heldByOurs = async (nodes: number) => {
    const zookeeper = openZooKeeper({ connect: ourTree, clock: systemClock, random: systemRandom });
    await zookeeper.whenConnected();
    const before = await settledHeap();
    const watcher = new NodeWatcher({ zookeeper, clock: systemClock });
    await watcher.ready;
    const held = (await settledHeap()) - before;
    expect(watcher.nodes.size).toBe(nodes);
    watcher.close();
    await zookeeper.close();
    return held / 1_024;
  };
  const rows: Compared[] = [];
  let registered = 0;
  for (const nodes of [1_000, 2_000, 4_000]) {
    await registerNodes(registrar, registered, nodes);
    registered = nodes;
    const held = await inTurns(
      { counted: 3, warmUp: 1 },
      () => heldByPlain(nodes),
      () => heldByOurs(nodes),
    );
    const per = 1_000 / nodes;
    rows.push({
      what: `of ${nodes.toLocaleString('en')} watched nodes`,
      plain: median(held.plain) * per,
      ours: median(held.ours) * per,
    });
  }
  compare('Memory for each 1,000, heap and buffers after collection, median of 3', 'KiB', 0, rows);
});

it('first sight of a tree', async () => {
  const nodes = 2_000;
  await registerNodes(await ours(ourTree), 0, nodes);
  const sight = await inTurns(
    { counted: 15, warmUp: 2 },
    async () => {
      const client = await PlainClient.open(ourTree);
      const begun = performance.now();
      const watcher = new PlainWatcher(client.library);
      await watcher.watch(NODES_PATH);
      const tookMs = performance.now() - begun;
      expect(watcher.nodes.size).toBe(nodes);
      await client.close();
      return tookMs;
    },
    async () => {
      const zookeeper = openZooKeeper({ connect: ourTree, clock: systemClock, random: systemRandom });
      await zookeeper.whenConnected();
      const begun = performance.now();
      const watcher = new NodeWatcher({ zookeeper, clock: systemClock });
      await watcher.ready;
      const tookMs = performance.now() - begun;
      expect(watcher.nodes.size).toBe(nodes);
      watcher.close();
      await zookeeper.close();
      return tookMs;
    },
  );
  compare(
    `First sight of ${nodes.toLocaleString('en')} nodes by a new watcher in a new session`,
    'ms',
    0,
    medianAndSlowest('all nodes', sight),
  );
});

it('calls', async () => {
  const path = nodePath(0);
  await registerNodes(await ours(ourTree), 0, 1);
  const byPlain = plainReader((await plain(ourTree)).library, path);
  const byOurs = ourReader(await ours(ourTree), path);
  const sequential = await inTurns(
    { counted: 3_000, warmUp: 500 },
    () => microsEach(1, () => byPlain.one()),
    () => microsEach(1, () => byOurs.one()),
  );
  const inFlight = 64;
  const calls = 20 * inFlight;
  const parallel = await inTurns(
    { counted: 30, warmUp: 5 },
    () => microsEach(calls, () => byPlain.many(calls, inFlight)),
    () => microsEach(calls, () => byOurs.many(calls, inFlight)),
  );
  const more = (samples: Samples) => (median(samples.ours) - median(samples.plain)).toFixed(1);
  compare(
    `A read; of ${inFlight} in flight, the mean of each ${calls.toLocaleString('en')}`,
    'µs',
    1,
    [
      ...medianAndP99('one after the other', sequential),
      ...medianAndSlowest(`${inFlight} in flight`, parallel),
    ],
    [
      `More for each call: ${more(sequential)} µs one after the other, ${more(parallel)} µs with ${inFlight} in flight`,
    ],
  );
  for (const samples of [sequential, parallel]) expect(medianRatio(samples)).toBeLessThanOrEqual(CALL_BOUND);
});
