import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { packageRoot } from '../../../../test/support/package-root.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { acquireLock } from '../../../node/locks/store-lock.js';
import { holdNode } from '../../../node/runtime/hold-node.js';
import { EXIT_CODES } from '../../kit/io.js';
import { runCommandLine } from './command-line.js';
// Loaded before: while a library is loaded, the refusal of the connection may come later than the virtual
// time-out.
import '../../../zookeeper/client/connection/library-session.js';

const folder = mkdtempSync(join(tmpdir(), 'nodelease-codes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NOWHERE = '127.0.0.1:1';

/** The store of a folder with this file in it; without a name it is the file that is the store. */
function storeWith(name: string, file?: string): string {
  const at = join(folder, name);
  if (file === undefined) writeFileSync(at, '');
  else {
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, file), 'not JSON');
  }
  return `--store=file:${at}`;
}

async function run(args: readonly string[], clock = new VirtualClock()) {
  const io = { ...capturedIo(undefined, clock), env: { PATH: '/bin:/usr/bin' } };
  const ended = runCommandLine(args, io, '1.2.3');
  // Time passes for servers that do not answer, and not for a folder.
  const exitCode = await (args.join(' ').includes(NOWHERE) ? inVirtualTime(clock, ended) : ended);
  return { exitCode, last: io.complaints().trimEnd().split('\n').at(-1) ?? '' };
}

const ALONE = ['--provider', 'zookeeper', '--zookeeper', NOWHERE];
const EMPTY = `--store=file:${join(folder, 'empty')}`;
symlinkSync('/no/such/folder', join(folder, 'a-link'));
const GONE = `--store=file:${join(folder, 'a-link')}`;
const FILE = storeWith('a-file');
const DAMAGED = storeWith('damaged', 'cluster.json');
const FOREIGN = storeWith('foreign', 'node-ids-initialized');

describe('the failure table', () => {
  it('has a heading for each code that can end a command or be an error’s, and for no other', () => {
    const table = readFileSync(join(packageRoot, 'docs/operate/failure-table.md'), 'utf8');
    const headings = [...table.matchAll(/^### ([A-Z_]+)$/gm)].map(([, code = '']) => code);
    expect(headings.sort()).toEqual(Object.keys(EXIT_CODES).sort());
  });
});

describe('a command that fails ends with its code', () => {
  it.each<[keyof typeof EXIT_CODES, string[]]>([
    ['USAGE', []],
    ['USAGE', ['walk']],
    ['USAGE', ['run', '--store=memory:']],
    ['CONFIG_INVALID', ['run', '--nodes=0', '--', 'true']],
    ['CONFIG_INVALID', ['run', '--store=memory:', '--data-dir=/no/such', '--', 'true']],
    ['COMMAND_NOT_FOUND', ['run', '--', 'no-such-command']],
    ['COMMAND_NOT_EXECUTABLE', ['lock', 'nightly', '--', '/']],
    ['STORE_UNREACHABLE', ['status', `--store=etcd://${NOWHERE}/leases`]],
    ['STORE_UNREACHABLE', ['doctor', `--store=etcd://${NOWHERE}/leases`]],
    ['STORE_MISSING', ['init', GONE]],
    ['STORE_REJECTED', ['status', FILE]],
    ['STORE_REJECTED', ['doctor', FILE]],
    ['CLUSTER_MISSING', ['history', EMPTY]],
    ['CLUSTER_MISSING', ['scale', '3', EMPTY]],
    ['CLUSTER_MISSING', ['init', '--repair', EMPTY]],
    ['CLUSTER_DAMAGED', ['status', DAMAGED]],
    ['CLUSTER_FOREIGN', ['init', FOREIGN]],
    ['ZOOKEEPER_FAILED', ['status', ...ALONE]],
  ])('%s: %j', async (code, args) => {
    const { exitCode, last } = await run(args);
    expect(last).toMatch(new RegExp(`^nodelease: .* \\[${code}\\]$`));
    expect(exitCode).toBe(EXIT_CODES[code]);
  });

  it.each<[keyof typeof EXIT_CODES, string[]]>([
    ['STORE_UNREACHABLE', ['run', `--store=etcd://${NOWHERE}/leases`]],
    ['STORE_UNREACHABLE', ['lock', 'nightly', `--store=etcd://${NOWHERE}/leases`]],
    ['STORE_MISSING', ['run', GONE]],
    ['STORE_REJECTED', ['run', FILE]],
    ['CLUSTER_MISSING', ['run', '--cluster=existing', EMPTY]],
    ['CLUSTER_DAMAGED', ['run', DAMAGED]],
    ['CLUSTER_FOREIGN', ['run', FOREIGN]],
    ['ZOOKEEPER_FAILED', ['run', ...ALONE]],
    ['ZOOKEEPER_FAILED', ['zk', 'lock', '/nightly', '--zookeeper', NOWHERE]],
  ])('%s, a field of the JSON line: %j', async (code, args) => {
    const { exitCode, last } = await run([...args, '--', 'true']);
    expect(JSON.parse(last)).toMatchObject({ level: 60, exitCode, code });
    expect(exitCode).toBe(EXIT_CODES[code]);
  });

  it('ACQUIRE_TIMEOUT, and for a lock WAIT_TIMEOUT', async () => {
    const clock = new VirtualClock();
    const own = { store: EMPTY.slice('--store='.length), taskId: 'task', clock, random: seededRandom(1) };
    const node = await holdNode({ ...own, provider: 'store', nodes: 1 });
    const nightly = await acquireLock('nightly', own);
    const lines = [
      ['ACQUIRE_TIMEOUT', ['run', '--acquire-timeout=0s']],
      ['WAIT_TIMEOUT', ['lock', 'nightly', '--try']],
    ] as const;
    for (const [code, args] of lines) {
      const { exitCode, last } = await run([...args, EMPTY, '--', 'true'], clock);
      expect(JSON.parse(last)).toMatchObject({ exitCode: 75, code });
      expect(exitCode).toBe(75);
    }
    await node.end({ workEnded: true });
    await nightly.release();
  });
});
