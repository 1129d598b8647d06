import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { newStore, removeStores, statusOf } from '../../../support/fleet.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runCli } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import {
  container,
  followStates,
  healthUntil,
  SETTINGS,
  stopAgents,
  urlOf,
  waitFileAt,
} from './ecs-support.js';
import { newFolder, outside, removeFolders } from './run-support.js';

afterEach(async () => {
  await killAll();
  stopAgents();
  await stopProxies();
  await removeStores();
  removeFolders();
});

describe('a container on ECS with nodelease as its process 1', () => {
  it('says that the lease is lost while it ends the command of a store that is out of reach', async () => {
    const { proxy, through } = await throughProxy(inject('s3').endpoint);
    const store = await newStore('s3', through);
    const task = await container(store, [
      'run',
      '--duration',
      '12s',
      '--',
      'sh',
      '-c',
      "trap '' TERM; echo begun; while :; do sleep 0.05; done",
    ]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/);
    await healthUntil(url, ({ code }) => code === 0);
    // It is lost two seconds before it would end, and the command killed not before another one and a half.
    proxy.stall('both');
    expect(await followStates(url, '/livez').all).toEqual(['200 held', '503 lost']);
    expect((await task.exit).code, task.stderr()).toBe(76);
  });

  it('answers that it takes no work until the node id has been given back', async () => {
    const { proxy, through } = await throughProxy(inject('s3').endpoint);
    const store = await newStore('s3', through);
    const script = "trap 'echo ending; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    const task = await container(store, ['run', '--', 'sh', '-c', script]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/);
    // The release gets no answer for as long as this lasts, and up to 5 seconds.
    proxy.stall('to-server');
    process.kill(outside(task), 'SIGTERM');
    await task.waitForOutput(/ending/);
    await expect.poll(() => proxy.holds).toBe(true);
    for (let asked = 0; asked < 3; asked += 1) {
      const answer = await fetch(`${url}/readyz`, { headers: { connection: 'close' } });
      expect(await answer.json()).toMatchObject({ status: 'unavailable', ready: false, live: true });
    }
    proxy.heal({ deliverHeld: true });
    expect((await task.exit).code, task.stderr()).toBe(0);
    await expect(fetch(`${url}/readyz`)).rejects.toThrow();
    expect((await statusOf(store)).nodes[0]).toMatchObject({ state: 'released' });
  });
});

describe('a sidecar on ECS', () => {
  it('has no wait file either while the others do not know of a take-over yet', async () => {
    const store = await newStore('file');
    const options = [...store.options, '--nodes', '2', '--duration', '3s', '--grace', '500ms'];
    const start = () => runCli(['run', ...options, '--', 'sh', '-c', 'echo held; exec sleep 300']);
    // One that knows nothing of others, since it has no ZooKeeper, and one that dies without releasing.
    await start().waitForOutput(/held/);
    const victim = start();
    await victim.waitForOutput(/held/);
    victim.kill('SIGKILL');
    const file = join(newFolder(), 'ready.json');
    const zookeeper = [
      '--zookeeper',
      `${inject('zookeeper').connect}${uniqueChroot('sidecar')}`,
      '--ready-timeout',
      '6s',
    ];
    const sidecar = runCli(['serve', ...options, ...zookeeper, '--http', '127.0.0.1:0', '--wait-file', file]);
    const url = await urlOf(sidecar);
    await sidecar.waitForOutput(/not ready yet: node 0 does not know/);
    const answer = await fetch(`${url}/readyz`);
    expect([answer.status, existsSync(file)]).toEqual([503, false]);
    await sidecar.waitForOutput(/ready after the time-out/);
    await healthUntil(url, ({ code }) => code === 0);
    expect(await waitFileAt(file)).toMatchObject({ nodeId: 1, version: 2, ready: true });
  });

  it('says 503 after a pause that outlasted the lease, takes the wait file away, and ends with 76', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'ready.json');
    const options = [
      ...store.options,
      ...SETTINGS,
      '--duration',
      '3s',
      '--http',
      '127.0.0.1:0',
      '--wait-file',
      file,
    ];
    const sidecar = runCli(['serve', ...options], { env: store.env });
    const url = await urlOf(sidecar);
    await healthUntil(url, ({ code }) => code === 0);
    await waitFileAt(file);
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
});
