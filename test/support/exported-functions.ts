import { nodeHandler } from '../../src/app/http/node-handler.js';
import { NodeMetrics } from '../../src/app/http/node-metrics.js';
import { OpenStreams } from '../../src/app/http/server/open-streams.js';
import { ProviderPool } from '../../src/app/services/curator/provider-pool.js';
import { cluster16 } from '../../src/core/id/id-layout.js';
import { standaloneIds } from '../../src/core/id/standalone-ids.js';
import { acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import { staticLease } from '../../src/core/lease/hold/static-lease.js';
import { StoreSession } from '../../src/core/lease/session/store-session.js';
import type { LeaseStore } from '../../src/core/store/lease-store.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../src/core/store/memory/memory-lease-store.js';
import { ClusterFollower } from '../../src/node/monitor/cluster-follower.js';
import { NodeMonitor } from '../../src/node/runtime/node-monitor.js';
import { shardRouter } from '../../src/node/shards/shard-router.js';
import { ZooKeeperClient } from '../../src/zookeeper/client/zookeeper-client.js';
import { openConfiguration } from '../../src/zookeeper/configuration/configuration.js';
import { configPublisher } from '../../src/zookeeper/configuration/publisher.js';
import { DiscoveryResolver } from '../../src/zookeeper/discovery/discovery-resolver.js';
import { DiscoveryTree } from '../../src/zookeeper/discovery/discovery-tree.js';
import { NodeWatcher } from '../../src/zookeeper/discovery/node-watcher.js';
import { barrier } from '../../src/zookeeper/recipes/barrier.js';
import { counter } from '../../src/zookeeper/recipes/counter.js';
import { doubleBarrier } from '../../src/zookeeper/recipes/double-barrier.js';
import { elect } from '../../src/zookeeper/recipes/elect.js';
import { createFence } from '../../src/zookeeper/recipes/fence.js';
import { lock } from '../../src/zookeeper/recipes/lock.js';
import { queue } from '../../src/zookeeper/recipes/queue/queue.js';
import { semaphore } from '../../src/zookeeper/recipes/semaphore.js';
import { transaction } from '../../src/zookeeper/recipes/transaction.js';
import { newInstance } from '../../src/zookeeper/services/instance/new-instance.js';
import { jsonPayload } from '../../src/zookeeper/services/instance/payload-codec.js';
import { fixedInstances, ServiceCache } from '../../src/zookeeper/services/service-cache.js';
import { ServiceDirectory } from '../../src/zookeeper/services/service-directory.js';
import { ServiceDiscovery } from '../../src/zookeeper/services/service-discovery.js';
import { ServiceProvider } from '../../src/zookeeper/services/service-provider.js';
import { roundRobin, sticky } from '../../src/zookeeper/services/strategies.js';
import type { SharedData } from '../../src/zookeeper/shared-data/shared-data.js';
import { sharedData } from '../../src/zookeeper/shared-data/shared-data.js';
import { AnySession } from './scripted-zookeeper.js';
import { shardFleet } from './shard-fleet.js';
import { inVirtualTime, seededRandom, VirtualClock } from './virtual-clock.js';

// Which arguments the exported functions have, for the test that calls each with wrong ones.

/** Of one argument: a right value, and wrong ones with a name for each. */
export interface Argument {
  good(): unknown;
  wrong(): readonly (readonly [string, unknown])[];
}
export interface Row {
  readonly args: readonly Argument[];
  readonly isAsync?: boolean;
}

const SAMPLES: readonly unknown[] = [
  ...[undefined, null, true, 17, -1, 0.5, 2 ** 60, Number.NaN, Number.POSITIVE_INFINITY, 10n],
  ...['', 'x\u0000', Symbol('s'), {}, [], [7], () => 1, new Date(0), Object.create(null), new Uint8Array(1)],
];
const nameOf = (value: unknown) =>
  typeof value === 'object' && value !== null ? Object.prototype.toString.call(value) : String(value);
const argument = (good: () => unknown, accepts: (value: unknown) => boolean): Argument => ({
  good,
  wrong: () => SAMPLES.filter((value) => !accepts(value)).map((value) => [nameOf(value), value]),
});
const isObject = (value: unknown) => typeof value === 'object' && value !== null;

const opt = ({ wrong }: Argument): Argument => ({
  good: () => undefined,
  wrong: () => wrong().filter(([, value]) => value !== undefined),
});
/** An object with these fields; another object is not wrong by itself. */
const object = (fields: Readonly<Record<string, Argument>> = {}): Argument => {
  const good = () => Object.fromEntries(Object.entries(fields).map(([name, { good }]) => [name, good()]));
  return {
    good,
    wrong: () => [
      ...SAMPLES.filter((value) => !isObject(value)).map((value) => [nameOf(value), value] as const),
      ...Object.entries(fields).flatMap(([name, { wrong }]) =>
        wrong().map(([what, value]) => [`${name}: ${what}`, { ...good(), [name]: value }] as const),
      ),
    ],
  };
};
const options = (fields: Readonly<Record<string, Argument>> = {}) => opt(object(fields));
/** Any value will do. */
const any = argument(
  () => 'x',
  () => true,
);
const text = argument(
  () => 'x',
  (value) => typeof value === 'string',
);
const name = argument(
  () => 'x',
  (value) => typeof value === 'string' && value !== '',
);
const path = argument(
  () => '/a',
  (value) => typeof value === 'string',
);
const fn = argument(
  () => () => undefined,
  (value) => typeof value === 'function',
);
const flag = argument(
  () => true,
  (value) => typeof value === 'boolean',
);
const ms = argument(
  () => 5,
  (value) => typeof value === 'number' && value >= 0,
);
const whole = (good: number, min: number, max: number) =>
  argument(
    () => good,
    (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
  );
const data = argument(
  () => 'x',
  (value) => typeof value === 'string' || value instanceof Uint8Array,
);
const signal = opt(
  argument(
    () => undefined,
    () => false,
  ),
);
const clock = argument(
  () => new VirtualClock(),
  () => false,
);
const random = argument(
  () => seededRandom(1),
  () => false,
);
const zookeeper = argument(
  () => tree(),
  () => false,
);
const lease = argument(
  () => staticLease({ id: 1, taskId: 't' }),
  () => false,
);
const oneOf = (...texts: readonly string[]) =>
  argument(
    () => texts[0],
    () => false,
  );
const session = argument(
  () => storeSession(),
  () => false,
);
const store = argument(
  () => memoryStore(),
  () => false,
);
const big = argument(
  () => 1n,
  (value) => typeof value === 'bigint',
);
const long = argument(
  () => 1n,
  (value) => typeof value === 'bigint' || Number.isSafeInteger(value),
);
/** What is left of a time is negative once it is over. */
const left = argument(
  () => 5,
  (value) => typeof value === 'number' && !Number.isNaN(value),
);
const times = { timeoutMs: opt(left), signal };
const wait = options(times);
const recipe = { clock: opt(clock), random: opt(random), data: opt(data) };
const call = options({ ...times, sessionId: opt(text), reconnectOnTimeout: opt(flag) });
const listOf = (good: unknown, accepts: (value: unknown) => boolean) =>
  argument(
    () => [good],
    (value) => Array.isArray(value) && value.every(accepts),
  );
const key = argument(
  () => 'x',
  (value) => typeof value === 'string' || typeof value === 'bigint',
);
const value = argument(
  () => 'x',
  (value) => value !== undefined && typeof value !== 'symbol' && typeof value !== 'function',
);
const conditional = options({ ...times, ifVersion: opt(name) });
const layout = {
  name: opt(text),
  epochMs: opt(whole(1, 0, 2 ** 48)),
  timeBits: whole(41, 34, 48),
  sequenceBits: whole(12, 0, 22),
  nodeBits: whole(10, 1, 16),
  lowest: opt(oneOf('node')),
};
const time = argument(
  () => ({ now: () => 1, after: 0, before: () => 1, check: () => undefined }),
  () => false,
);
const operation = object({ type: oneOf('create'), path, data, mode: oneOf('shared') });
const operations: Argument = {
  good: () => [operation.good()],
  wrong: () => [
    ...SAMPLES.filter((value) => !Array.isArray(value)).map((value) => [nameOf(value), value] as const),
    ...operation.wrong().map(([what, value]) => [`[0]: ${what}`, [value]] as const),
  ],
};
const listOrFunction = argument(
  () => [],
  (value) => typeof value === 'function' || (Array.isArray(value) && value.length === 0),
);
const acquiring = {
  nodes: opt(whole(1, 1, 65528)),
  durationMs: opt(
    argument(
      () => 15_000,
      (v) => typeof v === 'number' && v >= 3000,
    ),
  ),
  graceMs: opt(ms),
  taskId: opt(
    argument(
      () => 't',
      () => false,
    ),
  ),
  waitPollMs: opt(
    argument(
      () => 1_000,
      (v) => typeof v === 'number' && v >= 17,
    ),
  ),
  endpoint: opt(text),
  region: opt(text),
  etcd: opt(argument(() => ({}), isObject)),
  keeper: opt(oneOf('inline')),
  onEvent: opt(fn),
  signal,
};
const codec = argument(
  () => jsonPayload,
  () => false,
);
const except = opt(
  argument(
    () => new Set(),
    () => false,
  ),
);
const instance = argument(
  () => INSTANCE,
  () => false,
);
const choices = options({
  strategy: opt(
    argument(
      () => roundRobin(),
      () => false,
    ),
  ),
  accept: opt(fn),
  downPolicy: opt(argument(() => ({}), isObject)),
});
const fixedPicker = () => new ServiceProvider({ ...at, source: fixedInstances('x', []) });
const picker = argument(fixedPicker, () => false);
const routing = options({
  maxAttempts: opt(whole(1, 1, 16)),
  headersTimeoutMs: opt(ms),
  retryStatuses: opt(
    argument(
      () => [],
      (v) => Array.isArray(v) && v.length === 0,
    ),
  ),
  hosts: opt(
    argument(
      () => 'any',
      (v) => Array.isArray(v) && v.length === 0,
    ),
  ),
});
const address = argument(
  () => ({ host: '127.0.0.1', port: 0 }),
  () => false,
);
const sync = (...args: Argument[]): Row => ({ args });
const async = (...args: Argument[]): Row => ({ args, isAsync: true });

async function inData<T>(open: (data: SharedData) => Promise<T>): Promise<T> {
  return inVirtualTime(at.clock, open(sharedData(tree(), at)));
}
async function inShards<T>(
  open: (fleet: {
    readonly store: LeaseStore;
    task(): ReturnType<ReturnType<typeof shardFleet>['task']>;
  }) => Promise<T>,
): Promise<T> {
  const fleet = shardFleet({ count: 4 });
  await fleet.task();
  await fleet.untilAllRun();
  const store = new MemoryLeaseStore({ clock: fleet.clock }, fleet.bucket);
  return open({ store, task: () => fleet.task() });
}
const INSTANCE = newInstance({ name: 'x', address: '10.0.0.1', port: 80 }, at0());
function at0() {
  return { clock: new VirtualClock(), random: seededRandom(1) };
}

function handleOf(name: string): Readonly<Record<string, Row>> {
  return {
    [`${name}.isValid`]: sync(),
    [`${name}.setKnownNodes`]: sync(object()),
    [`${name}.release`]: async(),
  };
}

function tree() {
  return new AnySession(new VirtualClock());
}
function memoryStore(clock = new VirtualClock()) {
  return new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1));
}
function storeSession() {
  const clock = new VirtualClock();
  return new StoreSession(memoryStore(clock), clock, 1_000);
}
const at = { clock: new VirtualClock(), random: seededRandom(1) };

/** What exported functions return, by names of our own. */
export const HANDLES: Readonly<Record<string, () => object | Promise<object>>> = {
  ZooKeeperClient: () =>
    new ZooKeeperClient({ connect: 'zk:1', ...at }, () => new Promise(() => undefined) as never),
  barrier: () => barrier(tree(), '/a', at),
  counter: () => counter(tree(), '/a', at),
  doubleBarrier: () => doubleBarrier(tree(), '/a', { ...at, members: 1 }),
  elect: () => elect(tree(), '/a', at),
  fence: () => createFence(),
  lock: () => lock(tree(), '/a', at),
  queue: () => queue(tree(), '/a', { ...at, format: 'simple' }),
  semaphore: () => semaphore(tree(), '/a', { ...at, leases: 1 }),
  transaction: () => transaction(tree(), '/a', at),
  configPublisher: () => configPublisher(tree(), { ...at, app: 'a', author: 'a' }),
  SharedData: () => sharedData(tree(), at),
  SharedScalar: () => inData((data) => data.scalar('a')),
  SharedSet: () => inData((data) => data.set('a')),
  SharedList: () => inData((data) => data.list('a')),
  SharedMap: () => inData((data) => data.map('a')),
  NodeSupervisor: () => sharedData(tree(), at).supervise(),
  configuration: () => openConfiguration(tree(), { ...at, app: 'a' }),
  uniqueIds: () => standaloneIds({ nodeId: 1, layout: cluster16(8), clock: at.clock }),
  staticLease: () => staticLease({ id: 1, taskId: 't' }),
  lease: () => acquireLease({ ...at, store: memoryStore(at.clock), taskId: 't', nodes: 1 }),
  router: () => inShards((fleet) => shardRouter({ ...at, store: fleet.store })),
  shards: () => inShards(async (fleet) => (await fleet.task()).shards),
  ServiceDirectory: () => new ServiceDirectory({ ...at, zookeeper: tree(), payload: jsonPayload }),
  ServiceDiscovery: () => new ServiceDiscovery({ ...at, zookeeper: tree() }),
  ServiceProvider: () => new ServiceProvider({ ...at, source: fixedInstances('x', [INSTANCE]) }),
  ServiceCache: () =>
    new ServiceCache({ ...at, zookeeper: tree(), basePath: '/a', name: 'x', payload: jsonPayload }),
  instances: () => fixedInstances('x', [INSTANCE]),
  strategy: () => sticky()(at),
  DiscoveryResolver: () => new DiscoveryResolver({ ...at, zookeeper: tree() }),
  DiscoveryTree: () =>
    new DiscoveryTree({ ...at, zookeeper: tree(), lease: staticLease({ id: 1, taskId: 't' }) }),
  NodeWatcher: () => new NodeWatcher({ ...at, zookeeper: tree() }),
  NodeMonitor: () => new NodeMonitor(),
  NodeMetrics: () => new NodeMetrics({ ...at, monitor: new NodeMonitor() }),
  nodeHandler: () => nodeHandler({ clock: at.clock }),
  OpenStreams: () => new OpenStreams(),
  ProviderPool: () =>
    new ProviderPool({ ...at, open: () => new ServiceProvider({ ...at, source: fixedInstances('x', []) }) }),
  ClusterFollower: () => new ClusterFollower({ ...at, session: storeSession() }),
  StoreSession: storeSession,
};

/** Methods that are not for users, which TypeScript hides. */
export const INTERNAL =
  /^((Shared\w+|NodeWatcher|ServiceCache)\.(notify|find|hasZnode|isTwice|onSeen|write|erase|element)|lease\.(addChore|attempt|call|check|giveBack|loseTo|lossError|mayPass|releasedError|renew|start|whenOver)|lock\.(checkFree|hold)|queue\.takeZnode)$/;

export const ROWS: Readonly<Record<string, Row>> = {
  // recipes
  barrier: sync(zookeeper, path, options(recipe)),
  'barrier.set': async(wait),
  'barrier.wait': async(wait),
  'barrier.remove': async(wait),
  counter: sync(zookeeper, path, options(recipe)),
  'counter.get': async(wait),
  'counter.add': async(long, wait),
  'counter.compareAndSet': async(long, long, wait),
  'counter.set': async(long, wait),
  createFence: sync(opt(big)),
  'fence.pass': sync(big),
  doubleBarrier: sync(zookeeper, path, object({ ...recipe, members: whole(1, 1, 1e6) })),
  'doubleBarrier.enter': async(wait),
  'doubleBarrier.leave': async(wait),
  followedLocks: sync(listOf('/a', (value) => typeof value === 'string')),
  elect: sync(zookeeper, path, options({ clock: opt(clock), id: opt(text), signal })),
  'elect.acquire': async(wait),
  participants: async(zookeeper, path, options({ ...recipe, ...times })),
  watchLeader: sync(zookeeper, path, fn, options(recipe)),
  lock: sync(zookeeper, path, options(recipe)),
  'lock.acquire': async(wait),
  readLock: sync(zookeeper, path, options(recipe)),
  writeLock: sync(zookeeper, path, options(recipe)),
  semaphore: sync(zookeeper, path, object({ ...recipe, leases: whole(1, 1, 1e6) })),
  'semaphore.acquire': async(wait),
  queue: sync(zookeeper, path, object({ ...recipe, format: oneOf('simple'), signal, onDamaged: opt(fn) })),
  'queue.put': async(data, wait),
  'queue.putMany': async(
    listOf('x', (value) => typeof value === 'string'),
    wait,
  ),
  'queue.take': async(wait),
  transaction: sync(zookeeper, path, options(recipe)),
  'transaction.coordinate': async(object({ sites: listOf('a', () => false), data: opt(data), ...times })),
  'transaction.join': async(object({ site: name, ...times }), fn, opt(fn)),
  'transaction.forget': async(wait),
  // zookeeper
  checkZnodeName: sync(name, text),
  formatServer: sync(object({ host: text, port: whole(1, 1, 65535) })),
  isFault: sync(any),
  openZooKeeper: sync(
    object({
      connect: argument(
        () => 'zk:1',
        () => false,
      ),
      sessionTimeoutMs: opt(whole(5000, 1000, 600000)),
      operationTimeoutMs: opt(whole(5, 1, 86400000)),
      auth: opt(
        argument(
          () => 'digest:a:b',
          () => false,
        ),
      ),
      tls: opt(
        argument(
          () => true,
          (value) => typeof value === 'boolean' || isObject(value),
        ),
      ),
      clock: opt(clock),
      random: opt(random),
    }),
  ),
  parseAuth: sync(
    argument(
      () => 'digest:a:b',
      () => false,
    ),
    text,
  ),
  parseConnectString: sync(
    argument(
      () => 'zk:1',
      () => false,
    ),
    text,
  ),
  ZooKeeperClient: sync(
    object({
      connect: argument(
        () => 'zk:1',
        () => false,
      ),
      clock: opt(clock),
      random: opt(random),
    }),
  ),
  'ZooKeeperClient.heardBy': sync(),
  'ZooKeeperClient.onState': sync(fn),
  'ZooKeeperClient.whenConnected': async(wait),
  'ZooKeeperClient.create': async(path, data, oneOf('shared'), call),
  'ZooKeeperClient.createWithZxid': async(path, data, oneOf('shared'), call),
  'ZooKeeperClient.createWithParents': async(path, data, oneOf('shared'), call),
  'ZooKeeperClient.ensurePath': async(path, call),
  'ZooKeeperClient.read': async(path, call),
  'ZooKeeperClient.children': async(path, call),
  'ZooKeeperClient.setData': async(path, data, opt(whole(1, -1, 2 ** 31)), call),
  'ZooKeeperClient.remove': async(path, opt(whole(1, -1, 2 ** 31)), call),
  'ZooKeeperClient.multi': async(operations, call),
  'ZooKeeperClient.watchChildren': sync(path, fn, opt(fn)),
  'ZooKeeperClient.watchData': sync(path, fn, opt(fn)),
  'ZooKeeperClient.watchRemoval': sync(path, fn),
  'ZooKeeperClient.close': async(),
  // configuration
  followedConfigurations: sync(opt(path)),
  openConfiguration: async(
    zookeeper,
    object({
      app: name,
      profile: opt(name),
      root: opt(path),
      nodeId: opt(whole(1, 0, 2 ** 53)),
      reports: opt(flag),
      snapshot: opt(name),
      ...times,
      onEvent: opt(fn),
      clock: opt(clock),
      random: opt(random),
    }),
  ),
  'configuration.get': sync(text),
  'configuration.onChange': sync(fn),
  'configuration.close': async(),
  configPublisher: sync(
    zookeeper,
    object({
      app: name,
      author: text,
      nodes: opt(
        argument(
          () => '5',
          () => false,
        ),
      ),
      keep: opt(whole(10, 17, 10000)),
      clock: opt(clock),
      random: opt(random),
    }),
  ),
  'configPublisher.read': async(signal),
  'configPublisher.publish': async(
    listOrFunction,
    options({ message: opt(text), expect: opt(whole(1, 0, 2 ** 53)), ...times }),
  ),
  'configPublisher.rollback': async(whole(1, 0, 2 ** 53), options({ message: opt(text), ...times })),
  'configPublisher.history': async(signal),
  'configPublisher.diff': async(whole(1, 0, 2 ** 53), opt(whole(1, 0, 2 ** 53)), signal),
  // shared data
  followedData: sync(listOf('/a', (value) => typeof value === 'string')),
  fromScalar: sync(object({ type: text, value: text })),
  toScalar: sync(value),
  TypedText: sync(name, text),
  placeName: sync(text, whole(1, 0, 2 ** 53)),
  sha256: sync(text),
  sharedData: sync(
    zookeeper,
    options({
      root: opt(path),
      paths: opt(
        argument(
          () => undefined,
          () => false,
        ),
      ),
      onEvent: opt(fn),
      clock: opt(clock),
      random: opt(random),
    }),
  ),
  SharedData: sync(
    zookeeper,
    options({ root: opt(path), onEvent: opt(fn), clock: opt(clock), random: opt(random) }),
  ),
  'SharedData.synced': async(wait),
  ...Object.fromEntries(
    ['scalar', 'set', 'list', 'map'].map((kind) => [
      `SharedData.${kind}`,
      async(name, options({ scope: opt(text), lifespan: opt(oneOf('ephemeral')), ...times })),
    ]),
  ),
  'SharedData.remove': async(name, options({ scope: opt(text), ...times })),
  'SharedData.announce': async(options({ data: opt(text), ...times })),
  'SharedData.supervise': sync(
    options({
      replace: opt(fn),
      maxReplacements: opt(ms),
      backoffMs: opt(ms),
      maxBackoffMs: opt(
        argument(
          () => 10_000,
          (value) => typeof value === 'number' && value >= 200,
        ),
      ),
      lease: opt(lease),
      data: opt(data),
      onState: opt(fn),
    }),
  ),
  'SharedData.nodes': sync(),
  'SharedData.close': async(),
  'SharedScalar.set': async(value, conditional),
  'SharedScalar.remove': async(conditional),
  'SharedSet.add': async(value, wait),
  'SharedSet.remove': async(value, wait),
  'SharedSet.has': sync(value),
  'SharedSet.entry': sync(value),
  'SharedSet.values': sync(),
  'SharedMap.get': sync(value),
  'SharedMap.has': sync(value),
  'SharedMap.entry': sync(value),
  'SharedMap.set': async(value, value, conditional),
  'SharedMap.remove': async(value, conditional),
  'SharedList.values': sync(),
  'SharedList.get': sync(
    argument(
      () => 1,
      (value) => typeof value === 'number',
    ),
  ),
  'SharedList.append': async(value, wait),
  'SharedList.set': async(whole(1, 0, 2 ** 53), value, conditional),
  'SharedList.remove': async(whole(1, 0, 2 ** 53), conditional),
  ...Object.fromEntries(
    ['SharedScalar', 'SharedSet', 'SharedList', 'SharedMap'].map((kind) => [`${kind}.onChange`, sync(fn)]),
  ),
  ...Object.fromEntries(
    ['SharedScalar', 'SharedSet', 'SharedList', 'SharedMap'].flatMap((kind) => [
      [`${kind}.entries`, sync()],
      [`${kind}.close`, sync()],
    ]),
  ),
  'NodeSupervisor.onState': sync(fn),
  'NodeSupervisor.whenJoined': async(wait),
  'NodeSupervisor.stop': async(),
  // ids
  cluster16: sync(whole(8, 8, 16)),
  clusterNodeIdOf: sync(whole(1, 0, 65527)),
  nodeIdOf: sync(whole(9, 8, 65535)),
  decodeId: sync(
    argument(
      () => 1n,
      (value) => value === 10n,
    ),
    object(layout),
  ),
  formatId: sync(
    argument(
      () => 1n,
      (value) => value === 10n,
    ),
    oneOf('hex'),
  ),
  parseId: sync(
    argument(
      () => '1',
      () => false,
    ),
    opt(oneOf('decimal')),
  ),
  idLayout: sync(object(layout)),
  idsPerMs: sync(object(layout)),
  snowflake: sync(opt(whole(1, 0, 2 ** 48))),
  standaloneIds: sync(
    object({
      nodeId: whole(1, 0, 65527),
      layout: object(layout),
      clock: opt(clock),
      lagMs: opt(whole(1, 0, 3600000)),
    }),
  ),
  uniqueIds: async(lease, options({ layout: opt(object(layout)), lagMs: opt(ms), signal })),
  UniqueIdGenerator: sync(
    object({
      layout: object(layout),
      node: whole(1, 0, 65535),
      time,
      clock,
      lagMs: opt(whole(1, 0, 3600000)),
      advanceMs: opt(whole(1, 0, 3600000)),
    }),
  ),
  'uniqueIds.next': sync(),
  'uniqueIds.nextAsync': async(signal),
  'uniqueIds.nextString': sync(opt(oneOf('hex'))),
  'uniqueIds.fill': sync(
    argument(
      () => new BigUint64Array(1),
      () => false,
    ),
    opt(whole(1, 0, 1)),
    opt(whole(1, 0, 1)),
  ),
  'uniqueIds.decode': sync(
    argument(
      () => 1n,
      (value) => value === 10n,
    ),
  ),
  'uniqueIds.adopt': sync(object(layout)),
  // leases
  optionsFromEnvironment: async(),
  protect: async(),
  acquire: async(
    options({
      store: opt(
        argument(
          () => undefined,
          () => false,
        ),
      ),
      ...acquiring,
      cluster: opt(oneOf('any')),
      sticky: opt(oneOf('x')),
      preferId: opt(whole(1, 0, 65527)),
      stickyWaitMs: opt(ms),
      settingsIntervalMs: opt(
        argument(
          () => 5_000,
          (v) => typeof v === 'number' && v >= 1000,
        ),
      ),
      onLost: opt(fn),
      zookeeper: opt(
        argument(
          () => 'zk:1',
          () => false,
        ),
      ),
      provider: opt(oneOf('store')),
      dataDir: opt(
        argument(
          () => undefined,
          () => false,
        ),
      ),
      monitor: opt(
        argument(
          () => undefined,
          () => false,
        ),
      ),
    }),
  ),
  staticLease: sync(object({ id: whole(1, 0, 65527), taskId: name, version: opt(whole(1, 1, 2 ** 53)) })),
  ordinalOf: sync(
    argument(
      () => 'web-3',
      () => false,
    ),
  ),
  ...handleOf('lease'),
  ...handleOf('staticLease'),
  // It keeps none.
  'staticLease.setKnownNodes': sync(),
  // locks, shards
  acquireLock: async(
    argument(
      () => 'x',
      () => false,
    ),
    options({ ...acquiring, clock: opt(clock), random: opt(random), timeoutMs: opt(ms) }),
  ),
  oncePer: async(
    argument(
      () => 'memory:',
      () => false,
    ),
    object({
      name,
      every: argument(
        () => '1h',
        (value) => value === 17_000,
      ),
      ...acquiring,
      clock: opt(clock),
      random: opt(random),
      timeoutMs: opt(ms),
      retry: opt(whole(1, 0, 1_000)),
      catchUp: opt(flag),
    }),
  ),
  electOnStore: sync(
    argument(
      () => 'x',
      () => false,
    ),
    options({ ...acquiring, clock: opt(clock), random: opt(random), timeoutMs: opt(ms) }),
  ),
  ownShards: async(
    lease,
    object({
      count: whole(1, 1, 4096),
      start: fn,
      stopTimeoutMs: opt(ms),
      address: opt(name),
      onEvent: opt(fn),
    }),
  ),
  shardRouter: async(
    object({
      store,
      refreshMs: opt(ms),
      clock: opt(clock),
      random: opt(random),
      endpoint: opt(text),
      region: opt(text),
    }),
  ),
  shardOf: sync(key, whole(1, 1, 4096)),
  shardsReport: async(session, object(), signal),
  'router.nodeFor': sync(key),
  'router.refresh': async(),
  'shards.shardOf': sync(key),
  'shards.owns': sync(key),
  // services
  checkInstance: sync(object()),
  newInstance: sync(
    object({ name, address: name, port: opt(whole(1, 1, 65535)), enabled: opt(flag) }),
    object({ clock, random }),
  ),
  encodeInstance: sync(object(), codec),
  decodeInstance: sync(
    object({
      name,
      id: text,
      data: argument(
        () => Buffer.from('{}'),
        (v) => v instanceof Uint8Array,
      ),
    }),
    codec,
  ),
  buildUri: sync(
    object({ parts: argument(() => [], Array.isArray) }),
    object({ serviceType: text }),
    options(),
  ),
  instanceUrl: sync(object(), options()),
  parseUriSpec: sync(text, opt(text)),
  fixedInstances: sync(
    name,
    argument(
      () => [],
      (v) => Array.isArray(v) && v.length === 0,
    ),
  ),
  springInstancePayload: sync(object({ id: text, name: text, metadata: argument(() => ({}), isObject) })),
  parseStrategy: sync(oneOf('random'), opt(text)),
  random: sync(),
  roundRobin: sync(),
  sticky: sync(opt(fn)),
  weighted: sync(options({ weightOf: opt(fn), onBadWeight: opt(fn) })),
  // Called by the provider, for each request.
  'strategy.pick': sync(),
  'strategy.noteError': sync(),
  'instances.onChange': sync(fn),
  'instances.close': sync(),
  ServiceCache: sync(
    object({
      zookeeper,
      clock,
      name,
      basePath: path,
      payload: codec,
      onUnreadable: opt(
        argument(
          () => undefined,
          (v) => typeof v === 'function',
        ),
      ),
    }),
  ),
  'ServiceCache.onChange': sync(fn),
  'ServiceCache.close': sync(),
  ServiceDirectory: sync(
    object({ zookeeper, clock, basePath: opt(path), payload: codec, onUnreadable: opt(fn) }),
  ),
  'ServiceDirectory.names': async(wait),
  'ServiceDirectory.instances': async(name, wait),
  'ServiceDirectory.instancesWithStat': async(name, wait),
  'ServiceDirectory.instance': async(name, name, wait),
  'ServiceDirectory.write': async(object(), wait),
  'ServiceDirectory.remove': async(name, name, wait),
  'ServiceDirectory.setEnabled': async(name, name, flag, wait),
  ServiceDiscovery: sync(
    object({
      zookeeper,
      clock,
      random,
      basePath: opt(path),
      payload: opt(codec),
      lease: opt(lease),
      onEvent: opt(fn),
    }),
  ),
  'ServiceDiscovery.onState': sync(fn),
  'ServiceDiscovery.newInstance': sync(object({ name, address: name })),
  'ServiceDiscovery.register': async(instance, wait),
  'ServiceDiscovery.update': async(instance, wait),
  'ServiceDiscovery.unregister': async(object({ name, id: name }), wait),
  'ServiceDiscovery.queryForNames': async(wait),
  'ServiceDiscovery.queryForInstances': async(name, wait),
  'ServiceDiscovery.queryForInstance': async(name, name, wait),
  'ServiceDiscovery.cache': sync(name),
  'ServiceDiscovery.provider': sync(name, choices),
  'ServiceDiscovery.withdraw': async(left),
  'ServiceDiscovery.close': async(),
  ServiceProvider: sync(
    object({
      source: argument(
        () => fixedInstances('x', []),
        () => false,
      ),
      clock,
      random,
      accept: opt(fn),
      strategy: opt(
        argument(
          () => roundRobin(),
          () => false,
        ),
      ),
      downPolicy: opt(object()),
    }),
  ),
  'ServiceProvider.pick': sync(except),
  'ServiceProvider.need': sync(except),
  'ServiceProvider.url': sync(
    argument(
      () => undefined,
      (v) => v === undefined || isObject(v),
    ),
  ),
  'ServiceProvider.noteError': sync(object()),
  'ServiceProvider.close': sync(),
  connectServices: sync(
    object({
      connect: argument(
        () => 'zk:1',
        () => false,
      ),
      auth: opt(
        argument(
          () => 'digest:a:b',
          () => false,
        ),
      ),
      tls: opt(
        argument(
          () => true,
          (v) => typeof v === 'boolean' || isObject(v),
        ),
      ),
      sessionTimeoutMs: opt(whole(5000, 1000, 600000)),
      basePath: opt(path),
      payload: opt(codec),
      onEvent: opt(fn),
    }),
  ),
  // routing
  ownerOf: sync(
    picker,
    argument(
      () => ({ nodeFor: () => undefined }),
      () => false,
    ),
    any,
  ),
  serviceDispatcher: sync(picker, routing),
  serviceInterceptor: sync(picker, routing),
  serviceLookup: sync(
    argument(
      () => fixedPicker(),
      () => false,
    ),
    options({ lookup: opt(fn) }),
  ),
  serviceRequestOptions: sync(picker, opt(text), except),
  // discovery
  checkAnnouncement: sync(
    object({
      service: argument(
        () => 'x',
        (v) => v === undefined,
      ),
      port: opt(whole(1, 1, 65535)),
    }),
    name,
  ),
  decodeAssignment: sync(
    argument(
      () => Buffer.from('{}'),
      (v) => v instanceof Uint8Array,
    ),
    opt(whole(1, 0, 2 ** 53)),
  ),
  encodeAssignment: sync(object({ taskId: text, nodeId: whole(1, 0, 2 ** 53) })),
  entryPath: sync(
    argument(
      () => ({ kind: 'node' }),
      () => false,
    ),
    whole(1, 0, 65527),
  ),
  watchIdWidth: sync(zookeeper, opt(whole(1, 0, 65527))),
  Discoverer: sync(
    object({
      connect: argument(
        () => 'zk:1',
        () => false,
      ),
      announcement: object(),
      clock,
      random,
      onEvent: opt(fn),
      required: opt(flag),
      readyTimeoutMs: opt(ms),
    }),
  ),
  Discovery: sync(
    object({ zookeeper, lease, announcement: object(), clock, random, onEvent: opt(fn), readyTimeoutMs: ms }),
  ),
  DiscoveryResolver: sync(
    object({ zookeeper, clock: opt(clock), random: opt(random), onUnreadable: opt(fn) }),
  ),
  'DiscoveryResolver.instances': sync(name, opt(name)),
  'DiscoveryResolver.instancesOfAllKeys': sync(name),
  'DiscoveryResolver.provider': sync(name, options({ key: opt(name), accept: opt(fn) })),
  'DiscoveryResolver.close': sync(),
  DiscoveryTree: sync(object({ zookeeper, clock, random, lease, onEvent: opt(fn) })),
  'DiscoveryTree.onState': sync(fn),
  'DiscoveryTree.register': sync(
    argument(
      () => ({ kind: 'node' }),
      () => false,
    ),
    options(),
  ),
  'DiscoveryTree.unregister': sync(
    argument(
      () => ({ kind: 'node' }),
      () => false,
    ),
  ),
  'DiscoveryTree.untilUnregistered': async(
    argument(
      () => [],
      (v) => Array.isArray(v) && v.length === 0,
    ),
    left,
  ),
  'DiscoveryTree.withdraw': async(left),
  'DiscoveryTree.close': async(),
  NodeWatcher: sync(object({ zookeeper, clock, onUnreadable: opt(fn) })),
  'NodeWatcher.isTaken': sync(whole(9, 0, 2 ** 53)),
  'NodeWatcher.knownVersions': sync(),
  'NodeWatcher.onChange': sync(fn),
  'NodeWatcher.close': sync(),
  // http
  'BearerTokenFile.open': async(name, text),
  NodeMonitor: sync(),
  'NodeMonitor.waits': sync(text),
  'NodeMonitor.hold': sync(lease, opt(object()), opt(text)),
  'NodeMonitor.stopping': sync(opt(text)),
  'NodeMonitor.failed': sync(any),
  'NodeMonitor.health': sync(),
  'NodeMonitor.onEvent': sync(fn),
  'NodeMonitor.onLeaseEvent': sync(object()),
  'NodeMonitor.onDiscoveryEvent': sync(object()),
  NodeMetrics: sync(
    object({
      monitor: argument(
        () => new NodeMonitor(),
        () => false,
      ),
      clock: opt(clock),
    }),
  ),
  'NodeMetrics.text': async(),
  'NodeMetrics.close': sync(),
  nodeApp: sync(
    object({ heldForOthers: opt(flag), clock: opt(clock), onFailure: opt(fn), cluster: opt(fn) }),
  ),
  configurationsPage: sync(object()),
  dataWrites: sync(object()),
  servicesPage: sync(object({ allowWrites: opt(flag) })),
  shardsRoutes: sync(object()),
  nodeHandler: sync(object({ basePath: opt(path), clock: opt(clock), onFailure: opt(fn) })),
  'nodeHandler.fetch': async(object()),
  'nodeHandler.handle': sync(object(), object(), opt(fn)),
  startNodeServer: async(
    object({ clock: opt(clock), listen: address, bearerTokenFile: opt(name), onFailure: opt(fn) }),
  ),
  startDiscoveryServer: async(
    object({
      zookeeper,
      clock,
      random,
      listen: opt(address),
      basePath: opt(path),
      readOnly: opt(flag),
      allowWrites: opt(flag),
      bearerTokenFile: opt(name),
      strategy: opt(fn),
      onEvent: opt(fn),
    }),
  ),
  discoveryApp: sync(
    object({
      directory: object(),
      pool: object(),
      clock,
      timeoutMs: opt(left),
      listTimeoutMs: opt(ms),
      onFailure: opt(fn),
    }),
  ),
  listen: async(
    object({
      fetch: fn,
      at: address,
      clock: opt(clock),
      label: opt(text),
      maxConnections: opt(whole(1, 1, 2 ** 53)),
      maxRequests: opt(whole(1, 1, 2 ** 53)),
      isUrgent: opt(fn),
      silentMs: opt(ms),
    }),
  ),
  formatListenAddress: sync(address),
  isLoopback: sync(text),
  parseListenAddress: sync(
    argument(
      () => '127.0.0.1:1',
      () => false,
    ),
    text,
    opt(whole(1, 0, 1)),
  ),
  writeAccess: sync(
    address,
    object({
      readOnly: opt(flag),
      token: opt(
        argument(
          () => ({ admits: async () => true }),
          () => false,
        ),
      ),
    }),
    text,
  ),
  OpenStreams: sync(opt(whole(1, 1, 2 ** 53))),
  'OpenStreams.ofTheirOwn': sync(whole(1, 1, 2 ** 53)),
  'OpenStreams.open': sync(fn, opt(fn)),
  'OpenStreams.answer': async(
    argument(
      () => new Request('http://127.0.0.1/'),
      () => false,
    ),
    fn,
    opt(fn),
  ),
  'OpenStreams.endAll': sync(),
  ProviderPool: sync(
    object({
      open: fn,
      exists: opt(fn),
      clock,
      most: opt(whole(1, 1, 2 ** 53)),
      idleMs: opt(ms),
      readyWithinMs: opt(ms),
    }),
  ),
  'ProviderPool.any': async(name, signal),
  'ProviderPool.close': sync(),
  ClusterFollower: sync(
    object({
      clock: opt(clock),
      random: opt(random),
      session: opt(session),
      zookeeper: opt(zookeeper),
      parts: opt(object()),
      shards: opt(fn),
    }),
  ),
  'ClusterFollower.snapshot': async(signal),
  'ClusterFollower.current': sync(),
  'ClusterFollower.tenures': sync(
    argument(
      () => new Set(),
      () => false,
    ),
  ),
  'ClusterFollower.follow': sync(fn),
  'ClusterFollower.close': async(),
  // engine, stores
  acquireLease: async(
    object({
      store,
      clock,
      random,
      taskId: argument(
        () => 't',
        () => false,
      ),
      nodes: opt(whole(1, 1, 65528)),
      durationMs: opt(
        argument(
          () => 15_000,
          (v) => typeof v === 'number' && v >= 3000,
        ),
      ),
      acquireTimeoutMs: opt(ms),
      onEvent: opt(fn),
      signal,
    }),
  ),
  initializeCluster: async(object({ session, clock, random, wanted: object(), onProgress: opt(fn), signal })),
  repairCluster: async(object({ session, clock, aboveVersion: opt(whole(1, 0, 2 ** 53)), onWait: opt(fn) })),
  inspectCluster: async(session),
  evictHolder: async(session, whole(0, 0, 65527)),
  scaleCluster: async(
    object({
      session,
      clock,
      random,
      size: whole(1, 1, 65528),
      waitTimeoutMs: opt(ms),
      drainTimeoutMs: opt(ms),
      signal,
      onEvent: opt(fn),
    }),
  ),
  tuneCluster: async(
    object({
      session,
      clock,
      random,
      durationMs: whole(15_000, 1_000, 86_400_000),
      graceMs: opt(whole(1_000, 15, 3_600_000)),
      signal,
    }),
  ),
  StoreSession: sync(store, clock, left),
  'StoreSession.read': async(name, wait),
  'StoreSession.list': async(wait),
  'StoreSession.listPage': async(opt(text), wait),
  'StoreSession.write': async(name, object(), opt(text), wait),
  'StoreSession.expectObjects': sync(whole(1, 0, 2 ** 53)),
  'StoreSession.storeNow': sync(),
  'StoreSession.epoch': async(wait),
  'StoreSession.latest': sync(object()),
  'StoreSession.untilTold': sync(left, object()),
  openStore: async(
    argument(
      () => 'memory:',
      () => false,
    ),
    object({ clock: opt(clock), random: opt(random), endpoint: opt(text), region: opt(text) }),
  ),
  observedAge: sync(store, opt(clock)),
  probeStore: async(store, object({ clock, random })),
  leaseStoreContract: sync(object()),
  openS3Store: async(object()),
  openAzureStore: async(object()),
  openDynamoDbStore: async(object()),
  openGcsStore: async(object()),
  openPostgresStore: async(object()),
  S3LeaseStore: sync(object()),
  EtcdLeaseStore: sync(object()),
  AzureLeaseStore: sync(object()),
  GcsLeaseStore: sync(object()),
  FileLeaseStore: sync(object({ clock })),
  MemoryLeaseStore: sync(options({ clock: opt(clock) })),
  MemoryBucket: sync(clock),
};
