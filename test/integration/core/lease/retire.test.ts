import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import {
  type FleetStore,
  initCluster,
  loggedAt,
  newStore,
  removeStores,
  startTask,
} from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { health, urlOf } from '../../app/cli/ecs-support.js';
import { isAlive, newFolder, removeFolders } from '../../app/cli/run-support.js';

/** How long anything may take on a loaded machine, in milliseconds. */
const PATIENCE_MS = 60_000;
const LEASE = ['--nodes', '2', '--duration', '10s'];
const HTTP = ['--http', '127.0.0.1:0'];

const cleanUps: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await killAll();
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  await removeStores();
  removeFolders();
});

/** Holds node id 0 in this process, and is not to be disturbed by what becomes of the others. */
async function holdFirst(store: FleetStore): Promise<{ readonly isUndisturbed: () => Promise<boolean> }> {
  await initCluster(store, ...LEASE);
  const [, url = ''] = store.options;
  const first = await acquire({ store: url, taskId: 'first', onLost: 'signal' });
  cleanUps.push(() => first.release());
  expect(first.id).toBe(0);
  return {
    isUndisturbed: async () => {
      const { taskId, version } = await lease(store, 0);
      return first.isValid() && taskId === 'first' && version === 1 && !first.retiring.aborted;
    },
  };
}

const lease = async (store: FleetStore, id: number) =>
  JSON.parse((await store.read(`${id}.json`)) ?? '{}') as Record<string, unknown>;

/** Takes node id 1 out of use; the cluster keeps 0. */
const scaleDown = (store: FleetStore, ...options: string[]) =>
  runInProcess(['scale', '1', ...options, ...store.options], { env: store.env });

const exitOf = async (run: TestProcess) => (await run.exit).code;

const serve = (store: FleetStore, ...options: string[]) =>
  runCli(['serve', ...store.options, ...LEASE, ...HTTP, ...options], { env: store.env });

/** Asks a run or a sidecar until its answer is right; such an answer stays until the test acts. */
const facts = async (url: string, expected: object) => {
  await expect
    .poll(async () => (await answerOf(`${url}/readyz`))[1], { timeout: PATIENCE_MS })
    .toMatchObject(expected);
  return (await answerOf(`${url}/readyz`))[1] as Record<string, unknown>;
};

const until = (isSo: () => boolean) => expect.poll(isSo, { timeout: PATIENCE_MS }).toBe(true);

const answerOf = async (url: string) => {
  const response = await fetch(url);
  return [response.status, await response.json()];
};

describe('a run whose node id is retired', () => {
  it('asks its command to end, gives the id back when it has ended, and has its exit code; no task gets the id any more', async () => {
    const store = await newStore('file');
    const first = await holdFirst(store);
    const file = join(newFolder(), 'go');
    const script = `trap 'echo asked; until [ -e ${file} ]; do sleep 0.1; done; exit 7' TERM; while :; do sleep 0.1; done`;
    const task = startTask(store, [...LEASE, ...HTTP, '--task-id', 'second'], script);
    expect(await task.started(PATIENCE_MS)).toEqual({ id: 1, version: 1 });
    const scaling = scaleDown(store);
    await task.waitForOutput(/^asked$/m, PATIENCE_MS);
    expect(await health(await urlOf(task))).toMatchObject({
      code: 1,
      facts: { state: 'stopping', live: true, retiring: true },
    });
    expect((await lease(store, 1)).taskId).toBe('second');
    writeFileSync(file, '');
    expect(await exitOf(task), task.stderr()).toBe(7);
    const log = task.log();
    expect(log.find(({ fields }) => fields.event === 'retiring')?.fields).toMatchObject({ size: 1 });
    expect(loggedAt(log, /^asking the command to stop/)).toBeLessThanOrEqual(
      loggedAt(log, /^lease released$/),
    );
    const { code, answer, complaints } = await scaling;
    expect({ code, complaints }).toMatchObject({ code: 0 });
    expect(answer).toMatch(/ has 1 node id now, and had 2: 1 lease object retired\n$/);
    expect(complaints).toMatch(
      /\nnodelease: waiting for 1 holder to give a node id back, and for .* at the most: 1 \(second\)\n/,
    );
    expect(await lease(store, 1)).toMatchObject({ version: 1 });
    const surplus = startTask(store, [...LEASE, '--task-id', 'surplus', '--acquire-timeout', '0s']);
    expect(await exitOf(surplus)).toBe(75);
    expect(surplus.stderr()).toContain('its only node id did not become free in time');
    expect(await first.isUndisturbed()).toBe(true);
    expect((await store.keys()).filter((key) => /^\d+\.json$/.test(key))).toEqual(['0.json', '1.json']);
  });

  it('lets its command go on with --on-retire drain, not ready any more, and kills it when the id is taken away by force', async () => {
    const store = await newStore('file');
    const first = await holdFirst(store);
    const task = startTask(
      store,
      [...LEASE, ...HTTP, '--on-retire', 'drain'],
      "trap 'echo asked' TERM; while :; do sleep 0.1; done",
    );
    await task.started(PATIENCE_MS);
    const url = await urlOf(task);
    await facts(url, { ready: true });
    const patient = runCli(['scale', '1', ...store.options], { env: store.env });
    const { reason } = await facts(url, {
      state: 'held',
      live: true,
      ready: false,
      retiring: true,
      nodeId: 1,
    });
    expect(reason).toMatch(/^node id 1 .* is being retired: the cluster has 1 node id now$/);
    expect(await answerOf(`${url}/lease`)).toMatchObject([200, { retiring: true }]);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^nodelease_lease_retiring 1$/m);
    expect(metrics).toMatch(/^nodelease_ready 0$/m);
    patient.kill('SIGINT');
    expect(await exitOf(patient)).toBe(130);
    const { code, answer } = await scaleDown(store, '--drain-timeout', '0s');
    expect(code).toBe(0);
    expect(answer).toMatch(/1 lease object retired\ntaken from their holders by force: 1 \(.*\)\n$/);
    expect(await exitOf(task), task.stderr()).toBe(76);
    expect(task.stdout()).not.toContain('asked');
    expect(await lease(store, 1)).toMatchObject({ version: 2 });
    expect(await first.isUndisturbed()).toBe(true);
  });

  it('has the exit code of a command that drains until it has nothing to do any more', async () => {
    const store = await newStore('file');
    await holdFirst(store);
    const file = join(newFolder(), 'go');
    const script = `trap 'echo asked' TERM; until [ -e ${file} ]; do sleep 0.1; done; exit 3`;
    const task = startTask(store, [...LEASE, '--on-retire', 'drain'], script);
    await task.started(PATIENCE_MS);
    const scaling = scaleDown(store);
    await task.waitForOutput(/the command goes on until it ends by itself/, PATIENCE_MS);
    expect(isAlive(task.pid)).toBe(true);
    writeFileSync(file, '');
    expect(await exitOf(task)).toBe(3);
    expect(task.stdout()).not.toContain('asked');
    expect(await scaling).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/had 2: 1 lease object retired\n$/),
    });
    expect(await lease(store, 1)).toMatchObject({ version: 1 });
  });

  it('sends no client here any more, and says who holds the node id until its release', async () => {
    const store = await newStore('file');
    await holdFirst(store);
    const connect = `${inject('zookeeper').connect}${uniqueChroot('retire')}`;
    const reader = new TreeReader(connect);
    cleanUps.push(() => reader.close());
    const options = [
      '--zookeeper',
      connect,
      '--service',
      'orders',
      '--address',
      '127.0.0.1',
      '--port',
      '8080',
    ];
    const task = startTask(store, [...LEASE, '--on-retire', 'drain', '--task-id', 'second', ...options]);
    await task.started(PATIENCE_MS);
    const service = '/discovery/servicetypes/orders/1';
    await reader.until(service, (seen) => seen !== undefined, PATIENCE_MS);
    // ZooKeeper shows no node that has an id without a lease.
    const scaling = scaleDown(store, '--zookeeper', connect);
    await reader.until(service, (seen) => seen === undefined, PATIENCE_MS);
    expect(await reader.all('/discovery/nodes')).toMatchObject(
      new Map([['/discovery/nodes/00/09', { taskId: 'second', version: 1 }]]),
    );
    await task.waitForOutput(/discovery: the service is taken out/, PATIENCE_MS);
    task.kill('SIGTERM');
    await task.exit;
    expect(await scaling).toMatchObject({ code: 0 });
    await reader.until('/discovery/nodes/00/09', (seen) => seen === undefined, PATIENCE_MS);
  });
});

describe('a sidecar whose node id is retired', () => {
  it('goes on holding it, not ready any more and without its wait file, until it is asked to end', async () => {
    const store = await newStore('file');
    const first = await holdFirst(store);
    const file = join(newFolder(), 'node.json');
    const sidecar = serve(store, '--wait-file', file, '--task-id', 'second');
    const url = await urlOf(sidecar);
    await facts(url, { ready: true });
    await until(() => existsSync(file));
    const scaling = scaleDown(store);
    await facts(url, { ready: false, retiring: true });
    await until(() => !existsSync(file));
    expect(await answerOf(`${url}/readyz`)).toMatchObject([
      503,
      { state: 'held', live: true, ready: false, retiring: true },
    ]);
    expect(await answerOf(`${url}/lease`)).toMatchObject([
      200,
      { nodeId: 1, retiring: true, validForMs: expect.any(Number) },
    ]);
    sidecar.kill('SIGTERM');
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(0);
    expect(await scaling).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/had 2: 1 lease object retired\n$/),
    });
    expect(await lease(store, 1)).toMatchObject({ version: 1 });
    expect(await first.isUndisturbed()).toBe(true);
  });

  it('ends with 76 with --on-retire stop, and leaves the id to expire: its users have not been asked to end yet', async () => {
    const store = await newStore('file');
    await holdFirst(store);
    const file = join(newFolder(), 'node.json');
    const options = ['--on-retire', 'stop', '--task-id', 'second', '--shards', '4'];
    const sidecar = serve(store, '--wait-file', file, ...options);
    const url = await urlOf(sidecar);
    await facts(url, { ready: true });
    await until(() => existsSync(file));
    const shardEvents = await fetch(`${url}/shards/events`);
    const scaling = scaleDown(store);
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(76);
    expect(existsSync(file)).toBe(false);
    expect(await shardEvents.text()).toMatch(/^event: end\ndata: {"reason":"expires"}$/m);
    expect(sidecar.stderr()).toMatch(/ending: the node id is being retired, and left to expire/);
    expect(sidecar.stderr()).not.toMatch(/lease released|"event":"lost"/);
    // As after every end without a release: retired once it has expired, at a version that refuses the
    // holder's last writes.
    const { code, answer } = await scaling;
    expect(code).toBe(0);
    expect(answer).toMatch(/had 2: 1 lease object retired\n$/);
    expect(await lease(store, 1)).toMatchObject({ version: 2 });
  });

  it('ends with 76 like after every loss where the id is taken away before it was asked to end', async () => {
    const store = await newStore('file');
    await holdFirst(store);
    const sidecar = serve(store, '--task-id', 'second');
    await facts(await urlOf(sidecar), { ready: true });
    expect(await scaleDown(store, '--drain-timeout', '0s')).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/\ntaken from their holders by force: 1 \(second\)\n$/),
    });
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(76);
    expect(sidecar.stderr()).toMatch(/"event":"lost"/);
  });
});
