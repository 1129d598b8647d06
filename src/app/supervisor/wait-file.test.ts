import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { ConfigError } from '../../core/base/errors.js';
import { WaitFile } from './wait-file.js';

let folder: string;
let problems: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-wait-'));
  problems = [];
});

afterEach(() => rmSync(folder, { recursive: true }));

/** As a sidecar does it that listens. */
const open = async (name = 'ready') => {
  const file = await WaitFile.open(join(folder, name), seededRandom(1), (problem) => problems.push(problem));
  await file.removeLeftOver();
  return file;
};

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

  it('leaves every other file as it is where somebody else may write to the folder and puts links in its place', async () => {
    const secret = join(folder, 'secret');
    writeFileSync(secret, 'of another user', { mode: 0o600 });
    const shared = join(folder, 'shared');
    mkdirSync(shared);
    let isOver = false;
    const attacker = (async () => {
      for (; !isOver; await new Promise((resolve) => setImmediate(resolve))) {
        for (const draft of readdirSync(shared).filter((name) => name !== 'ready')) {
          rmSync(join(shared, draft), { force: true });
          symlinkSync(secret, join(shared, draft));
        }
      }
    })();
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const file = await WaitFile.open(join(shared, 'ready'), seededRandom(attempt), () => {}).catch(
        () => undefined,
      );
      await file?.write('facts\n');
    }
    isOver = true;
    await attacker;
    expect(statSync(secret).mode & 0o777).toBe(0o600);
    expect(readFileSync(secret, 'utf8')).toBe('of another user');
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

  it.each([
    ['', 'nothing'],
    ['{"nodeId":9}\n', 'a node id'],
  ])('is not left over from an earlier process: %j, which says %s', async (left) => {
    writeFileSync(join(folder, 'ready'), left);
    await open();
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(['old', '[]', '{"id":9}', 'null', '"nodeId"', `{"nodeId":"${'x'.repeat(70_000)}"}`])(
    'is refused, and what is there left alone, where that is something else: %.20s',
    async (precious) => {
      writeFileSync(join(folder, 'ready'), precious);
      await expect(open()).rejects.toThrow(/--wait-file: expected .*something else is there, and left alone/);
      expect([readdirSync(folder), readFileSync(join(folder, 'ready'), 'utf8')]).toEqual([
        ['ready'],
        precious,
      ]);
    },
  );

  it('stays where it is for as long as another process may have put it there', async () => {
    writeFileSync(join(folder, 'ready'), '{"nodeId":9}\n');
    const file = await WaitFile.open(join(folder, 'ready'), seededRandom(1), () => undefined);
    expect(readdirSync(folder)).toEqual(['ready']);
    writeFileSync(join(folder, 'ready'), 'precious');
    await expect(file.removeLeftOver()).rejects.toThrow(/something else is there, and left alone/);
    expect(readdirSync(folder)).toEqual(['ready']);
  });

  it('is removed only where it is still what this process wrote: another one may have the same path', async () => {
    const [first, second] = [await open(), await open()];
    await second.remove();
    await first.write('first');
    expect(await second.remove()).toBe(true);
    expect(readFileSync(join(folder, 'ready'), 'utf8')).toBe('first');
    await second.write('other');
    expect(await first.remove()).toBe(true);
    expect(readFileSync(join(folder, 'ready'), 'utf8')).toBe('other');
    expect(problems).toEqual([]);
  });

  it('leaves alone what a link in its place points to', async () => {
    writeFileSync(join(folder, 'precious'), 'kept');
    symlinkSync(join(folder, 'precious'), join(folder, 'ready'));
    const file = await open();
    expect(readdirSync(folder)).toEqual(['precious']);
    await file.write('facts');
    expect(readFileSync(join(folder, 'precious'), 'utf8')).toBe('kept');
  });

  it('reports when it cannot be written, leaves nothing behind, and continues', async () => {
    const file = await open();
    mkdirSync(join(folder, 'ready'));
    expect(await file.write('facts')).toBe(false);
    expect(problems).toEqual([expect.stringMatching(/^.*ready could not be written: /)]);
    expect(readdirSync(folder)).toEqual(['ready']);
    rmSync(join(folder, 'ready'), { recursive: true });
    expect(await file.write('facts')).toBe(true);
    expect(readFileSync(join(folder, 'ready'), 'utf8')).toBe('facts');
  });

  it.each([
    ['none/ready', /ENOENT/],
    ['ready/', /ENOENT/],
    ['folder', /something else is there/],
    ['folder/', /something else is there/],
    ['file/ready', /ENOTDIR/],
    ['/proc/ready', /ENOENT|EACCES|EPERM/],
  ])('is refused at %s, and nothing is left of the attempt', async (name, expected) => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'folder'));
    const opening = () =>
      WaitFile.open(name.startsWith('/') ? name : `${folder}/${name}`, seededRandom(1), () => undefined);
    await expect(opening()).rejects.toThrow(ConfigError);
    await expect(opening()).rejects.toThrow(expected);
    expect([readdirSync(folder).sort(), readdirSync(join(folder, 'folder'))]).toEqual([
      ['file', 'folder'],
      [],
    ]);
  });

  it('is refused without a name', async () => {
    await expect(WaitFile.open('', seededRandom(1), () => undefined)).rejects.toThrow(
      /--wait-file: expected .*it is empty/,
    );
  });
});
