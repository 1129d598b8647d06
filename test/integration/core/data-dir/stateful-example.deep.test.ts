import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { newRoot, removeRoot } from '../../../support/data-dirs.js';
import { packageRoot } from '../../../support/package-root.js';
import { cliFile, killAll, runProcess, type TestProcess } from '../../../support/processes.js';
import { type ExampleStore, exampleStore } from '../../app/cli/example-support.js';

let root: string;
let store: ExampleStore;
beforeEach(async () => {
  root = newRoot();
  store = await exampleStore(inject('s3'));
});
afterEach(async () => {
  await killAll();
  removeRoot(root);
});

/** examples/stateful-task, as its README starts it. */
const start = () =>
  runProcess(
    process.execPath,
    [cliFile, 'run', '--nodes', '1', '--duration', '4s', '--grace', '100ms', '--', 'python3', 'service.py'],
    {
      cwd: join(packageRoot, 'examples', 'stateful-task'),
      env: { ...store.env, NODELEASE_DATA_DIR: root, NODELEASE_DATA_COPY: 'true' },
    },
  );
const urlOf = async (task: TestProcess) =>
  `http://127.0.0.1:${(await task.waitForOutput(/listens on port (\d+)/))[1]}`;
const ordersAt = async (url: string) =>
  ((await (await fetch(url)).json()) as { orders: [id: number, item: string, version: number][] }).orders;

it('a SQLite file follows the node id: every order that was answered is there after a kill, and after an ordered end', async () => {
  const first = start();
  const url = await urlOf(first);
  const answered: number[] = [];
  // Orders all the while, until the guard has ended the service of the killed one.
  const client = (async () => {
    for (;;) {
      const response = await fetch(url, { method: 'POST', body: 'tea' });
      answered.push(((await response.json()) as { id: number }).id);
    }
  })().catch(() => undefined);
  await expect.poll(() => answered.length).toBeGreaterThan(20);
  first.kill('SIGKILL');
  await client;

  const second = start();
  const orders = await ordersAt(await urlOf(second));
  expect(orders.map(([id]) => id)).toEqual(expect.arrayContaining(answered));
  expect(new Set(orders.map(([, , version]) => version))).toEqual(new Set([1]));
  expect((await fetch(await urlOf(second), { method: 'POST', body: 'milk' })).status).toBe(201);
  second.kill('SIGTERM');
  expect(await second.exit).toEqual({ code: 0, signal: null });

  const third = start();
  expect((await ordersAt(await urlOf(third))).at(-1)).toEqual([orders.length + 1, 'milk', 2]);
  expect(readdirSync(join(root, 'node-0')).sort()).toEqual(['v2', 'v3']);
  const silent = connect(Number(new URL(await urlOf(third)).port), '127.0.0.1');
  // It may be reset.
  silent.on('error', () => undefined);
  await once(silent, 'connect');
  third.kill('SIGTERM');
  expect(await third.exit).toEqual({ code: 0, signal: null });
});
