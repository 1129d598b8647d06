import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../src/core/base/system.js';
import { FileLeaseStore } from '../../src/core/store/file/file-lease-store.js';

// Real processes on one folder. Every operation of one of them, in every order, is in
// src/core/store/file/interleavings.test.ts.

const worker = fileURLToPath(new URL('./file-worker.mjs', import.meta.url));
const begun = JSON.stringify({ sum: 0, by: {} });

let directory: string;
let store: FileLeaseStore;
let running: ChildProcess[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelease-processes-'));
  store = new FileLeaseStore({ directory, clock: systemClock, random: systemRandom });
  running = [];
});

afterEach(async () => {
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(running.map(ended));
  await store.close();
  await rm(directory, { recursive: true, force: true });
});

/** A worker, and the number of writes that it has reported. */
function start(...args: string[]): { child: ChildProcess; written: () => number } {
  const child = spawn(process.execPath, [worker, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(child);
  let written = 0;
  child.stdout?.on('data', (dots: Buffer) => {
    written += dots.length;
  });
  return { child, written: () => written };
}

async function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

async function tally(): Promise<{ sum: number; by: Record<string, number> }> {
  return JSON.parse((await store.read('0.json'))?.body ?? '');
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = systemClock.monotonic() + 20_000;
  while (!condition()) {
    if (systemClock.monotonic() > deadline) throw new Error(`not within 20 s: ${what}`);
    await systemClock.sleep(2);
  }
}

describe('processes that share a folder', () => {
  it('lose no update when 50 of them hammer one key', async () => {
    await store.create('0.json', begun, {});
    const workers = Array.from(
      { length: 50 },
      (_, index) => start('count', directory, `w${index}`, '20').child,
    );
    expect(new Set(await Promise.all(workers.map(ended)))).toEqual(new Set([0]));
    const { sum, by } = await tally();
    expect(sum).toBe(1000);
    expect(new Set(Object.values(by))).toEqual(new Set([20]));
    // The last two generations, the fixed first one, and what was in the making when the last writer looked.
    expect((await readdir(join(directory, '.cas', '0.json'))).length).toBeLessThan(60);
  });

  it('lose updates under the same load when they merely look, write a second file and rename it', async () => {
    await writeFile(join(directory, '0.json'), begun);
    const workers = Array.from(
      { length: 10 },
      (_, index) => start('count', directory, `w${index}`, '20', 'naive').child,
    );
    await Promise.all(workers.map(ended));
    expect((await tally()).sum).toBeLessThan(200);
  });

  it('find a whole object and write at once when others are killed at any moment', async () => {
    for (let round = 0; round < 25; round += 1) {
      const workers = [start('scribble', directory), start('scribble', directory)];
      await until(() => workers.every(({ written }) => written() > 0), 'a write of every process');
      await systemClock.sleep(systemRandom.next() * 25);
      for (const { child } of workers) child.kill('SIGKILL');
      await Promise.all(workers.map(({ child }) => ended(child)));

      const found = await store.read('0.json');
      if (found === undefined) throw new Error('the object is gone');
      const [digest, text] = [found.body.slice(0, 64), found.body.slice(65)];
      expect(createHash('sha256').update(text).digest('hex')).toBe(digest);
      expect(found.metadata.turn).toBe(text.split(' ')[1]);
      expect(found.etag).toMatch(/^[0-9]+-[0-9a-f]+$/);
      const asked = systemClock.monotonic();
      expect((await store.replace('0.json', found.body, found.metadata, found.etag)).status).toBe('written');
      expect(systemClock.monotonic() - asked).toBeLessThan(1000);
      expect((await store.list()).objects.map(({ key }) => key)).toEqual(['0.json']);
    }
  });

  it('go on while others are paused, and keep every update when those go on', async () => {
    await store.create('0.json', begun, {});
    const workers = Array.from({ length: 5 }, (_, index) =>
      start('count', directory, `w${index}`, 'Infinity'),
    );
    await until(() => workers.every(({ written }) => written() > 0), 'a write of every process');
    let sumBefore = 0;
    for (let pause = 0; pause < 60; pause += 1) {
      const [paused, ...others] = [...workers].sort(() => systemRandom.next() - 0.5);
      paused?.child.kill('SIGSTOP');
      // From the third write of the others on, the state that the paused one has seen is not even kept any
      // more.
      const total = () => others.reduce((sum, { written }) => sum + written(), 0);
      const goal = total() + 1 + (pause % 6);
      await until(() => total() >= goal, 'a write while another process is paused');
      paused?.child.kill('SIGCONT');
      await systemClock.sleep(systemRandom.next() * 6);
      const { sum } = await tally();
      expect(sum).toBeGreaterThanOrEqual(sumBefore);
      sumBefore = sum;
    }
    const closed = workers.map(({ child }) => once(child, 'close'));
    for (const { child } of workers) child.kill('SIGTERM');
    expect(await Promise.all(closed)).toEqual(workers.map(() => [0, null]));
    const { sum, by } = await tally();
    expect(by).toEqual(Object.fromEntries(workers.map(({ written }, index) => [`w${index}`, written()])));
    expect(sum).toBe(Object.values(by).reduce((total, one) => total + one, 0));
  });
});
