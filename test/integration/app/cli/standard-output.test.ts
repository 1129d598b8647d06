import { afterEach, describe, expect, it } from 'vitest';
import { cliFile, killAll, runProcess } from '../../../support/processes.js';
import { newFolder, removeFolders } from './run-support.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

/** A script of a shell, in which `cli` is the command line. */
function shell(script: string) {
  return runProcess('sh', ['-c', `cli() { "${process.execPath}" "${cliFile}" "$@"; }; ${script}`], {
    cwd: newFolder(),
    // A new cluster is warned of.
    env: { NODELEASE_STORE: 'file:leases', NODELEASE_LOG_LEVEL: 'error' },
  });
}

const FULL = 'nodelease: standard output: ENOSPC: no space left on device, write\n';

describe('an answer that cannot be written', () => {
  it.each([
    ['nodelease --version', 'cli --version'],
    ['nodelease status', 'cli status'],
    ['nodelease decode', 'cli decode 117655968153600008 --width 8'],
    // It would go on for ever otherwise.
    ['nodelease status --watch', 'cli status --watch'],
    ['nodelease id', 'cli id'],
    ['nodelease id', 'cli id -n 1000000000'],
  ])('ends %s with 74, and one line that says why', async (_, command) => {
    const script = shell(`${command} > /dev/full`);
    expect(await script.exit).toEqual({ code: 74, signal: null });
    expect(script.stderr()).toBe(FULL);
  });

  it('does not hide what else went wrong', async () => {
    const script = shell('cli status --store file:/dev/null/leases > /dev/full');
    expect((await script.exit).code).toBe(69);
  });
});

describe('a reader that has read enough', () => {
  it('ends an answer quietly with 141, as of other programs', async () => {
    const script = shell('mkfifo p; : < p & exec 3> p; wait; cli --help >&3; echo "code $?" >&2');
    expect((await script.exit).code).toBe(0);
    expect(script.stderr()).toBe('code 141\n');
  });

  it('ends status --watch, as JSON and as a table, without a complaint', async () => {
    const scripts = ['cli status --watch --json', 'cli status --watch'].map((command) =>
      shell(`{ ${command}; echo "code $?" >&2; } | head -n 1`),
    );
    for (const script of scripts) {
      expect((await script.exit).code).toBe(0);
      expect(script.stderr()).toBe('code 0\n');
    }
  });
});
