import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { codeOf, Damage, readFollowing, readRegular } from './files.js';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-files-'));
  path = join(folder, 'file');
});
afterEach(() => rmSync(folder, { recursive: true }));

const make = (content: string) => writeFileSync(path, content);

describe('a file of another user', () => {
  it('is read where it is as large as allowed, or empty', async () => {
    make('x'.repeat(10));
    expect((await readRegular(path, 10))?.toString()).toBe('x'.repeat(10));
    make('');
    expect((await readRegular(path, 10))?.toString()).toBe('');
    expect(await readRegular(join(folder, 'absent'), 10)).toBeUndefined();
  });

  it.each([
    ['a file of one byte more', 'file of more than 10 bytes', () => make('x'.repeat(11))],
    [
      'a sparse file of 8 TiB',
      'file of more than 10 bytes',
      () => {
        make('');
        truncateSync(path, 8 * 2 ** 40);
      },
    ],
    ['a pipe', 'FIFO', () => execFileSync('mkfifo', [path])],
    ['a link to a device without an end', 'symbolic link', () => symlinkSync('/dev/zero', path)],
  ] as const)('costs neither time nor memory where it is %s', async (_, what, arrange) => {
    arrange();
    await expect(readRegular(path, 10)).rejects.toMatchObject({ path, what });
  });

  it('may be reached by a link where the user has named it, and is no device then either', async () => {
    make('token');
    const link = join(folder, 'link');
    symlinkSync(path, link);
    expect((await readFollowing(link, 10)).toString()).toBe('token');
    await expect(readFollowing('/dev/zero', 10)).rejects.toBeInstanceOf(Damage);
  });
});

describe('the code of a failed file operation', () => {
  it('is found in the errors of another realm, as Node’s are in a test of Jest', () => {
    expect(codeOf(runInNewContext("Object.assign(new Error(), { code: 'ENOENT', syscall: 'open' })"))).toBe(
      'ENOENT',
    );
  });

  it.each([undefined, null, 'ENOENT', new Error(), { code: 'EPROTO' }])('is none in %s', (error) => {
    expect(codeOf(error)).toBeUndefined();
  });
});
