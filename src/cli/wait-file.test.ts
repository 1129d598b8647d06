import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../test/support/virtual-clock.js';
import { ConfigError } from '../errors.js';
import { WaitFile } from './wait-file.js';

let folder: string;
let problems: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-wait-'));
  problems = [];
});

afterEach(() => rmSync(folder, { recursive: true }));

const open = (name = 'ready') => WaitFile.open(join(folder, name), seededRandom(1), (problem) => problems.push(problem));

describe('the wait file', () => {
  it('is there with all that it says, for everybody to read whatever the umask, and then gone', async () => {
    const umask = process.umask(0o077);
    try {
      const file = await open();
      await file.write('facts\n');
      expect(readFileSync(join(folder, 'ready'), 'utf8')).toBe('facts\n');
      expect(statSync(join(folder, 'ready')).mode & 0o777).toBe(0o644);
      expect(readdirSync(folder)).toEqual(['ready']);
      await file.remove();
      await file.remove();
      expect(readdirSync(folder)).toEqual([]);
    } finally {
      process.umask(umask);
    }
  });

  it('is never seen half-written', async () => {
    const file = await open();
    const long = 'x'.repeat(1_000_000);
    let done = false;
    const writing = file.write(long).then(() => {
      done = true;
    });
    const seen = new Set<number>();
    while (!done) {
      if (readdirSync(folder).includes('ready')) seen.add(statSync(join(folder, 'ready')).size);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writing;
    seen.delete(long.length);
    expect([...seen]).toEqual([]);
  });

  it('is what was asked for last, however fast the wishes change', async () => {
    const file = await open();
    void file.write('1');
    void file.remove();
    await file.write('2');
    expect(readFileSync(join(folder, 'ready'), 'utf8')).toBe('2');
    void file.write('3');
    await file.remove();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is not left over from an earlier process', async () => {
    writeFileSync(join(folder, 'ready'), 'old');
    await open();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('leaves alone what a link in its place points to', async () => {
    writeFileSync(join(folder, 'precious'), 'kept');
    symlinkSync(join(folder, 'precious'), join(folder, 'ready'));
    const file = await open();
    await file.write('facts');
    expect(readFileSync(join(folder, 'precious'), 'utf8')).toBe('kept');
  });

  it('tells when it cannot be written, leaves nothing behind, and goes on', async () => {
    const file = await open();
    mkdirSync(join(folder, 'ready'));
    await file.write('facts');
    expect(problems).toEqual([expect.stringMatching(/^.*ready could not be written: /)]);
    expect(readdirSync(folder)).toEqual(['ready']);
    rmSync(join(folder, 'ready'), { recursive: true });
    await file.write('facts');
    expect(readFileSync(join(folder, 'ready'), 'utf8')).toBe('facts');
  });

  it.each([
    ['none/ready', /none is no folder/],
    ['.', /this is a folder/],
    ['file/ready', /file is no folder/],
  ])('is refused at %s', async (name, expected) => {
    writeFileSync(join(folder, 'file'), '');
    await expect(open(name)).rejects.toThrow(ConfigError);
    await expect(open(name)).rejects.toThrow(expected);
  });

  it('is refused without a name', async () => {
    await expect(WaitFile.open('', seededRandom(1), () => undefined)).rejects.toThrow(/--wait-file: expected .*it is empty/);
  });
});
