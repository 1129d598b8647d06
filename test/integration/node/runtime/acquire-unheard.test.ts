import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';

const programAt = (name: string) =>
  fileURLToPath(new URL(`../../../fixtures/programs/${name}.mjs`, import.meta.url));

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-unheard-'));
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

function start(taskId: string, program = 'by-environment'): TestProcess {
  const env = { NODELEASE_STORE: `file:${folder}`, NODELEASE_NODES: '1', NODELEASE_TASK_ID: taskId };
  return runProcess(process.execPath, [programAt(program)], { env: { ...env, PIPE: `${folder}/pipe` } });
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

it('is killed after a loss while a request to a disk waits, for which process.exit() would wait, too', async () => {
  execFileSync('mkfifo', [`${folder}/pipe`]);
  const holder = start('holder', 'waits-for-a-pipe');
  await holder.waitForOutput(/id 0 version 1/);
  await runInProcess(['release', '0', '--force', '--store', `file:${folder}`]);
  expect(await holder.exit).toEqual({ code: null, signal: 'SIGKILL' });
});
