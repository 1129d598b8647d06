import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { killAll, runCli } from '../../../support/processes.js';
import { isAlive, newFolder, removeFolders } from '../../app/cli/run-support.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

it('a command that runs for a lock is not touched by its guard for many durations, as long as the lock is renewed', async () => {
  const script = `trap '' TERM; echo pid $$; while :; do sleep 0.05; done`;
  const run = runCli([
    'lock',
    'nightly',
    '--store',
    `file:${newFolder()}`,
    '--duration',
    '2s',
    '--',
    '/bin/sh',
    '-c',
    script,
  ]);
  const pid = Number((await run.waitForOutput(/pid (\d+)\n/))[1]);
  await sleep(5_000);
  expect(isAlive(pid)).toBe(true);
  process.kill(pid, 'SIGKILL');
  expect((await run.exit).code).toBe(137);
});
