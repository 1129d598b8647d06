import { once } from 'node:events';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Settings } from '../../../../src/app/settings/settings.js';
import { runHeldCommand } from '../../../../src/app/supervisor/supervised-command.js';
import { systemClock } from '../../../../src/core/base/system.js';
import { capturedIo } from '../../../support/captured-io.js';
import { evict, type FleetStore, newStore, removeStores, statusOf } from '../../../support/fleet.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import {
  container,
  followStates,
  health,
  healthUntil,
  SETTINGS,
  startAgent,
  stopAgents,
  TASK,
  urlOf,
  waitFileAt,
} from './ecs-support.js';
import { newFolder, outside, removeFolders } from './run-support.js';

/** What ECS waits between SIGTERM and SIGKILL by default. */
const STOP_TIMEOUT_MS = 30_000;
/** Where a loss is to be found by the next renewal, after two seconds. */
const RENEWING = ['--duration', '6s'];

afterEach(async () => {
  await killAll();
  stopAgents();
  await removeStores();
  removeFolders();
});

/** Another task, which holds the only node id until it is asked to end. */
async function holder(store: FleetStore, ...options: string[]): Promise<TestProcess> {
  const run = runCli(
    ['run', ...store.options, ...SETTINGS, ...options, '--', 'sh', '-c', 'echo held; exec sleep 300'],
    { env: store.env },
  );
  await run.waitForOutput(/held/);
  return run;
}

/** What `nodelease status` says of the only node id. */
const nodeIn = async (store: FleetStore) => (await statusOf(store)).nodes[0];

describe('a container on ECS with nodelease as its process 1', () => {
  it('has a health check that fails until there is a node id, holds as long as it is held, and fails as soon as it is lost', async () => {
    const store = await newStore('s3');
    // On S3 a waiting task looks more rarely for what is held for longer.
    const first = await holder(store, ...RENEWING);
    const task = await container(store, [
      'run',
      ...RENEWING,
      '--',
      'sh',
      '-c',
      'echo begun $NODE_ID; exec sleep 300',
    ]);
    const url = await urlOf(task);
    await task.waitForOutput(/no node id is free/);
    expect(await health(url)).toMatchObject({
      code: 1,
      facts: { state: 'acquiring', reason: 'no node id is free: waiting' },
    });
    expect((await health(url, '--live')).code).toBe(0);
    first.kill('SIGTERM');
    const held = await healthUntil(url, ({ code }) => code === 0);
    expect(held.facts).toMatchObject({ state: 'held', nodeId: 0, version: 2, taskId: TASK });
    expect(await nodeIn(store)).toMatchObject({ state: 'held', version: 2, taskId: TASK });
    await task.waitForOutput(/begun 0/);
    await evict(store);
    expect((await healthUntil(url, ({ code }) => code !== 0)).code).toBe(1);
    expect((await task.exit).code, task.stderr()).toBe(76);
    expect((await health(url)).code).toBe(1);
  });

  it('gives the node id back within the stop time-out after SIGTERM, and takes no work from the first moment on', async () => {
    const store = await newStore('file');
    const mayEnd = join(newFolder(), 'may-end');
    const script = `trap 'echo ending; until [ -e ${mayEnd} ]; do sleep 0.05; done; exit 0' TERM; echo begun; while :; do sleep 0.05; done`;
    const task = await container(store, ['run', '--', 'sh', '-c', script]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/);
    await healthUntil(url, ({ code }) => code === 0);
    const live = followStates(url, '/livez');
    const ready = followStates(url, '/readyz');
    await Promise.all([live.saw('200 held'), ready.saw('200 held')]);
    const begun = performance.now();
    process.kill(outside(task), 'SIGTERM');
    await task.waitForOutput(/ending/);
    expect(await health(url)).toMatchObject({ code: 1, facts: { state: 'stopping', live: true } });
    await Promise.all([live.saw('200 stopping'), ready.saw('503 stopping')]);
    writeFileSync(mayEnd, '');
    expect((await task.exit).code, task.stderr()).toBe(0);
    expect(performance.now() - begun).toBeLessThan(STOP_TIMEOUT_MS);
    expect(await nodeIn(store)).toMatchObject({ state: 'released', version: 1 });
    expect((await live.all).slice(0, 2)).toEqual(['200 held', '200 stopping']);
    expect((await ready.all).slice(0, 2)).toEqual(['200 held', '503 stopping']);
  });
});

describe('a sidecar on ECS', () => {
  const serve = (store: FleetStore, file: string, ...options: string[]) =>
    container(store, ['serve', '--wait-file', file, ...options]);

  it('reports the node id to the other containers, and ends with 76 at once when it is lost, so that the task goes down', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'ready.json');
    const sidecar = await serve(store, file, ...RENEWING);
    const url = await urlOf(sidecar);
    const { facts } = await healthUntil(url, ({ code }) => code === 0);
    expect(facts).toMatchObject({ state: 'held', nodeId: 0, version: 1, taskId: TASK });
    await sidecar.waitForOutput(/^http.*\n/);
    expect(sidecar.stdout()).toBe(`${url}\n`);
    const lease = await fetch(`${url}/lease`);
    expect([lease.status, await lease.json()]).toMatchObject([200, { nodeId: 0, version: 1, taskId: TASK }]);
    expect(await waitFileAt(file)).toMatchObject({ nodeId: 0, version: 1, taskId: TASK, url });
    expect(statSync(file).mode & 0o777).toBe(0o644);
    await evict(store);
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(76);
    // The next renewal has found it so, and not the deadline.
    expect(sidecar.stderr()).toMatch(/"reason":"taken"/);
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
    await sidecar.waitForOutput(/no node id is free/);
    expect(existsSync(file)).toBe(false);
    const lease = await fetch(`${url}/lease`);
    expect([lease.status, await lease.json()]).toMatchObject([503, { state: 'acquiring' }]);
    first.kill('SIGTERM');
    await healthUntil(url, ({ code }) => code === 0);
    expect(await waitFileAt(file)).toMatchObject({ nodeId: 0, version: 2 });
    const begun = performance.now();
    process.kill(outside(sidecar), 'SIGTERM');
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(0);
    expect(performance.now() - begun).toBeLessThan(STOP_TIMEOUT_MS);
    expect(existsSync(file)).toBe(false);
    expect(await nodeIn(store)).toMatchObject({ state: 'released', version: 2 });
  });

  it('ends in order while it waits for a node id', async () => {
    const store = await newStore('file');
    await holder(store);
    const sidecar = await serve(store, join(newFolder(), 'ready.json'));
    await sidecar.waitForOutput(/no node id is free/);
    process.kill(outside(sidecar), 'SIGTERM');
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(0);
  });
});

describe('the protection of an ECS task from scale-in', () => {
  /** Says over HTTP that the program is at work, or not any more. */
  const busy = async (url: string, method: 'POST' | 'DELETE', headers = {}) => {
    const answer = await fetch(`${url}/busy`, { method, headers });
    return [answer.status, ((await answer.json()) as { protected?: boolean }).protected];
  };

  it('is there while the program says that it is busy, and removed when it ends while it still is', async () => {
    const agent = await startAgent();
    const store = await newStore('file');
    const script =
      "trap 'exit 0' TERM; echo at $NODELEASE_URL, [$NODELEASE_ECS_PROTECT]; while :; do sleep 0.05; done";
    const task = await container(store, ['run', '--ecs-protect', 'busy', '--', 'sh', '-c', script], agent);
    const [, url = ''] = await task.waitForOutput(/at (http\S+), \[\]/);
    expect(agent.asked).toEqual([]);
    expect(await busy(url, 'POST', { origin: 'https://evil.example' })).toEqual([403, undefined]);
    expect(await busy(url, 'POST')).toEqual([200, true]);
    expect(await busy(url, 'DELETE')).toEqual([200, false]);
    expect(await busy(url, 'POST')).toEqual([200, true]);
    process.kill(outside(task), 'SIGTERM');
    expect((await task.exit).code, task.stderr()).toBe(0);
    expect(agent.asked).toEqual(['on 15', 'off', 'on 15', 'off']);
    expect(await nodeIn(store)).toMatchObject({ state: 'released' });
  });

  it('is there from the acquisition to the end of a run, and without it where the agent refuses it', async () => {
    for (const mood of ['answers', 'refuses', 'fails'] as const) {
      const agent = await startAgent();
      agent.mood = mood;
      const store = await newStore('file');
      const task = await container(
        store,
        ['run', '--ecs-protect', 'held', '--', 'sh', '-c', 'echo held; exec sleep 300'],
        agent,
      );
      await task.waitForOutput(/held/);
      await agent.askedTimes(1);
      if (mood !== 'answers')
        await task.waitForOutput(/protection of this task from scale-in is not set: \{/);
      expect((await health(await urlOf(task))).code).toBe(0);
      process.kill(outside(task), 'SIGTERM');
      await task.exit;
      expect(agent.asked).toEqual(['on 15', 'off']);
      expect(await nodeIn(store)).toMatchObject({ state: 'released', version: 1 });
    }
  });

  it('is asked for by one request at a time, also where a command runs again: the removal for its first run could come last', async () => {
    let open = 0;
    let most = 0;
    // Does not answer.
    const agent = createServer((_, response) => {
      open += 1;
      most = Math.max(most, open);
      response.on('close', () => {
        open -= 1;
      });
    }).listen(0, '127.0.0.1');
    await once(agent, 'listening');
    const { port } = agent.address() as AddressInfo;
    const env = { PATH: process.env.PATH, ECS_AGENT_URI: `http://127.0.0.1:${port}` };
    const io = { ...capturedIo(), clock: systemClock, env };
    const settings = { ecsProtect: 'held', logLevel: 'silent' } as Settings;
    const { signal } = new AbortController();
    const hold = {
      token: 1n,
      signal,
      deadline: Infinity,
      isValid: () => true,
      release: async () => undefined,
    };
    let runs = 0;
    try {
      const code = await runHeldCommand(
        { options: {}, settings, io },
        {
          command: ['true'],
          acquire: async () => hold,
          variables: () => ({}),
          end: async () => {
            runs += 1;
            return runs < 2;
          },
        },
      );
      expect([code, runs, most]).toEqual([0, 2, 1]);
    } finally {
      agent.closeAllConnections();
      agent.close();
    }
  });

  it('is there while the command of a lock runs', async () => {
    const agent = await startAgent();
    const store = await newStore('file');
    const env = { ...store.env, ...agent.env, NODELEASE_ECS_PROTECT: 'held' };
    const run = runCli(['lock', 'nightly', ...store.options, '--', 'sh', '-c', 'echo token $LOCK_TOKEN'], {
      env,
    });
    expect((await run.exit).code, run.stderr()).toBe(0);
    expect(run.stdout()).toBe('token 1\n');
    expect(agent.asked).toEqual(['on 15', 'off']);
  });
});
