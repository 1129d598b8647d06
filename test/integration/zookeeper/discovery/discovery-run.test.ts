import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { evict, initCluster } from '../../../support/fleet.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { runCli, type TestProcess } from '../../../support/processes.js';
import { zkCli } from '../../../support/servers/zookeeper-process.js';
import { LONGEST_SESSION } from '../../../support/zookeeper.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';
import { killFamily, nodePath, type RunScene, runScene } from './discovery-run-support.js';

/** Leases and sessions that a loaded machine keeps. */
const CLUSTER = ['--nodes', '3', '--duration', '12s'];
const SESSION = '6s';
const SETTINGS = [...CLUSTER, '--log-level', 'debug', '--zookeeper-session-timeout', SESSION];

let scene: RunScene;

afterEach(async () => {
  await scene.end();
  removeFolders();
});

/** What stands in a lease of the versions that its holder knows. */
async function knownNodes(nodeId: number): Promise<unknown> {
  return (JSON.parse((await scene.store.read(`${nodeId}.json`)) ?? '{}') as { knownNodesMapping?: unknown })
    .knownNodesMapping;
}

describe('tasks on S3 and ZooKeeper', () => {
  it('stand in the tree under their node ids, for every client to read, and know each other’s versions; a killed one goes, its successor has the higher version, and is ready when all others know it', async () => {
    scene = await runScene('s3', SETTINGS);
    const { connect, reader, store, start } = scene;
    await initCluster(store, ...CLUSTER);
    const pids = [];
    // It is the second one's session whose end is waited for.
    for (const [name, session] of [
      ['one', '30s'],
      ['two', SESSION],
      ['three', '30s'],
    ] as const) {
      const service = ['--service', 'orders', '--address', '127.0.0.1', '--port', '8080'];
      const task = start(name, [...service, '--zookeeper-session-timeout', session]);
      await task.started();
      pids.push(task.pid);
    }
    for (const id of [0, 1, 2]) {
      await reader.until(nodePath(id), (seen) => seen !== undefined);
      await reader.until(`/discovery/servicetypes/orders/${id}`, (seen) => seen !== undefined);
    }
    const nodes = await reader.all('/discovery/nodes');
    expect(
      [...nodes].map(([path, { taskId, nodeId, version, service }]) => [
        path,
        taskId,
        nodeId,
        version,
        service,
      ]),
    ).toEqual([
      ['/discovery/nodes/00/08', 'one', 0, 1, 'orders'],
      ['/discovery/nodes/00/09', 'two', 1, 1, 'orders'],
      ['/discovery/nodes/00/0A', 'three', 2, 1, 'orders'],
    ]);
    // The same by ZooKeeper's own client.
    const [listed, third] = await Promise.all([
      zkCli(connect, ['ls', '-R', '/discovery']),
      zkCli(connect, ['get', '/discovery/nodes/00/0A']),
    ]);
    const paths = listed.split('\n');
    expect(
      paths.filter((path) => /^\/discovery\/(nodes\/00|servicetypes\/orders)\//.test(path)).sort(),
    ).toEqual([
      ...['08', '09', '0A'].map((name) => `/discovery/nodes/00/${name}`),
      ...[0, 1, 2].map((id) => `/discovery/servicetypes/orders/${id}`),
    ]);
    expect(third).toContain('"taskId":"three","nodeId":2,"version":1');
    for (const id of [0, 1, 2]) await expect.poll(() => knownNodes(id)).toEqual({ 0: 1, 1: 1, 2: 1 });

    killFamily(pids[1] as number);
    await reader.until(nodePath(1), (seen) => seen === undefined);
    const successor = start('four');
    expect(await successor.started()).toEqual({ id: 1, version: 2 });
    await reader.until(nodePath(1), (seen) => seen?.version === 2 && seen.taskId === 'four');
    await successor.waitForOutput(/"why":"known".*"msg":"ready"/);
    for (const id of [0, 2]) expect(await knownNodes(id)).toMatchObject({ 1: 2 });
  });
});

describe('a task with discovery', () => {
  beforeEach(async () => {
    scene = await runScene('file', SETTINGS);
  });

  it('leaves the tree when its node id is taken away from it, and ends with 76', async () => {
    const task = scene.start('task', ['--service', 'orders']);
    await task.started();
    await scene.reader.until('/discovery/servicetypes/orders/0', (seen) => seen !== undefined);
    await evict(scene.store);
    await scene.reader.until(nodePath(0), (seen) => seen === undefined);
    expect((await task.exit).code).toBe(76);
    expect([...(await scene.reader.all()).keys()]).toEqual([]);
  });

  it('starts and works without ZooKeeper, says that discovery is degraded, is in the tree on its return, and again after a silence that outlasts its session', async () => {
    const { connect, reader, start } = scene;
    const { proxy, through } = await throughProxy(connect);
    proxy.cut();
    const task = start('task', ['--zookeeper', through]);
    expect(await task.started()).toEqual({ id: 0, version: 1 });
    await task.waitForOutput(/discovery: degraded/);
    await task.waitForOutput(/lease renewed/);
    proxy.heal();
    await reader.until(nodePath(0), (seen) => seen?.taskId === 'task');
    await task.waitForOutput(/discovery: ok/);

    proxy.stall('both');
    await reader.until(nodePath(0), (seen) => seen === undefined);
    await task.waitForOutput(/discovery: ok[\s\S]*discovery: degraded/);
    proxy.heal();
    await reader.until(nodePath(0), (seen) => seen?.version === 1);
    await task.waitForOutput(/discovery: ok[\s\S]*discovery: degraded[\s\S]*discovery: ok/);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
  });

  it('with a fixed node id is in the tree like with a leased one, ready at once', async () => {
    const { connect, reader } = scene;
    const zookeeper = ['--zookeeper', connect, '--zookeeper-session-timeout', LONGEST_SESSION];
    const task = runCli(['run', '--node-id', '5', ...zookeeper, '--task-id', 'fixed', '--', 'sleep', '300']);
    await reader.until(nodePath(5), (seen) => seen?.taskId === 'fixed' && seen.version === 1);
    await task.waitForOutput(/"why":"static".*"msg":"ready"/);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    await reader.until(nodePath(5), (seen) => seen === undefined);
  });
});

describe('a task with a node id that comes only from ZooKeeper', () => {
  beforeEach(async () => {
    scene = await runScene('file', SETTINGS);
  });

  /** A command that prints its id, and then the time for as long as it lives. */
  const HEARTBEAT = 'echo "id $NODE_ID version $NODE_ID_VERSION"; while :; do date +%s%3N; sleep 0.02; done';

  function allocate(through = scene.connect, script = HEARTBEAT, session = '20s') {
    const options = ['--zookeeper', through, '--zookeeper-session-timeout', session, '--service', 'orders'];
    return runCli(['run', '--provider', 'zookeeper', ...options, '--', 'sh', '-c', script]);
  }

  async function given(task: TestProcess): Promise<[number, number]> {
    const [, id, version] = await task.waitForOutput(/^id (\d+) version (\d+)$/m);
    return [Number(id), Number(version)];
  }

  it('has the first free one, and gives it back when its command has ended', async () => {
    const { reader } = scene;
    const one = allocate(scene.connect, HEARTBEAT, LONGEST_SESSION);
    const [first, version] = await given(one);
    const two = allocate();
    const [second, later] = await given(two);
    expect([first, second]).toEqual([0, 1]);
    expect(later).toBeGreaterThan(version);
    await reader.until('/discovery/servicetypes/orders/0', (seen) => seen?.version === version);
    await reader.until('/discovery/servicetypes/orders/1', (seen) => seen?.version === later);
    one.kill('SIGTERM');
    expect((await one.exit).code).toBe(143);
    const standing = async () => [...(await reader.all()).keys()];
    await expect.poll(standing).toEqual([nodePath(1), '/discovery/servicetypes/orders/1']);
    const [again, latest] = await given(allocate());
    expect(again).toBe(0);
    expect(latest).toBeGreaterThan(later);
  });

  it('is stopped before the servers give its id away when it is cut off, also a command that ignores SIGTERM', async () => {
    const { proxy, through } = await throughProxy(scene.connect);
    const task = allocate(through, `trap '' TERM; ${HEARTBEAT}`, SESSION);
    expect((await given(task))[0]).toBe(0);
    proxy.cut();
    await scene.reader.until(nodePath(0), (seen) => seen === undefined);
    const goneAt = Date.now();
    expect(await task.exit).toEqual({ code: 76, signal: null });
    const lastHeartbeat = Number(/(\d{13})\n[^\d]*$/.exec(task.stdout())?.[1]);
    expect(lastHeartbeat).toBeLessThan(goneAt);
  });

  it('keeps its id until a command that takes its time has ended', async () => {
    // A file: what the command writes to its output may reach this process after it has seen that the id is
    // free.
    const ended = join(newFolder(), 'ended');
    const task = allocate(
      scene.connect,
      `trap 'echo ending; sleep 0.5; touch ${ended}; exit 0' TERM; ${HEARTBEAT}`,
    );
    await given(task);
    const wasEnded = scene.reader
      .until(nodePath(0), (seen) => seen === undefined)
      .then(() => existsSync(ended));
    task.kill('SIGTERM');
    await task.waitForOutput(/^ending$/m);
    expect(await wasEnded).toBe(true);
    expect((await task.exit).code).toBe(0);
  });
});
