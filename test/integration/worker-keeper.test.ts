import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { killAll, runProcess } from '../support/processes.js';

const DURATION_MS = 2_000;

function program(name: string, ...args: readonly string[]) {
  const file = fileURLToPath(new URL(`../fixtures/programs/${name}.mjs`, import.meta.url));
  return runProcess(process.execPath, [file, ...args]);
}

describe('a process whose main thread is blocked', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodelease-worker-'));
  });
  afterEach(async () => {
    await killAll();
    await rm(folder, { recursive: true });
  });
  const blocked = (keeper: string) =>
    program('blocked-main-thread', `file:${folder}/store`, keeper, String(DURATION_MS), String(3 * DURATION_MS));

  it('keeps its lease for three durations when a worker thread renews it', async () => {
    const process = blocked('worker');
    expect(await process.exit).toEqual({ code: 0, signal: null });
    expect(process.stdout()).toBe('id 0 version 1\nvalid true\nreleased\n');
  });

  it('loses it when the blocked thread itself should have renewed, and ends with 76', async () => {
    const process = blocked('inline');
    expect(await process.exit).toEqual({ code: 76, signal: null });
    expect(process.stdout()).toBe('id 0 version 1\nvalid false\n');
  });

  it('gives the id back, so that the next process has it at once', async () => {
    expect((await blocked('worker').exit).code).toBe(0);
    const next = program('blocked-main-thread', `file:${folder}/store`, 'worker', String(DURATION_MS), '0');
    await next.waitForOutput(/id 0 version 2/, DURATION_MS);
    expect((await next.exit).code).toBe(0);
  });

  it.each([
    ['and it cannot be told', []],
    ['and it blocks again after it was told', ['heard']],
  ])('is killed before the deadline when the lease is lost %s', async (_, mode) => {
    const process = program('blocked-and-cut-off', `${folder}/store`, String(DURATION_MS), ...mode);
    const begun = Date.now();
    expect(await process.exit).toEqual({ code: null, signal: 'SIGKILL' });
    const last = Number(/(\d{13})\n$/.exec(process.stdout())?.[1]);
    expect(last - begun).toBeGreaterThan(DURATION_MS / 2);
    const renewedAtTheLatest = Number(/^(\d{13})$/m.exec(process.stdout())?.[1]);
    expect(last).toBeLessThan(renewedAtTheLatest + DURATION_MS);
  });
});
