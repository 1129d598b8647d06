import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli } from '../../../support/processes.js';
import { startAgent, stopAgents } from './ecs-support.js';

let folder: string;
let store: readonly string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-named-'));
  store = ['--store', `file:${folder}`];
});
afterEach(async () => {
  await killAll();
  stopAgents();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** A command in a task of that ECS service. */
const inService = async (service: string, args: readonly string[]) => {
  const { env } = await startAgent(service);
  const run = runCli(args, { env });
  const { code } = await run.exit;
  return { code, stderr: run.stderr() };
};

it('refuses the tasks of another ECS service in the same prefix, and no lock that both use', async () => {
  const run = (...more: string[]) => ['run', ...store, '--nodes', '3', ...more, '--', 'true'];
  const lock = ['lock', 'nightly', ...store, '--', 'true'];
  expect(await inService('orders', run())).toMatchObject({ code: 0 });
  const other = await inService('billing', run());
  expect(other.code).toBe(69);
  expect(other.stderr).toContain('the cluster is that of orders, and this task is of billing: ');
  for (const service of ['orders', 'billing'])
    expect(await inService(service, lock)).toMatchObject({ code: 0 });
  // As for a blue one and a green one.
  expect(await inService('billing', run('--cluster-name', 'orders'))).toMatchObject({ code: 0 });
});

it('is set by init, and shown by status and doctor', async () => {
  const init = (name: string) => runInProcess(['init', ...store, '--nodes', '3', '--cluster-name', name]);
  const settings = 'name orders, duration 15s, grace 1s';
  expect(await init('orders')).toMatchObject({ code: 0, answer: expect.stringContaining(settings) });
  expect(await init('billing')).toMatchObject({
    code: 69,
    complaints: expect.stringContaining('of billing'),
  });
  expect((await runInProcess(['status', ...store])).answer).toContain(settings);
  expect((await runInProcess(['doctor', ...store])).answer).toContain(settings);
  const { answer } = await runInProcess(['status', ...store, '--json']);
  expect(JSON.parse(answer)).toMatchObject({ cluster: { name: 'orders', size: 3 } });
});
