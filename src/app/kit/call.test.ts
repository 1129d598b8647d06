import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../test/support/captured-io.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { holdNode } from '../../node/runtime/hold-node.js';
import { runCommandLine } from '../cli/commands/command-line.js';
// Loaded before: while a library is loaded, the refusal of the connection may come later than the virtual
// time-out.
import '../../zookeeper/client/connection/library-session.js';

/** A port that takes no connections: the system refuses them at once. */
const NOWHERE = '127.0.0.1:1';
const ALONE = ['--provider', 'zookeeper', '--zookeeper', NOWHERE];

async function run(...args: string[]) {
  const io = capturedIo();
  const code = await inVirtualTime(io.clock, runCommandLine(args, io, '1.2.3'));
  return { code, stdout: io.answer(), stderr: io.complaints() };
}

describe('where ZooKeeper cannot be reached', () => {
  it.each([
    [['status', ...ALONE]],
    [['status', '--watch', ...ALONE]],
    [['release', '0', '--force', ...ALONE]],
    [['init', ...ALONE]],
  ])('%j ends with 69 and one line that says why', async (args) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
    expect(stderr).toMatch(
      /^nodelease: zookeeper 127\.0\.0\.1:1: .*no connection within 5000 ms.*ECONNREFUSED.*\n$/,
    );
  });

  it.each([
    ['gives out the node ids', ALONE],
    ['is required', ['--store', 'memory:', '--zookeeper', NOWHERE, '--zookeeper-required']],
  ] as const)('a run ends with 69 where it %s', async (_, settings) => {
    const { code } = await run('run', ...settings, '--log-level', 'silent', '--', process.execPath);
    expect(code).toBe(69);
  });

  it.each([
    ['gives out the node ids', { provider: 'zookeeper', required: false, withinMs: 8_000 }],
    ['is required', { provider: 'store', required: true, withinMs: 10_000 }],
  ] as const)(
    'no node id is taken for nothing where it %s, and the error says why',
    async (_, { provider, required, withinMs }) => {
      const folder = mkdtempSync(join(tmpdir(), 'nodelease-away-'));
      const clock = new VirtualClock();
      const zookeeper = { connect: NOWHERE, required };
      const held = holdNode({
        provider,
        store: `file:${folder}`,
        zookeeper,
        taskId: 'task',
        clock,
        random: seededRandom(1),
      });
      try {
        await expect(inVirtualTime(clock, held)).rejects.toMatchObject({
          fault: 'timeout',
          message: expect.stringContaining(`no connection within ${withinMs} ms`),
          cause: expect.objectContaining({ message: 'connect ECONNREFUSED 127.0.0.1:1' }),
        });
        expect(readdirSync(folder)).toEqual([]);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});

describe('settings of ZooKeeper that cannot be', () => {
  it.each([
    [['--zookeeper', 'zk1:notaport'], /--zookeeper: expected HOST:PORT.*got "zk1:notaport"/],
    [['--service', 'orders'], /--service: expected --zookeeper with it.*got "orders"/],
    [['--provider', 'etcd'], /--provider: expected store or zookeeper, got "etcd"/],
    [
      ['--zookeeper', 'zk1:2181', '--zookeeper-auth', 'digest:secret'],
      /--zookeeper-auth: expected digest:USER:PASSWORD/,
    ],
  ])('are refused with 64 and one line, in which no password is shown: %j', async (options, message) => {
    const { code, stdout, stderr } = await run('run', ...options, '--', 'true');
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).not.toContain('secret');
  });
});
