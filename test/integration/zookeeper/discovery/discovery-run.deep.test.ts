import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { initCluster, loggedAt, startTask } from '../../../support/fleet.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { runCli } from '../../../support/processes.js';
import {
  CLUSTER,
  killFamily,
  LEASE,
  nodePath,
  type RunScene,
  runScene,
  SESSION_MS,
} from './discovery-run-support.js';

let scene: RunScene;

beforeEach(async () => {
  scene = await runScene('s3');
});
afterEach(() => scene.end());

describe('tasks on S3 and ZooKeeper', () => {
  beforeEach(() => initCluster(scene.store, ...CLUSTER));

  it('are ready at once after a release', async () => {
    const { start } = scene;
    await start('one').started();
    const two = start('two');
    await two.started();
    two.kill('SIGTERM');
    await two.exit;
    const again = start('again');
    expect(await again.started()).toEqual({ id: 1, version: 2 });
    await again.waitForOutput(/"why":"released".*"msg":"ready"/);
  });

  it('are ready after the time-out when another one does not know of them, which the log says', async () => {
    const { store, start } = scene;
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
    const waited =
      loggedAt(successor.log(), /ready after the time-out/) - loggedAt(successor.log(), /acquired node id/);
    expect(waited).toBeGreaterThan(2_900);
  });
});

describe('a task whose ZooKeeper is away', () => {
  it('keeps its node id through a cut that outlasts its session, and is in the tree again', async () => {
    const { connect, reader, start } = scene;
    const { proxy, through } = await throughProxy(connect);
    const task = start('task', ['--zookeeper', through]);
    await task.started();
    await reader.until(nodePath(0), (seen) => seen !== undefined);
    proxy.cut();
    await reader.until(nodePath(0), (seen) => seen === undefined);
    await task.waitForOutput(/discovery: degraded/);
    proxy.heal();
    await reader.until(nodePath(0), (seen) => seen?.version === 1);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
  });

  it('fails with 69 and says why when it is required, and takes no node id for nothing', async () => {
    const task = scene.start('task', ['--zookeeper', '127.0.0.1:1', '--zookeeper-required']);
    expect((await task.exit).code).toBe(69);
    expect(task.log().at(-1)?.msg).toMatch(/127\.0\.0\.1:1.*ECONNREFUSED/);
    expect(await scene.store.keys()).toEqual([]);
  });
});

describe('a task with a node id that comes only from ZooKeeper', () => {
  const allocate = (connect: string, ...script: string[]) =>
    runCli([
      'run',
      '--provider',
      'zookeeper',
      '--zookeeper',
      connect,
      '--zookeeper-session-timeout',
      `${2 * SESSION_MS}ms`,
      '--',
      ...script,
    ]);

  it('is stopped before the servers give its id away when it is cut off', async () => {
    const { proxy, through } = await throughProxy(scene.connect);
    const task = allocate(
      through,
      'sh',
      '-c',
      'echo "id $NODE_ID"; while :; do date +%s%3N; sleep 0.02; done',
    );
    await task.waitForOutput(/^id 0$/m);
    proxy.cut();
    await scene.reader.until(nodePath(0), (seen) => seen === undefined);
    const goneAt = Date.now();
    expect(await task.exit).toEqual({ code: 76, signal: null });
    expect(Number(/(\d{13})\n[^\d]*$/.exec(task.stdout())?.[1])).toBeLessThan(goneAt);
  });

  it('fails with 69 when no server answers, and says why', async () => {
    const task = allocate('127.0.0.1:1', 'true');
    expect((await task.exit).code).toBe(69);
    expect(task.stderr()).toMatch(/127\.0\.0\.1:1.*ECONNREFUSED/);
  });
});
