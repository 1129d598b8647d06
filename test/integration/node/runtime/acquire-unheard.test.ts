import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';

const PROGRAM = fileURLToPath(new URL('../../../fixtures/programs/by-environment.mjs', import.meta.url));

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-unheard-'));
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

function start(taskId: string): TestProcess {
  const env = { NODELEASE_STORE: `file:${folder}`, NODELEASE_NODES: '1', NODELEASE_TASK_ID: taskId };
  return runProcess(process.execPath, [PROGRAM], { env });
}

it('says on standard error, in one line each, that it waits for a free id and why it ends, without a listener', async () => {
  const holder = start('holder');
  await holder.waitForOutput(/id 0 version 1/);
  const waiting = start('waiting');
  await waiting.waitForOutput(/free/);
  expect(await runInProcess(['release', '0', '--force', '--store', `file:${folder}`])).toMatchObject({
    code: 0,
  });
  expect(await holder.exit).toMatchObject({ code: 76 });
  expect(holder.stderr()).toMatch(
    /^nodelease: lease of node id 0 \(version 1\) is lost: it has been released at version 2 .*\n$/,
  );
  waiting.kill('SIGKILL');
  await waiting.exit;
  expect(waiting.stderr()).toBe('nodelease: no node id is free: waiting\n');
});
