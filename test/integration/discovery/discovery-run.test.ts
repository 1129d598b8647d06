import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { type FleetStore, fleetStore, initCluster, loggedAt, startTask, type Task } from '../../support/fleet.js';
import { stopProxies, throughProxy } from '../../support/network/proxies.js';
import { killAll, runCli, type TestProcess } from '../../support/processes.js';
import { ZOOKEEPER_TIMES, zkCli } from '../../support/servers/zookeeper-process.js';
import { TreeReader } from '../../support/tree-reader.js';
import { uniqueChroot } from '../../support/zookeeper.js';
import { childrenOf, isAlive } from '../cli/run-support.js';

const SESSION_MS = 2_000;
/** A dead session ends within its time-out and two ticks of the server; the rest is for a machine that has much else to do. */
const GONE_WITHIN_MS = SESSION_MS + 2 * ZOOKEEPER_TIMES.tickTimeMs + 4_000;
const NODE = (index: number) => `/discovery/nodes/00/${(8 + index).toString(16).toUpperCase().padStart(2, '0')}`;

let connect: string;
let store: FleetStore;
let reader: TreeReader;

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  store = await fleetStore('s3', inject('s3'));
  reader = new TreeReader(connect);
});
afterEach(async () => {
  await killAll();
  await stopProxies();
  await reader.close();
  await store.remove();
});

const CLUSTER = ['--nodes', '3', '--duration', '4s'];
const LEASE = [...CLUSTER, '--log-level', 'debug'];
const SETTINGS = [...LEASE, '--zookeeper-session-timeout', `${SESSION_MS}ms`];

function start(taskId: string, options: readonly string[] = [], script?: string): Task {
  return startTask(store, [...SETTINGS, '--task-id', taskId, '--zookeeper', connect, ...options], script);
}

/** The supervisor, and everything that it started. */
function family(pid: number): number[] {
  let children: number[] = [];
  try {
    children = childrenOf(pid);
  } catch (error) {
    // The guard's naps last a second at most, and may end at any time.
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
  return [pid, ...children.flatMap(family)];
}

/** To each of them. What has ended already, by itself or with another of them, is gone. */
function signalAll(members: readonly number[], signal: NodeJS.Signals): void {
  for (const member of members) {
    try {
      process.kill(member, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** All of it at once. */
function killFamily(pid: number): void {
  signalAll(family(pid), 'SIGKILL');
}

describe('tasks on S3 and ZooKeeper', () => {
  beforeEach(() => initCluster(store, ...CLUSTER));

  it('stand in the tree under their node ids, for every client to read; a killed one goes, and its successor has the higher version', async () => {
    const tasks = [];
    for (const name of ['one', 'two', 'three']) {
      const task = start(name, ['--service', 'orders', '--address', '127.0.0.1', '--port', '8080']);
      await task.started();
      tasks.push(task);
    }
    for (const index of [0, 1, 2]) await reader.until(NODE(index), (seen) => seen !== undefined, 5_000);
    const nodes = await reader.all('/discovery/nodes');
    expect([...nodes].map(([path, { taskId, nodeId, version, service }]) => [path, taskId, nodeId, version, service])).toEqual([
      ['/discovery/nodes/00/08', 'one', 0, 1, 'orders'],
      ['/discovery/nodes/00/09', 'two', 1, 1, 'orders'],
      ['/discovery/nodes/00/0A', 'three', 2, 1, 'orders'],
    ]);
    // The same by ZooKeeper's own client.
    expect(await zkCli(connect, ['ls', '/discovery/nodes/00'])).toContain('[08, 09, 0A]');
    expect(await zkCli(connect, ['get', '/discovery/nodes/00/0A'])).toContain('"taskId":"three","nodeId":2,"version":1');
    expect(await zkCli(connect, ['ls', '/discovery/servicetypes/orders'])).toContain('[0, 1, 2]');

    const [, second] = tasks as [Task, Task, Task];
    const killedAt = performance.now();
    killFamily(second.pid);
    await reader.until(NODE(1), (seen) => seen === undefined, SESSION_MS + 10_000);
    expect(performance.now() - killedAt).toBeLessThan(GONE_WITHIN_MS);
    const successor = start('four');
    expect(await successor.started()).toEqual({ id: 1, version: 2 });
    await reader.until(NODE(1), (seen) => seen?.version === 2 && seen.taskId === 'four');
  });

  it('know each other’s versions, which stand in their leases by the next renewal', async () => {
    const one = start('one');
    await one.started();
    const two = start('two');
    await two.started();
    await reader.until(NODE(1), (seen) => seen !== undefined);
    const known = async (key: string) => (JSON.parse((await store.read(key)) ?? '{}') as { knownNodesMapping?: unknown }).knownNodesMapping;
    await expect.poll(() => known('0.json'), { timeout: 5_000 }).toEqual({ 0: 1, 1: 1 });
    await expect.poll(() => known('1.json'), { timeout: 5_000 }).toEqual({ 0: 1, 1: 1 });
  });

  it('are ready at once after a release, and after a crash when all others know of them', async () => {
    const one = start('one');
    await one.started();
    const two = start('two');
    await two.started();
    two.kill('SIGTERM');
    await two.exit;
    const again = start('again');
    expect(await again.started()).toEqual({ id: 1, version: 2 });
    await again.waitForOutput(/"why":"released".*"msg":"ready"/, 2_000);

    // The only other id is taken, so that the one that expires has to be.
    const three = start('three');
    expect(await three.started()).toEqual({ id: 2, version: 1 });
    killFamily(again.pid);
    const successor = start('successor');
    expect(await successor.started()).toEqual({ id: 1, version: 3 });
    await successor.waitForOutput(/"why":"known".*"msg":"ready"/);
    for (const key of ['0.json', '2.json']) {
      expect(JSON.parse((await store.read(key)) ?? '')).toMatchObject({ knownNodesMapping: { 1: 3 } });
    }
  });

  it('are ready after the time-out when another one does not know of them, which the log says', async () => {
    // One that has no ZooKeeper learns nothing.
    const one = startTask(store, [...LEASE, '--task-id', 'one']);
    await one.started();
    const two = start('two');
    await two.started();
    killFamily(two.pid);
    const three = start('three');
    await three.started();
    const successor = start('successor', ['--ready-timeout', '3s']);
    expect(await successor.started()).toEqual({ id: 1, version: 2 });
    await successor.waitForOutput(/ready after the time-out: node 0 does still not know/);
    const waited = loggedAt(successor.log(), /ready after the time-out/) - loggedAt(successor.log(), /acquired node id/);
    expect(waited).toBeGreaterThan(2_900);
  });
});

describe('a take-over while the old session is alive', () => {
  it('puts the successor’s znode in place, and the old one cannot come back', async () => {
    const old = start('old', ['--zookeeper-session-timeout', '30s']);
    await old.started();
    await reader.until(NODE(0), (seen) => seen?.taskId === 'old');
    for (const other of [start('one'), start('two')]) await other.started();
    const everything = family(old.pid);
    signalAll(everything, 'SIGSTOP');
    const successor = start('successor');
    expect(await successor.started()).toEqual({ id: 0, version: 2 });
    // The old session has 30 s, and has not ended.
    expect(await reader.until(NODE(0), (seen) => seen?.taskId === 'successor', 3_000)).toBeLessThan(2_000);
    signalAll(everything, 'SIGCONT');
    expect((await old.exit).code).toBe(76);
    const seen: unknown[] = [];
    for (let look = 0; look < 100; look += 1) {
      seen.push((await reader.at(NODE(0)))?.taskId);
      await sleep(10);
    }
    expect(new Set(seen)).toEqual(new Set(['successor']));
  });
});

describe('a task whose lease ends', () => {
  it('is out of the tree within 1 s of a loss to somebody else', async () => {
    const task = start('task', ['--service', 'orders']);
    await task.started();
    await reader.until('/discovery/servicetypes/orders/0', (seen) => seen !== undefined);
    const release = runCli(['release', '0', '--force', ...store.options], { env: store.env });
    expect((await release.exit).code).toBe(0);
    await task.waitForOutput(/is lost/);
    expect(await reader.until(NODE(0), (seen) => seen === undefined, 2_000)).toBeLessThan(1_000);
    expect(await reader.at('/discovery/servicetypes/orders/0')).toBeUndefined();
    expect((await task.exit).code).toBe(76);
  });

  it('is out of the tree before its deadline when the store is out of reach', async () => {
    const { proxy, through } = await throughProxy(inject('s3').endpoint);
    const task = start('task', ['--endpoint', through]);
    await task.started();
    await task.waitForOutput(/lease renewed/);
    await reader.until(NODE(0), (seen) => seen !== undefined);
    proxy.cut();
    await task.waitForOutput(/is lost/);
    expect(await reader.until(NODE(0), (seen) => seen === undefined, 2_000)).toBeLessThan(1_000);
    expect(Date.now()).toBeLessThan(loggedAt(task.log(), /lease renewed/, 'last') + 4_000);
    expect((await task.exit).code).toBe(76);
  });
});

describe('a task whose ZooKeeper is away', () => {
  it('starts and works without it, says that discovery is degraded, and stands in the tree on its return', async () => {
    const { proxy, through } = await throughProxy(connect);
    proxy.cut();
    const task = start('task', ['--zookeeper', through]);
    expect(await task.started()).toEqual({ id: 0, version: 1 });
    await task.waitForOutput(/discovery: degraded/);
    await task.waitForOutput(/lease renewed/);
    proxy.heal();
    await reader.until(NODE(0), (seen) => seen?.taskId === 'task');
    await task.waitForOutput(/discovery: ok/, 2_000);
    expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
  });

  it.each(['cut', 'stall'] as const)(
    'keeps its node id through a %s that outlasts its session, and stands in the tree again',
    async (fault) => {
      const { proxy, through } = await throughProxy(connect);
      const task = start('task', ['--zookeeper', through]);
      await task.started();
      await reader.until(NODE(0), (seen) => seen !== undefined);
      if (fault === 'cut') proxy.cut();
      else proxy.stall('both');
      await reader.until(NODE(0), (seen) => seen === undefined);
      await task.waitForOutput(/discovery: degraded/);
      proxy.heal();
      await reader.until(NODE(0), (seen) => seen?.version === 1);
      expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
      task.kill('SIGTERM');
      expect((await task.exit).code).toBe(143);
    },
  );

  it('fails with 69 and says why when it is required, and takes no node id for nothing', async () => {
    const task = start('task', ['--zookeeper', '127.0.0.1:1', '--zookeeper-required']);
    const begun = performance.now();
    expect((await task.exit).code).toBe(69);
    expect(performance.now() - begun).toBeLessThan(15_000);
    expect(task.log().at(-1)?.msg).toMatch(/127\.0\.0\.1:1.*ECONNREFUSED/);
    expect(await store.keys()).toEqual([]);
  });

  it('is not held up by it when it ends', async () => {
    const { proxy, through } = await throughProxy(connect);
    const task = start('task', ['--zookeeper', through]);
    await task.started();
    await reader.until(NODE(0), (seen) => seen !== undefined);
    const everything = family(task.pid);
    proxy.stall('both');
    const begun = performance.now();
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    expect(performance.now() - begun).toBeLessThan(4_000);
    expect(everything.filter(isAlive)).toEqual([]);
    expect(JSON.parse((await store.read('0.json')) ?? '')).not.toHaveProperty('taskId');
  });
});

describe('a task with a node id from ZooKeeper alone', () => {
  /** A command that tells its id, and then the time for as long as it lives. */
  const HEARTBEAT = 'echo "id $NODE_ID version $NODE_ID_VERSION"; while :; do date +%s%3N; sleep 0.02; done';

  function allocate(through: string, script = HEARTBEAT, sessionMs = 20_000) {
    const options = ['--zookeeper', through, '--zookeeper-session-timeout', `${sessionMs}ms`, '--service', 'orders'];
    return runCli(['run', '--provider', 'zookeeper', ...options, '--', 'sh', '-c', script]);
  }

  async function given(task: TestProcess): Promise<[number, number]> {
    const [, id, version] = await task.waitForOutput(/^id (\d+) version (\d+)$/m);
    return [Number(id), Number(version)];
  }

  it('has the first free one, and gives it back when its command has ended', async () => {
    const one = allocate(connect);
    const [first, version] = await given(one);
    const two = allocate(connect);
    const [second, later] = await given(two);
    expect([first, second]).toEqual([0, 1]);
    expect(later).toBeGreaterThan(version);
    await reader.until('/discovery/servicetypes/orders/0', (seen) => seen?.version === version);
    one.kill('SIGTERM');
    expect((await one.exit).code).toBe(143);
    expect([...(await reader.all()).keys()]).toEqual([NODE(1), '/discovery/servicetypes/orders/1']);
    const [again, latest] = await given(allocate(connect));
    expect(again).toBe(0);
    expect(latest).toBeGreaterThan(later);
  });

  it.each(['', "trap '' TERM; "])('is stopped before the servers give its id away when it is cut off (command: %j)', async (trap) => {
    const { proxy, through } = await throughProxy(connect);
    const task = allocate(through, trap + HEARTBEAT, 2 * SESSION_MS);
    expect((await given(task))[0]).toBe(0);
    proxy.cut();
    await reader.until(NODE(0), (seen) => seen === undefined);
    const goneAt = Date.now();
    expect(await task.exit).toEqual({ code: 76, signal: null });
    const lastHeartbeat = Number(/(\d{13})\n[^\d]*$/.exec(task.stdout())?.[1]);
    expect(lastHeartbeat).toBeLessThan(goneAt);
  });

  it('keeps its id until a command that takes its time has ended', async () => {
    const task = allocate(connect, `trap 'echo told; sleep 0.3; echo ended; exit 0' TERM; ${HEARTBEAT}`);
    await given(task);
    // Who waits for the place is told of the very moment in which it is free.
    const free = reader.until(NODE(0), (seen) => seen === undefined, 20_000);
    task.kill('SIGTERM');
    await task.waitForOutput(/told/);
    await free;
    expect(task.stdout()).toMatch(/ended/);
    expect((await task.exit).code).toBe(0);
  });

  it('fails with 69 when no server answers, and says why', async () => {
    const task = allocate('127.0.0.1:1');
    expect((await task.exit).code).toBe(69);
    expect(task.stderr()).toMatch(/127\.0\.0\.1:1.*ECONNREFUSED/);
  });
});

describe('a fixed node id', () => {
  it('stands in the tree like a leased one, ready at once', async () => {
    const task = runCli(['run', '--node-id', '5', '--zookeeper', connect, '--task-id', 'fixed', '--', 'sleep', '300']);
    await reader.until(NODE(5), (seen) => seen?.taskId === 'fixed' && seen.version === 1);
    await task.waitForOutput(/"why":"static".*"msg":"ready"/, 2_000);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    expect(await reader.at(NODE(5))).toBeUndefined();
  });
});

describe('settings that cannot be', () => {
  it.each([
    [['--zookeeper', 'zk1:notaport'], /--zookeeper: expected HOST:PORT.*got "zk1:notaport"/],
    [['--service', 'orders'], /--service: expected --zookeeper beside it.*got "orders"/],
    [['--provider', 'zookeeper'], /--provider: expected --zookeeper beside it.*got "zookeeper"/],
    [['--provider', 'etcd'], /--provider: expected store or zookeeper, got "etcd"/],
    [['--zookeeper', 'zk1:2181', '--zookeeper-auth', 'digest:secret'], /--zookeeper-auth: expected digest:USER:PASSWORD/],
  ])('are refused with 64 and one line: %j', async (options, message) => {
    const task = runCli(['run', ...options, '--', 'true']);
    expect((await task.exit).code).toBe(64);
    expect(task.stderr()).toMatch(message);
    expect(task.stderr().trim().split('\n')).toHaveLength(1);
    expect(task.stderr()).not.toContain('secret');
  });
});
