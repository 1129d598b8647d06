import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { cliFile, killAll, runCli, runProcess } from '../../../support/processes.js';
import { family } from './guard-support.js';
import { childrenOf, newFolder, numbers, removeFolders, shell, untilDead } from './run-support.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

const fixed = ['--node-id', '3'];

describe('nodelease run', () => {
  it('gives the command its node id, version and task id, and standard output to itself', async () => {
    const store = join(newFolder(), 'leases');
    const run = shell(
      'echo $NODE_ID $NODE_ID_VERSION $NODELEASE_TASK_ID',
      '--store',
      `file:${store}`,
      '--task-id',
      'me',
      '--nodes',
      '4',
    );
    expect(await run.exit).toEqual({ code: 0, signal: null });
    expect(run.stdout()).toBe('0 1 me\n');
    expect(JSON.parse(readFileSync(join(store, '0.json'), 'utf8'))).toMatchObject({ version: 1 });
    const again = shell('echo $NODE_ID $NODE_ID_VERSION', '--store', `file:${store}`);
    await again.exit;
    expect(again.stdout()).toBe('0 2\n');
  });

  it('keeps the exit code, and reports a signal that ended the command as 128 plus its number', async () => {
    expect((await shell('exit 5', ...fixed).exit).code).toBe(5);
    expect((await shell('kill -SEGV $$', ...fixed).exit).code).toBe(139);
  });

  it('hands down standard input, and the arguments word for word', async () => {
    const script = 'cat; for word; do echo "[$word]"; done';
    const run = runCli(['run', ...fixed, '--', 'sh', '-c', script, 'sh', '--', '$HOME a  b', ''], {
      stdin: 'from standard input\n',
    });
    await run.exit;
    expect(run.stdout()).toBe('from standard input\n[--]\n[$HOME a  b]\n[]\n');
  });

  it('hands on the signals that it gets', async () => {
    const signals = ['HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'TERM'] as const;
    const traps = signals.map((signal) => `trap 'echo got ${signal}' ${signal}`).join('\n');
    const run = shell(`${traps}\necho ready\nwhile :; do sleep 0.05; done`, ...fixed);
    await run.waitForOutput(/ready/);
    for (const signal of signals) {
      run.kill(`SIG${signal}`);
      await run.waitForOutput(new RegExp(`got ${signal}`));
    }
    expect(run.stdout()).toBe(`ready\n${signals.map((signal) => `got ${signal}\n`).join('')}`);
  });

  it('is interrupted by a signal while it waits for a node id, with 128 plus its number and no version used', async () => {
    const store = `file:${newFolder()}`;
    const holder = shell('echo held; sleep 60', '--store', store, '--nodes', '1');
    await holder.waitForOutput(/held/);
    const waiting = shell('echo never', '--store', store);
    await waiting.waitForOutput(/no node id is free/);
    waiting.kill('SIGTERM');
    expect((await waiting.exit).code).toBe(143);
    expect(waiting.stdout()).toBe('');
  });

  it('ends what the command leaves behind, and only then releases the node id', async () => {
    const folder = newFolder();
    const may = (what: string) => join(folder, `may-${what}`);
    const until = (what: string) => `until [ -e ${may(what)} ]; do sleep 0.05; done`;
    // What is left ends when it may, and the command once what it leaves would have that.
    const left = `trap '${until('end')}; exit' TERM; echo left $$; while :; do sleep 0.05; done`;
    const lease = ['--store', `file:${folder}/leases`, '--nodes', '1'];
    const run = runCli(
      ['run', ...lease, '--', 'sh', '-c', `timeout 1000 sh -c "$LEFT" & ${until('leave')}; exit 4`],
      {
        env: { LEFT: left },
      },
    );
    const [, pid] = await run.waitForOutput(/left (\d+)\n/);
    writeFileSync(may('leave'), '');
    await run.waitForOutput(/left processes behind/);
    expect(JSON.parse(readFileSync(join(folder, 'leases/0.json'), 'utf8'))).toHaveProperty('taskId');
    writeFileSync(may('end'), '');
    expect((await run.exit).code).toBe(4);
    await untilDead([Number(pid)], 0);
    expect(run.stderr()).toMatch(/lease released/);
  });

  it('ends with 75 when no node id becomes free in time, and with 69 when the store cannot be used', async () => {
    const folder = newFolder();
    const holder = shell('echo held; sleep 60', '--store', `file:${folder}`, '--nodes', '1');
    await holder.waitForOutput(/held/);
    expect((await shell('true', '--store', `file:${folder}`, '--acquire-timeout', '0s').exit).code).toBe(75);
    writeFileSync(join(folder, 'plain'), '');
    const unusable = shell('true', '--store', `file:${folder}/plain`);
    expect((await unusable.exit).code).toBe(69);
    expect(unusable.stderr().trim().split('\n')).toEqual([
      expect.stringContaining('node ids come from'),
      expect.stringContaining('"exitCode":69'),
    ]);
    expect(unusable.stderr()).not.toMatch(/ {4}at /);
  });

  it('makes no cluster, and ends with 69, where only an existing one is to be used; says it loudly where it makes one', async () => {
    const folder = newFolder();
    const store = `file:${folder}/orders`;
    const existing = () =>
      runCli(['run', '--store', store, '--', 'true'], { env: { NODELEASE_CLUSTER: 'existing' } });
    const refused = existing();
    expect((await refused.exit).code).toBe(69);
    expect(refused.stderr()).toContain(
      `${store}: there is no cluster, and only an existing one is to be used (cluster: existing)`,
    );
    expect(readdirSync(folder)).toEqual([]);
    const first = shell('true', '--store', store, '--nodes', '20', '--log-level', 'warn');
    expect((await first.exit).code).toBe(0);
    expect(first.stderr()).toMatch(
      new RegExp(`^\\{"level":40,.*"msg":"created a new cluster of 20 node ids in ${store}"\\}\n$`),
    );
    expect((await existing().exit).code).toBe(0);
  });

  it('shows a stack trace only with --log-level debug', async () => {
    const file = join(newFolder(), 'plain');
    writeFileSync(file, '');
    const run = shell('true', '--store', `file:${file}`, '--log-level', 'debug');
    expect((await run.exit).code).toBe(69);
    expect(run.stderr()).toMatch(/ {4}at /);
  });

  it('ends with 127 or 126, and leaves the store alone, when the command cannot be started', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'script'), '#!/no/such/interpreter\n');
    chmodSync(join(folder, 'script'), 0o755);
    mkdirSync(join(folder, 'leases'));
    const missing = runCli(['run', '--store', `file:${folder}/leases`, '--', 'no-such-command']);
    expect((await missing.exit).code).toBe(127);
    expect(missing.stderr()).toBe('nodelease: no-such-command: command not found [COMMAND_NOT_FOUND]\n');
    const directory = runCli(['run', '--store', `file:${folder}/leases`, '--', folder]);
    expect((await directory.exit).code).toBe(126);
    expect(readdirSync(join(folder, 'leases'))).toEqual([]);
    const broken = runCli(['run', ...fixed, '--', join(folder, 'script')]);
    expect([126, 127]).toContain((await broken.exit).code);
  });

  it('logs JSON lines, the store in the first, each with the task id, to standard error', async () => {
    const store = `file:${newFolder()}`;
    const run = shell('true', '--store', store, '--task-id', 'me', '--log-level', 'info');
    await run.exit;
    const lines = run
      .stderr()
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    const common = { name: 'nodelease', level: 30, taskId: 'me', store };
    expect(lines).toMatchObject([
      { ...common, msg: `node ids come from ${store}` },
      { ...common, level: 40, msg: `created a new cluster of 16 node ids in ${store}` },
      { ...common, nodeId: 0, version: 1, msg: `acquired node id 0 at version 1 in ${store}` },
      ...lines.slice(3),
    ]);
    expect(lines.at(-1)).toMatchObject({ taskId: 'me', msg: 'lease released' });
    const silent = shell('echo from the command >&2', ...fixed, '--log-level', 'silent');
    await silent.exit;
    expect(silent.stderr()).toBe('from the command\n');
  });

  it('works on when its log is not read any more', async () => {
    const child = spawn(
      process.execPath,
      [cliFile, 'run', ...fixed, '--log-level', 'trace', '--', 'sh', '-c', 'sleep 0.3; exit 6'],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    child.stderr?.destroy();
    expect(await once(child, 'exit')).toEqual([6, null]);
  });

  it('leaves no process behind', async () => {
    const folder = newFolder();
    const run = shell(
      `echo ready; until [ -e ${folder}/go ]; do sleep 0.05; done`,
      '--store',
      `file:${folder}/leases`,
    );
    await run.waitForOutput(/ready/);
    const helpers = childrenOf(run.pid);
    // The guard and the command.
    expect(helpers.length).toBeGreaterThanOrEqual(2);
    writeFileSync(join(folder, 'go'), '');
    await run.exit;
    await untilDead(helpers);
  });

  it('hands no other open file down to the command, and keeps a lock on one of them until the work has ended', async () => {
    const folder = newFolder();
    const lock = join(folder, 'lock');
    // A daemon that the command starts outlives it.
    const script = `ls /proc/self/fd; setsid sh -c 'echo $$ ready; exec sleep 300' & until [ -e ${folder}/go ]; do sleep 0.05; done`;
    const idiom = 'exec 5>"$0" 17>"$0" 200>"$0"; flock 200; exec "$@"';
    const run = runProcess('bash', [
      '-c',
      idiom,
      lock,
      process.execPath,
      cliFile,
      'run',
      ...fixed,
      '--',
      'sh',
      '-c',
      script,
    ]);
    const isFree = async () => (await runProcess('flock', ['--nonblock', lock, 'true']).exit).code === 0;
    const [, daemon] = await run.waitForOutput(/(\d+) ready/);
    try {
      // The last one is the folder that `ls` reads.
      expect(numbers(run.stdout()).slice(0, -1)).toEqual([0, 1, 2, 3]);
      expect(await isFree()).toBe(false);
      writeFileSync(join(folder, 'go'), '');
      expect((await run.exit).code).toBe(0);
      await expect.poll(isFree).toBe(true);
    } finally {
      process.kill(Number(daemon), 'SIGKILL');
    }
  });

  it('does the same by its own name as through node', async () => {
    const run = runProcess(cliFile, ['run', ...fixed, '--', 'sh', '-c', 'echo $NODE_ID; cat; exit 5'], {
      stdin: 'input',
    });
    expect((await run.exit).code).toBe(5);
    expect(run.stdout()).toBe('3\ninput');
  });
});

describe('nodelease run with a lease that is lost', () => {
  const held = {
    taskId: 'other',
    version: 2,
    timestamp: 4_102_444_800_000,
    durationMs: 60_000,
    knownNodesMapping: {},
    ...{ acquiredAt: 0, idWidth: 8, narrowIdsUntil: 0, nonce: 'n', renewal: 0 },
  };

  it('kills the whole group at once and ends with 76 when another task holds the node id', async () => {
    const folder = newFolder();
    const { run, pids } = await family('6s', {}, folder);
    // As a whole, as a store writes it.
    writeFileSync(join(folder, '.held'), JSON.stringify(held));
    renameSync(join(folder, '.held'), join(folder, '0.json'));
    await untilDead(pids);
    expect((await run.exit).code).toBe(76);
    expect(run.stderr()).toMatch(/killing the command: another task may be at work already/);
    expect(JSON.parse(readFileSync(join(folder, '0.json'), 'utf8'))).toEqual(held);
  });

  it('ends the whole group, and says why, when the store is out of reach', async () => {
    const folder = newFolder();
    const store = join(folder, 'leases');
    const { run, pids } = await family('6s', {}, store);
    await runProcess('sh', ['-c', `mv ${store} ${store}.away && : > ${store}`]).exit;
    await untilDead(pids);
    expect((await run.exit).code).toBe(76);
    expect(run.stderr()).toMatch(/ending the command before its lease runs out/);
  });
});
