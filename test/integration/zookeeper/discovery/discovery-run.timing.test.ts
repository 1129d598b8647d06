import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { evict, initCluster, loggedAt } from '../../../support/fleet.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { ZOOKEEPER_TIMES } from '../../../support/servers/zookeeper-process.js';
import { isAlive } from '../../app/cli/run-support.js';
import {
  killFamily,
  nodePath,
  pidsOf,
  type RunScene,
  runScene,
  SESSION_MS,
  signalAll,
} from './discovery-run-support.js';

// How soon a node leaves the discovery tree, and its successor stands there.

/**
 * A dead session ends within its time-out and two ticks of the server; the rest is for a machine that has
 * much else to do.
 */
const GONE_WITHIN_MS = SESSION_MS + 2 * ZOOKEEPER_TIMES.tickTimeMs + 4_000;

let scene: RunScene;

beforeEach(async () => {
  scene = await runScene();
});
afterEach(() => scene.end());

describe('a task', () => {
  it('that is killed is out of the tree when its session has ended', async () => {
    const task = scene.start('task');
    await task.started();
    await scene.reader.until(nodePath(0), (seen) => seen !== undefined);
    const killedAt = performance.now();
    killFamily(task.pid);
    await scene.reader.until(nodePath(0), (seen) => seen === undefined);
    expect(performance.now() - killedAt).toBeLessThan(GONE_WITHIN_MS);
  });

  it('whose node id is taken away is out of the tree within 1 s of the loss', async () => {
    const { reader, start, store } = scene;
    const task = start('task', ['--service', 'orders']);
    await task.started();
    await reader.until('/discovery/servicetypes/orders/0', (seen) => seen !== undefined);
    await evict(store);
    await task.waitForOutput(/is lost/);
    expect(await reader.until(nodePath(0), (seen) => seen === undefined)).toBeLessThan(1_000);
    expect(await reader.at('/discovery/servicetypes/orders/0')).toBeUndefined();
    expect((await task.exit).code).toBe(76);
  });

  it('whose store is out of reach is out of the tree before its deadline', async () => {
    await scene.end();
    scene = await runScene('s3');
    const { reader, start } = scene;
    const { proxy, through } = await throughProxy(inject('s3').endpoint);
    const task = start('task', ['--endpoint', through]);
    await task.started();
    await task.waitForOutput(/lease renewed/);
    await reader.until(nodePath(0), (seen) => seen !== undefined);
    proxy.cut();
    await task.waitForOutput(/is lost/);
    expect(await reader.until(nodePath(0), (seen) => seen === undefined)).toBeLessThan(1_000);
    expect(Date.now()).toBeLessThan(loggedAt(task.log(), /lease renewed/, 'last') + 4_000);
    expect((await task.exit).code).toBe(76);
  });

  it('whose ZooKeeper is silent is not held up by it when it ends', async () => {
    const { connect, reader, start, store } = scene;
    const { proxy, through } = await throughProxy(connect);
    const task = start('task', ['--zookeeper', through]);
    await task.started();
    await reader.until(nodePath(0), (seen) => seen !== undefined);
    const everything = pidsOf(task.pid);
    proxy.stall('both');
    const begun = performance.now();
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    expect(performance.now() - begun).toBeLessThan(4_000);
    expect(everything.filter(isAlive)).toEqual([]);
    expect(JSON.parse((await store.read('0.json')) ?? '')).not.toHaveProperty('taskId');
  });
});

describe('a take-over while the old session is alive', () => {
  it('puts the successor’s znode in place within 2 s, and the old one cannot come back', async () => {
    const { reader, start, store } = scene;
    await initCluster(store, '--nodes', '1', '--duration', '4s');
    const one = ['--nodes', '1'];
    const old = start('old', [...one, '--zookeeper-session-timeout', '30s']);
    await old.started();
    await reader.until(nodePath(0), (seen) => seen?.taskId === 'old');
    const everything = pidsOf(old.pid);
    signalAll(everything, 'SIGSTOP');
    const successor = start('successor', one);
    expect(await successor.started()).toEqual({ id: 0, version: 2 });
    // The old session has 30 s, and has not ended.
    expect(await reader.until(nodePath(0), (seen) => seen?.taskId === 'successor')).toBeLessThan(2_000);
    const stat = async () => (await reader.zookeeper.read(nodePath(0)))?.stat;
    const before = await stat();
    signalAll(everything, 'SIGCONT');
    expect((await old.exit).code).toBe(76);
    // Neither written nor replaced meanwhile.
    expect(await stat()).toEqual(before);
    expect(await reader.at(nodePath(0))).toMatchObject({ taskId: 'successor' });
  });
});
