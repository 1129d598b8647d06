import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cliFile, killAll, runCli, type TestProcess } from '../../support/processes.js';
import { isAlive, newFolder, removeFolders, untilDead } from '../cli/run-support.js';

let folder: string;
let store: string;

beforeEach(() => {
  folder = newFolder();
  store = `file:${folder}/store`;
});
afterEach(async () => {
  await killAll();
  removeFolders();
});

/** Runs a script for the lock `nightly`. */
const locked = (script: string, ...options: string[]) =>
  runCli(['lock', 'nightly', '--store', store, ...options, '--', '/bin/sh', '-c', script]);
const SHORT = ['--duration', '2s'];

/** Tells its token and process id, and works until it is ended; by SIGTERM with a word. */
const WORK = `trap 'echo told to stop; exit 5' TERM; echo token $LOCK_TOKEN pid $$; while :; do sleep 0.05; done`;
/** The same, and does not listen. */
const STUBBORN = `trap '' TERM; echo token $LOCK_TOKEN pid $$; while :; do sleep 0.05; done`;

/** Resolves to the process id of the command that has this token. */
async function working(run: TestProcess, token: number): Promise<number> {
  return Number((await run.waitForOutput(new RegExp(`token ${token} pid (\\d+)\\n`)))[1]);
}

describe('nodelease lock', () => {
  it('gives the command the name of the lock and a token that grows with every run, and standard output to itself', async () => {
    const script = 'echo $LOCK_NAME $LOCK_TOKEN "$0"; cat';
    const runs = [];
    for (const word of ['--', 'a  b', '$HOME']) {
      const run = runCli(['lock', 'nightly', '--store', store, '--', 'sh', '-c', script, word], { stdin: 'input\n' });
      expect(await run.exit).toEqual({ code: 0, signal: null });
      runs.push(run.stdout());
    }
    expect(runs).toEqual(['nightly 1 --\ninput\n', 'nightly 2 a  b\ninput\n', 'nightly 3 $HOME\ninput\n']);
  });

  it('keeps the exit code of the command, 76 of its own included, which is no loss and starts nothing again', async () => {
    expect((await locked('exit 5').exit).code).toBe(5);
    expect((await locked('kill -SEGV $$').exit).code).toBe(139);
    const own = locked('echo ran; exit 76', '--restart');
    expect((await own.exit).code).toBe(76);
    expect(own.stdout()).toBe('ran\n');
  });

  it('does not start the command while another one runs: 75 at once with --try, and at the end of --timeout', async () => {
    const holder = locked(WORK);
    await working(holder, 1);
    const tried = locked('echo never', '--try');
    expect((await tried.exit).code).toBe(75);
    expect(tried.stdout()).toBe('');
    expect(tried.stderr()).toMatch(/lock nightly did not become free in time/);
    expect(tried.stderr()).not.toMatch(/ {4}at /);
    const begun = performance.now();
    expect((await locked('echo never', '--timeout', '1500ms').exit).code).toBe(75);
    expect(performance.now() - begun).toBeGreaterThan(1_400);
    // Another lock is another matter.
    expect((await runCli(['lock', 'weekly', '--store', store, '--try', '--', 'true']).exit).code).toBe(0);
  });

  it('hands SIGTERM on, and a waiting command starts once the first one has ended', async () => {
    const holder = locked(WORK);
    await working(holder, 1);
    const next = locked('echo token $LOCK_TOKEN', '--timeout', '60s');
    await next.waitForOutput(/lock nightly is held by another task: waiting/);
    holder.kill('SIGTERM');
    expect((await holder.exit).code).toBe(5);
    expect(holder.stdout()).toMatch(/told to stop/);
    expect((await next.exit).code).toBe(0);
    expect(next.stdout()).toBe('token 2\n');
  });

  it('is interrupted by a signal while it waits, with 128 plus its number and no token used', async () => {
    const holder = locked(WORK);
    await working(holder, 1);
    const waiting = locked('echo never');
    await waiting.waitForOutput(/waiting/);
    waiting.kill('SIGTERM');
    expect((await waiting.exit).code).toBe(143);
    expect(waiting.stdout()).toBe('');
    holder.kill('SIGTERM');
    await holder.exit;
    const next = locked('echo token $LOCK_TOKEN');
    await next.exit;
    expect(next.stdout()).toBe('token 2\n');
  });

  it('ends what the command leaves behind before another task has the lock', async () => {
    const run = locked('sleep 1000 & echo $!; exit 4');
    expect((await run.exit).code).toBe(4);
    await untilDead([Number(run.stdout())], 0);
    expect(run.stderr()).toMatch(/left processes behind/);
  });

  it('shows its holder to nodelease status, by the store of the lock alone', async () => {
    const holder = locked(WORK, '--task-id', 'me');
    await working(holder, 1);
    const status = async () => {
      const run = runCli(['status', '--json', '--store', `${store}/locks/nightly`]);
      expect((await run.exit).code).toBe(0);
      return JSON.parse(run.stdout()) as { nodes: unknown[] };
    };
    expect((await status()).nodes).toMatchObject([{ id: 0, state: 'held', version: 1, taskId: 'me' }]);
    holder.kill('SIGTERM');
    await holder.exit;
    expect((await status()).nodes).toMatchObject([{ id: 0, state: 'released', version: 1 }]);
  });

  it('stands beside the node ids of the same store, which do not see it', async () => {
    expect((await locked('true').exit).code).toBe(0);
    const inner = [process.execPath, cliFile, 'run', '--nodes', '2', '--', 'sh', '-c', 'echo $NODE_ID $NODE_ID_VERSION $LOCK_TOKEN'];
    const run = runCli(['lock', 'nightly', '--', ...inner], { env: { NODELEASE_STORE: store } });
    expect((await run.exit).code).toBe(0);
    expect(run.stdout()).toBe('0 1 2\n');
    expect(readdirSync(join(folder, 'store', 'locks'))).toEqual(['nightly']);
  });

  it('ends with 69 when the store cannot be used, and with 127 or 126 when the command cannot be started', async () => {
    writeFileSync(join(folder, 'plain'), '');
    const unusable = runCli(['lock', 'nightly', '--store', `file:${folder}/plain`, '--', 'true']);
    expect((await unusable.exit).code).toBe(69);
    expect(unusable.stderr()).toMatch(/lock nightly cannot be had/);
    expect((await runCli(['lock', 'nightly', '--store', store, '--', '/no/such/command']).exit).code).toBe(127);
    expect((await runCli(['lock', 'nightly', '--store', store, '--', join(folder, 'plain')]).exit).code).toBe(126);
    expect(readdirSync(folder)).toEqual(['plain']);
  });

  it.each([
    ['a name that no lock can have', ['a/b', '--', 'true'], 'name of the lock: expected 1 to 200 letters'],
    ['no name', ['--', 'true'], "missing required argument 'name'"],
    ['a second name', ['a', 'b', '--', 'true'], 'too many arguments'],
    ['no command', ['nightly'], 'no command given: expected one after --, as in "nodelease lock nightly -- ./report.sh"'],
    ['no command behind --', ['nightly', '--'], 'no command given: expected one after --'],
    ['--try beside --timeout', ['nightly', '--try', '--timeout', '1s', '--', 'true'], '--timeout: expected no --try beside it'],
    ['a negative time', ['nightly', '--timeout', '-1s', '--', 'true'], '--timeout: expected a time such as 500ms'],
    ['a time that ends after a year', ['nightly', '--timeout', '9000h', '--', 'true'], '--timeout: expected at most 8760h'],
    ['an option of run', ['nightly', '--nodes', '3', '--', 'true'], "unknown option '--nodes'"],
    ['a store that is none', ['nightly', '--store', 'ftp://x', '--', 'true'], '--store: expected s3://'],
  ])('answers %s with one line and 64', async (_, args, complaint) => {
    const run = runCli(['lock', ...args], { cwd: folder });
    expect((await run.exit).code).toBe(64);
    expect(run.stderr()).toContain(`nodelease: ${complaint}`);
    expect(run.stderr().trim().split('\n')).toHaveLength(1);
  });
});

describe('a command that runs for a lock', () => {
  it('is not touched by its guard for many durations, as long as the lock is renewed', async () => {
    const run = locked(STUBBORN, ...SHORT);
    const pid = await working(run, 1);
    await sleep(5_000);
    expect(isAlive(pid)).toBe(true);
    process.kill(pid, 'SIGKILL');
    expect((await run.exit).code).toBe(137);
  });

  it('is killed with nodelease, before another task has the lock', async () => {
    const witness = join(folder, 'witness');
    const beat = `while :; do date +%s%N >> ${witness}; sleep 0.02; done`;
    const holder = locked(`trap '' TERM; echo token $LOCK_TOKEN pid $$; ${beat}`, ...SHORT);
    const pid = await working(holder, 1);
    const next = locked(`echo token $LOCK_TOKEN at $(date +%s%N)`);
    await next.waitForOutput(/waiting/);
    holder.kill('SIGKILL');
    await untilDead([pid], 1_000);
    expect((await next.exit).code).toBe(0);
    const [, at = ''] = /^token 2 at (\d+)$/m.exec(next.stdout()) ?? [];
    const last = readFileSync(witness, 'utf8').trim().split('\n').at(-1) ?? '';
    // It was at work until the kill, and the lock had to expire first.
    expect(BigInt(at) - BigInt(last)).toBeGreaterThan(1_000_000_000n);
  });

  it('is killed by the deadline while nodelease is paused, which ends with 76 once it goes on', async () => {
    const holder = locked(STUBBORN, ...SHORT);
    const pid = await working(holder, 1);
    holder.kill('SIGSTOP');
    const next = locked(WORK, '--timeout', '60s');
    await untilDead([pid], 2_500);
    const other = await working(next, 2);
    holder.kill('SIGCONT');
    expect((await holder.exit).code).toBe(76);
    expect(isAlive(other)).toBe(true);
  });

  it('is stopped and ends with 76 when an operator takes the lock away', async () => {
    const holder = locked(STUBBORN, ...SHORT);
    const pid = await working(holder, 1);
    expect((await evict()).code).toBe(0);
    expect((await holder.exit).code).toBe(76);
    await untilDead([pid], 0);
    expect(holder.stderr()).toMatch(/lock nightly \(token 1\) is lost/);
  });

  it('runs again with --restart after the lock was taken away, and after nodelease was paused', async () => {
    const run = locked(STUBBORN, ...SHORT, '--restart');
    const first = await working(run, 1);
    expect((await evict()).code).toBe(0);
    // The eviction itself has a token, so that the old holder is fenced off.
    const [, token] = await run.waitForOutput(/token ([2-9]) pid/);
    await untilDead([first], 0);
    const second = await working(run, Number(token));
    run.kill('SIGSTOP');
    await untilDead([second], 2_500);
    run.kill('SIGCONT');
    const third = await working(run, Number(token) + 1);
    process.kill(third, 'SIGKILL');
    expect((await run.exit).code).toBe(137);
  });

  it('is not started again with --restart once a signal has asked for the end', async () => {
    const run = locked(STUBBORN, ...SHORT, '--restart');
    const pid = await working(run, 1);
    run.kill('SIGTERM');
    await sleep(100);
    expect((await evict()).code).toBe(0);
    expect((await run.exit).code).toBe(76);
    await untilDead([pid], 0);
    expect(run.stdout().match(/token/g)).toHaveLength(1);
  });

  const evict = () => runCli(['release', '0', '--force', '--store', `${store}/locks/nightly`]).exit;
});
