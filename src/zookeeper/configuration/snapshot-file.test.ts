import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { writeSnapshot } from './snapshot-file.js';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-snapshot-'));
  path = join(folder, 'copy.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (at: string) =>
  writeSnapshot(path, { of: 'shop', at, revisions: {}, values: new Map() }, seededRandom(1));

it('replaces an older snapshot, and an empty file', async () => {
  writeFileSync(path, '');
  await write('first');
  await write('second');
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ of: 'shop', at: 'second' });
});

it.each(['db.pool-size=20\n', '{"db":"postgres"}'])('leaves a file alone that is none: %j', async (text) => {
  writeFileSync(path, text);
  await expect(write('now')).rejects.toThrow('copy.json: no snapshot of a configuration, and left alone');
  expect(readFileSync(path, 'utf8')).toBe(text);
});

it('leaves alone what is no file, and does not wait for a pipe', async () => {
  execFileSync('mkfifo', [path]);
  await expect(write('now')).rejects.toThrow('copy.json: FIFO');
});
