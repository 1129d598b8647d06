import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { killAll, runProcess } from '../../support/processes.js';

const DURATION_MS = 2_000;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-worker-'));
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true });
});

function program(name: string, ...args: readonly string[]) {
  const file = fileURLToPath(new URL(`../../fixtures/programs/${name}.mjs`, import.meta.url));
  return runProcess(process.execPath, [file, ...args]);
}

it.each([
  ['and it cannot be told', []],
  ['and it blocks again after it was told', ['heard']],
])('a process whose main thread is blocked is killed before the deadline when the lease is lost %s', async (_, mode) => {
  const process = program('blocked-and-cut-off', `${folder}/store`, String(DURATION_MS), ...mode);
  const begun = Date.now();
  expect(await process.exit).toEqual({ code: null, signal: 'SIGKILL' });
  const last = Number(/(\d{13})\n$/.exec(process.stdout())?.[1]);
  expect(last - begun).toBeGreaterThan(DURATION_MS / 2);
  const renewedAtTheLatest = Number(/^(\d{13})$/m.exec(process.stdout())?.[1]);
  expect(last).toBeLessThan(renewedAtTheLatest + DURATION_MS);
});
