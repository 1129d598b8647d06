import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { makeVersion, manifest, newRoot, removeRoot, writeTree } from '../../../../test/support/data-dirs.js';
import { runCommandLine } from './command-line.js';

let root: string;
beforeEach(() => {
  root = newRoot();
  makeVersion(root, 0, 1, { a: 'old' });
  makeVersion(root, 0, 2, { a: 'older' }, null);
  makeVersion(
    root,
    0,
    3,
    { a: 'new', 'd/b': 'more' },
    '{"initializedAt":1795351126653,"version":3,"initializedFrom":1}',
  );
  makeVersion(root, 0, 4, { a: '' }, null);
  makeVersion(root, 12, 7, {}, 'oops');
});
afterEach(() => removeRoot(root));

async function run(...args: string[]) {
  const io = capturedIo();
  const code = await runCommandLine(['data-dir', ...args], io, '1.2.3');
  return { code, stdout: io.answer(), stderr: io.complaints() };
}

describe('data-dir ls', () => {
  it('shows what there is, the newest version of a node id first, and changes nothing', async () => {
    const before = manifest(root);
    expect(await run('ls', root)).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        'NODEID  VERSION  STATE       FROM  MADE                      RESULT    WHY',
        '     0        4  unfinished                                  kept      its maker may be at work',
        '     0        3  valid          1  2026-11-22T12:38:46.653Z  kept      one of the newest valid ones (2)',
        '     0        2  unfinished                                  obsolete  a newer version is complete',
        '     0        1  valid             2026-11-22T12:38:46.653Z  kept      one of the newest valid ones (2)',
        '    12        7  foreign                                     kept      has a marker directory-initialized.json that is not JSON',
        '',
      ].join('\n'),
    });
    expect(manifest(root)).toEqual(before);
  });

  it('has the same as JSON', async () => {
    const { versions } = JSON.parse((await run('ls', root, '--json')).stdout);
    expect(versions[1]).toEqual({
      ...{ nodeId: 0, version: 3, state: 'valid', from: 1, made: '2026-11-22T12:38:46.653Z' },
      ...{ result: 'kept', why: 'one of the newest valid ones (2)' },
    });
    removeRoot(root);
    root = newRoot();
    expect((await run('ls', root)).stdout).toBe('no data directories\n');
  });
});

describe('data-dir gc', () => {
  it('removes old versions and what is unfinished below a complete one, and says of the others why they stay', async () => {
    expect(await run('gc', root, '--data-retention', '1')).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        'NODEID  VERSION  STATE       FROM  MADE                      RESULT   WHY',
        '     0        4  unfinished                                  kept     its maker may be at work',
        '     0        3  valid          1  2026-11-22T12:38:46.653Z  kept     one of the newest valid ones (1)',
        '     0        2  unfinished                                  removed  a newer version is complete',
        '     0        1  valid             2026-11-22T12:38:46.653Z  removed  not one of the newest valid ones (1)',
        '    12        7  foreign                                     kept     has a marker directory-initialized.json that is not JSON',
        '',
      ].join('\n'),
    });
    expect(manifest(join(root, 'node-0')).flatMap((line) => /^v[^/ ]*(?= )/.exec(line) ?? [])).toEqual([
      'v3',
      'v4',
    ]);
  });

  it('ends with 69 when something cannot be removed, after all the rest', async () => {
    writeTree(root, { 'node-0/v2.removed': 'in the way' });
    const { code, stderr } = await run('gc', root, '--data-retention', '1');
    expect([code, existsSync(join(root, 'node-0/v1'))]).toEqual([69, false]);
    expect(stderr).toMatch(/^nodelease: .*v2 could not be removed: .* \[DATA_DIR_FAILED\]\n$/);
  });
});

it.each([
  ['missing', 'nowhere', 'a directory that is there'],
  ['a file', 'file', 'a directory, not a file'],
  ['below a file', 'file/x', 'a directory that is there'],
  ['a link to itself', 'loop', 'a directory that is there'],
  ['too long a name', 'x'.repeat(256), 'a directory that is there'],
])('a root that is %s gets an error of one line, with 64', async (_, name, expected) => {
  writeTree(root, { file: '' });
  symlinkSync('loop', join(root, 'loop'));
  const at = join(root, name);
  for (const command of ['ls', 'gc']) {
    expect(await run(command, at)).toEqual({
      code: 64,
      stdout: '',
      stderr: `nodelease: ROOT: expected ${expected}, got "${at}" [CONFIG_INVALID]\n`,
    });
  }
});
