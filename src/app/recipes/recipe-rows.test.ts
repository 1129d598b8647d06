import { afterEach, describe, expect, it, vi } from 'vitest';
import { capturedIo } from '../../../test/support/captured-io.js';
import { runInProcess } from '../../../test/support/in-process.js';
import { inVirtualTime } from '../../../test/support/virtual-clock.js';
import { runCommandLine } from '../cli/commands/command-line.js';

/** No server is there, and none is asked. */
const env = { NODELEASE_ZOOKEEPER: '127.0.0.1:1' };

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('the commands of nodelease zk', () => {
  it.each([
    ['a path that is relative', 'lock locks --try -- true', /path: expected an absolute path .* got "locks"/],
    ['no path', 'lock -- true', /missing required argument 'path'/],
    ['the root', 'lock / --try -- true', /it is the root/],
    ['--try with a time-out', 'lock /locks/report --try --timeout 1s -- true', /no --try with it/],
    [
      'a semaphore of 0 leases',
      'semaphore /locks/report --leases 0 -- true',
      /--leases: expected a whole number from 1 to 1000000, got "0"/,
    ],
    ['a semaphore without its size', 'semaphore /locks/report -- true', /expected --leases N/],
    [
      'a read lock that is a write lock',
      'rwlock /locks/report --read --write -- true',
      /expected one of --read and --write/,
    ],
    [
      'neither a read lock nor a write lock',
      'rwlock /locks/report -- true',
      /expected one of --read and --write/,
    ],
    [
      'a lock without a command, and say how to give one',
      'lock /locks/report',
      /^nodelease: no command given: expected one after --, as in "nodelease zk lock \/locks\/report -- \.\/report\.sh" \[USAGE\]\n$/,
    ],
    ['a relative path of a queue', 'queue put work x', /path: expected an absolute path .* got "work"/],
    ['0 items', 'queue take /work -n 0', /--count: expected a whole number from 1/],
    ['a lock path of a simple queue', 'queue take /work --simple --lock-path /l --try', /lockPath/],
    ['a group without its command', 'queue', /see nodelease zk queue --help/],
    ['a command that is none', 'queue peek /work', /unknown command 'peek'/],
    ['an item too many', 'queue put /work a b', /too many arguments/],
    ['a relative barrier', 'barrier wait gate', /path: expected an absolute path/],
    ['the root as a counter', 'counter /', /it is the root/],
    ['a barrier with --try and a time-out', 'barrier wait /gate --try --timeout 1s', /no --try with it/],
    [
      'a step of more than 64 bits',
      'counter /jobs --add 1.5',
      /^nodelease: --add: expected a whole number of 64 bits, .*, got "1.5" \[CONFIG_INVALID\]\n$/,
    ],
  ])('refuse %s in one line, before they connect', async (_, args, complaint) => {
    const { code, answer, complaints } = await runInProcess(['zk', ...args.split(' ')], { env });
    expect({ code, answer }).toEqual({ code: 64, answer: '' });
    expect(complaints).toMatch(/^nodelease: .*\n$/);
    expect(complaints).toMatch(complaint);
  });

  it('say in their help for how long a session outlives its connection', async () => {
    const shown = async (...command: string[]) =>
      (await runInProcess([...command, '--help'])).answer.replace(/\s+/g, ' ');
    expect(await shown('zk', 'lock')).toContain(
      '(1s to 10m; default: 20s) [NODELEASE_ZOOKEEPER_SESSION_TIMEOUT]',
    );
    expect(await shown('discovery', 'ls')).toContain(
      '(1s to 10m; default: 10s) [NODELEASE_ZOOKEEPER_SESSION_TIMEOUT]',
    );
  });

  it.each(['queue take /work', 'barrier wait /gate', 'counter /jobs'])(
    'say after five seconds that there is no ZooKeeper: %s',
    async (args) => {
      const io = { ...capturedIo(), env };
      expect(await inVirtualTime(io.clock, runCommandLine(['zk', ...args.split(' ')], io, '1.2.3'))).toBe(69);
      expect(io.answer()).toBe('');
      expect(io.complaints()).toMatch(/^nodelease: .*127\.0\.0\.1:1.*within 5000 ms.*\n$/);
    },
  );
});
