import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { openStore } from '../../../core/store/open-store.js';
import { acquireLock } from '../../../node/locks/store-lock.js';
import { runCommandLine } from '../commands/command-line.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-locks-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function row(): Promise<string> {
  const io = capturedIo();
  await runCommandLine(['status', '--locks', '--store', `file:${folder}`], io, '1.2.3');
  return io.answer().split('\n')[1] ?? '';
}

it('a lock whose last tick cannot be read is still shown with its state and holder', async () => {
  const store = await openStore(`file:${folder}/locks/nightly`, { requestTimeoutMs: 5_000 });
  const lock = await acquireLock('nightly', { store: `file:${folder}`, taskId: 'web' });
  await store.create('tick.json', '{', {});
  expect(await row()).toMatch(/^nightly +held, tick\.json is not JSON: "\{" +web +1 /);
  await lock.release();
  expect(await row()).toMatch(/^nightly +tick\.json is not JSON: "\{" +1$/);
  const lease = await store.read('0.json');
  await store.replace('0.json', '[', {}, lease?.etag ?? '');
  expect(await row()).toMatch(/^nightly +lease object /);
  await store.close();
});
