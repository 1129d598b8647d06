import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { evict, type FleetStore, newStore, removeStores, statusOf } from '../../support/fleet.js';
import { stopProxies, throughProxy } from '../../support/network/proxies.js';
import { ProcessHandle } from '../../support/process-handle.js';
import { cliFile, killAll, runCli, type TestProcess } from '../../support/processes.js';
import { uniqueChroot } from '../../support/zookeeper.js';
import { ecsMetadata, followStates, health, healthUntil, stopMetadata, urlOf } from './ecs-support.js';
import { asProcess1, newFolder, outside, removeFolders } from './run-support.js';

const TASK = '158d1c8083dd49d6b527399fd6414f5c';
/** What ECS waits between SIGTERM and SIGKILL unless it is told otherwise. */
const STOP_TIMEOUT_MS = 30_000;
const SETTINGS = ['--nodes', '1', '--duration', '3s', '--grace', '500ms'];

afterEach(async () => {
  await killAll();
  stopMetadata();
  await stopProxies();
  await removeStores();
  removeFolders();
});

/** A container of an ECS task: nodelease is its process 1, and the agent tells it of the task. */
async function container(store: FleetStore, args: readonly string[]): Promise<TestProcess> {
  const env = { ...store.env, ECS_CONTAINER_METADATA_URI_V4: await ecsMetadata(TASK) };
  return asProcess1([cliFile, args[0] ?? '', ...store.options, ...SETTINGS, '--http', '127.0.0.1:0', ...args.slice(1)], { env });
}

/** Another task, which holds the only node id until it is told to end. */
async function holder(store: FleetStore): Promise<TestProcess> {
  const run = runCli(['run', ...store.options, ...SETTINGS, '--', 'sh', '-c', 'echo held; exec sleep 300'], { env: store.env });
  await run.waitForOutput(/held/, 30_000);
  return run;
}

/** What `nodelease status` says of the only node id. */
const nodeIn = async (store: FleetStore) => (await statusOf(store)).nodes[0];

describe('a container on ECS with nodelease as its process 1', () => {
  it('has a health check that fails until there is a node id, holds as long as it is held, and fails as soon as it is lost', async () => {
    const store = await newStore('s3');
    const first = await holder(store);
    const task = await container(store, ['run', '--', 'sh', '-c', 'echo begun $NODE_ID; exec sleep 300']);
    const url = await urlOf(task);
    await task.waitForOutput(/no node id is free/, 30_000);
    expect(await health(url)).toMatchObject({ code: 1, facts: { state: 'acquiring', reason: 'no node id is free: waiting' } });
    expect((await health(url, '--live')).code).toBe(0);
    first.kill('SIGTERM');
    const held = await healthUntil(url, ({ code }) => code === 0);
    expect(held.facts).toMatchObject({ state: 'held', nodeId: 0, version: 2, taskId: TASK });
    expect(await nodeIn(store)).toMatchObject({ state: 'held', version: 2, taskId: TASK });
    await task.waitForOutput(/begun 0/, 30_000);
    await evict(store);
    expect((await healthUntil(url, ({ code }) => code !== 0)).code).toBe(1);
    expect((await task.exit).code, task.stderr()).toBe(76);
    expect((await health(url)).code).toBe(1);
  });

  it('gives the node id back within the stop time-out after SIGTERM, and takes no work from the first moment on', async () => {
    const store = await newStore('file');
    const script = "trap 'echo ending; sleep 5; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    const task = await container(store, ['run', '--', 'sh', '-c', script]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/, 30_000);
    await healthUntil(url, ({ code }) => code === 0);
    const live = followStates(url, '/livez');
    const ready = followStates(url, '/readyz');
    await Promise.all([live.first, ready.first]);
    const begun = performance.now();
    process.kill(outside(task), 'SIGTERM');
    await task.waitForOutput(/ending/, 30_000);
    expect(await health(url)).toMatchObject({ code: 1, facts: { state: 'stopping', live: true } });
    expect((await task.exit).code, task.stderr()).toBe(0);
    expect(performance.now() - begun).toBeLessThan(STOP_TIMEOUT_MS);
    expect(await nodeIn(store)).toMatchObject({ state: 'released', version: 1 });
    expect((await live.all).slice(0, 2)).toEqual(['200 held', '200 stopping']);
    expect((await ready.all).slice(0, 2)).toEqual(['200 held', '503 stopping']);
  });

  it('answers that it takes no work until the node id has been given back', async () => {
    const { proxy, through } = await throughProxy(inject('s3').endpoint);
    const store = await newStore('s3', through);
    const script = "trap 'echo ending; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    const task = await container(store, ['run', '--duration', '60s', '--', 'sh', '-c', script]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/, 30_000);
    // The release gets no answer for as long as this lasts, and up to 5 seconds.
    proxy.stall('to-server');
    process.kill(outside(task), 'SIGTERM');
    await task.waitForOutput(/ending/, 30_000);
    const begun = performance.now();
    while (performance.now() - begun < 500) {
      expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ status: 'unavailable', ready: false, live: true });
      await sleep(20);
    }
    proxy.heal({ deliverHeld: true });
    expect((await task.exit).code, task.stderr()).toBe(0);
    await expect(fetch(`${url}/readyz`)).rejects.toThrow();
    expect(await nodeIn(store)).toMatchObject({ state: 'released' });
  });

  it('says that the lease is lost while it ends the command of a store that is out of reach', async () => {
    const { proxy, through } = await throughProxy(inject('s3').endpoint);
    const store = await newStore('s3', through);
    const task = await container(store, ['run', '--', 'sh', '-c', "trap '' TERM; echo begun; while :; do sleep 0.05; done"]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/, 30_000);
    await healthUntil(url, ({ code }) => code === 0);
    proxy.stall('both');
    expect(await followStates(url, '/livez').all).toEqual(['200 held', '503 lost']);
    expect((await task.exit).code, task.stderr()).toBe(76);
  });
});

describe('a sidecar on ECS', () => {
  const serve = (store: FleetStore, file: string, ...options: string[]) => container(store, ['serve', '--wait-file', file, ...options]);

  it('tells the other containers of the node id, and ends with 76 at once when it is lost, so that the task goes down', async () => {
    const store = await newStore('s3');
    const file = join(newFolder(), 'ready.json');
    const sidecar = await serve(store, file);
    const url = await urlOf(sidecar);
    const { facts } = await healthUntil(url, ({ code }) => code === 0);
    expect(facts).toMatchObject({ state: 'held', nodeId: 0, version: 1, taskId: TASK });
    expect(sidecar.stdout()).toBe(`${url}\n`);
    const lease = await fetch(`${url}/lease`);
    expect([lease.status, await lease.json()]).toMatchObject([200, { nodeId: 0, version: 1, taskId: TASK }]);
    expect(readFileSync(file, 'utf8')).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ nodeId: 0, version: 1, taskId: TASK, url });
    expect(statSync(file).mode & 0o777).toBe(0o644);
    await evict(store);
    const begun = performance.now();
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(76);
    // The next renewal, and not the deadline.
    expect(performance.now() - begun).toBeLessThan(2_500);
    expect(existsSync(file)).toBe(false);
    expect((await health(url)).code).toBe(1);
    expect(await nodeIn(store)).toMatchObject({ taskId: null, version: 2 });
  });

  it('has no wait file before there is a node id, whatever an earlier one has left, and gives the node id back on SIGTERM', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'ready.json');
    writeFileSync(file, '{"nodeId":9}\n');
    const first = await holder(store);
    const sidecar = await serve(store, file);
    const url = await urlOf(sidecar);
    await sidecar.waitForOutput(/no node id is free/, 30_000);
    expect(existsSync(file)).toBe(false);
    const lease = await fetch(`${url}/lease`);
    expect([lease.status, await lease.json()]).toMatchObject([503, { state: 'acquiring' }]);
    first.kill('SIGTERM');
    await healthUntil(url, ({ code }) => code === 0);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ nodeId: 0, version: 2 });
    const begun = performance.now();
    process.kill(outside(sidecar), 'SIGTERM');
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(0);
    expect(performance.now() - begun).toBeLessThan(STOP_TIMEOUT_MS);
    expect(existsSync(file)).toBe(false);
    expect(await nodeIn(store)).toMatchObject({ state: 'released', version: 2 });
  });

  it('has no wait file either while the others do not know of a take-over yet', async () => {
    const store = await newStore('file');
    const options = [...store.options, '--nodes', '2', '--duration', '3s', '--grace', '500ms'];
    const start = () => runCli(['run', ...options, '--', 'sh', '-c', 'echo held; exec sleep 300']);
    // One that knows nothing of others, since it has no ZooKeeper, and one that dies without releasing.
    await start().waitForOutput(/held/, 30_000);
    const victim = start();
    await victim.waitForOutput(/held/, 30_000);
    victim.kill('SIGKILL');
    const file = join(newFolder(), 'ready.json');
    const zookeeper = ['--zookeeper', `${inject('zookeeper').connect}${uniqueChroot('sidecar')}`, '--ready-timeout', '4s'];
    const sidecar = runCli(['serve', ...options, ...zookeeper, '--http', '127.0.0.1:0', '--wait-file', file]);
    const url = await urlOf(sidecar);
    await sidecar.waitForOutput(/not ready yet: node 0 does not know/, 30_000);
    const answer = await fetch(`${url}/readyz`);
    expect([answer.status, existsSync(file)]).toEqual([503, false]);
    await sidecar.waitForOutput(/ready after the time-out/, 30_000);
    await healthUntil(url, ({ code }) => code === 0);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ nodeId: 1, version: 2, ready: true });
  });

  it('says 503 after a pause that outlasted the lease, takes the wait file away, and ends with 76', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'ready.json');
    const options = [...store.options, ...SETTINGS, '--http', '127.0.0.1:0', '--wait-file', file];
    const sidecar = runCli(['serve', ...options], { env: store.env });
    const url = await urlOf(sidecar);
    await healthUntil(url, ({ code }) => code === 0);
    await new ProcessHandle(sidecar.pid).pause();
    const answer = fetch(`${url}/readyz`);
    await sleep(3_500);
    expect(existsSync(file)).toBe(true);
    sidecar.kill('SIGCONT');
    // It may have ended before it took the request.
    await expect(answer.then(({ status }) => status).catch(() => 503)).resolves.toBe(503);
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(76);
    expect(existsSync(file)).toBe(false);
  });

  it('ends in order while it waits for a node id', async () => {
    const store = await newStore('file');
    await holder(store);
    const sidecar = await serve(store, join(newFolder(), 'ready.json'));
    await sidecar.waitForOutput(/no node id is free/, 30_000);
    process.kill(outside(sidecar), 'SIGTERM');
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(0);
  });
});
