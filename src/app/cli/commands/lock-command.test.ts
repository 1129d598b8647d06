import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { runCommandLine } from './command-line.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-lock-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function lock(...args: string[]) {
  const io = capturedIo();
  const code = await runCommandLine(['lock', ...args], { ...io, env: { PATH: '/nowhere' } }, '1.2.3');
  return { code, complaints: io.complaints() };
}

describe('nodelease lock', () => {
  it.each([
    ['a name that no lock can have', ['a/b', '--', 'true'], 'name of the lock: expected 1 to 200 letters'],
    ['no name', ['--', 'true'], "missing required argument 'name'"],
    ['a second name', ['a', 'b', '--', 'true'], 'too many arguments'],
    [
      'no command',
      ['nightly'],
      'no command given: expected one after --, as in "nodelease lock nightly -- ./report.sh"',
    ],
    ['no command behind --', ['nightly', '--'], 'no command given: expected one after --'],
    [
      '--try with --timeout',
      ['nightly', '--try', '--timeout', '1s', '--', 'true'],
      '--timeout: expected no --try with it',
    ],
    [
      'a negative time',
      ['nightly', '--timeout', '-1s', '--', 'true'],
      '--timeout: expected a time such as 500ms',
    ],
    [
      'a time that ends after a year',
      ['nightly', '--timeout', '9000h', '--', 'true'],
      '--timeout: expected at most 8760h',
    ],
    ['an option of run', ['nightly', '--nodes', '3', '--', 'true'], "unknown option '--nodes'"],
    ['a store that is none', ['nightly', '--store', 'ftp://x', '--', 'true'], '--store: expected s3://'],
  ])('answers %s with one line and 64', async (_, args, complaint) => {
    const { code, complaints } = await lock(...args);
    expect(code).toBe(64);
    expect(complaints).toContain(`nodelease: ${complaint}`);
    expect(complaints.trim().split('\n')).toHaveLength(1);
  });

  it('ends with 127 or 126 when the command cannot be started, and takes no lock for it', async () => {
    const plain = join(folder, 'plain');
    writeFileSync(plain, '');
    const store = ['--store', `file:${folder}/store`];
    expect((await lock('nightly', ...store, '--', '/no/such/command')).code).toBe(127);
    expect((await lock('nightly', ...store, '--', 'nocommand')).code).toBe(127);
    expect((await lock('nightly', ...store, '--', plain)).code).toBe(126);
    expect(readdirSync(folder)).toEqual(['plain']);
  });
});
