import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { evictHolder } from '../../../../src/core/lease/operate/evict.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { FileLeaseStore } from '../../../../src/core/store/file/file-lease-store.js';
import { parseLog } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { cliFile, killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { isAlive, newFolder, removeFolders } from '../../app/cli/run-support.js';

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

/** Prints its token and process id, and works until it is ended; by SIGTERM with a word. */
const WORK = `trap 'echo asked to stop; exit 5' TERM; echo token $LOCK_TOKEN pid $$; while :; do sleep 0.05; done`;
/** The same, and does not listen. */
const STUBBORN = `trap '' TERM; echo token $LOCK_TOKEN pid $$; while :; do sleep 0.05; done`;

/** Says first whether the command of a holder before it is still at work, which a zombie is not. */
const nextAfter = (pid: number, script: string) =>
  `case "$(cut -d' ' -f3 /proc/${pid}/stat 2>/dev/null)" in ''|Z|X) echo the last one has ended;; *) echo the last one runs;; esac; ${script}`;

/** Resolves to the process id of the command that has this token. */
async function working(run: TestProcess, token: number): Promise<number> {
  return Number((await run.waitForOutput(new RegExp(`token ${token} pid (\\d+)\\n`)))[1]);
}

describe('nodelease lock', () => {
  it('gives the command the name of the lock and a token, its arguments as they are, and standard input and output to itself', async () => {
    const command = ['sh', '-c', 'echo $LOCK_NAME $LOCK_TOKEN "$0" "$1" "$2"; cat', '--', 'a  b', '$HOME'];
    const run = runCli(['lock', 'nightly', '--store', store, '--', ...command], { stdin: 'input\n' });
    expect(await run.exit).toEqual({ code: 0, signal: null });
    expect(run.stdout()).toBe('nightly 1 -- a  b $HOME\ninput\n');
  });

  it('does not start the command while another one runs, which nodelease status shows: 75 at once with --try, and at the end of --timeout', async () => {
    await working(locked(WORK, '--task-id', 'me'), 1);
    const status = runInProcess(['status', '--json', '--store', `${store}/locks/nightly`]);
    const begun = performance.now();
    const waiting = locked('echo never', '--timeout', '1s');
    const tried = locked('echo never', '--try');
    expect(JSON.parse((await status).answer).nodes).toMatchObject([
      { id: 0, state: 'held', version: 1, taskId: 'me' },
    ]);
    expect((await tried.exit).code).toBe(75);
    expect(tried.stdout()).toBe('');
    const last = (run: TestProcess) => parseLog(run.stderr()).at(-1);
    expect(last(tried)).toMatchObject({
      fields: { level: 30, exitCode: 75 },
      msg: 'lock nightly did not become free in time',
    });
    expect((await waiting.exit).code).toBe(75);
    expect(waiting.stdout()).toBe('');
    expect(last(waiting)).toMatchObject({
      fields: { level: 40, exitCode: 75 },
      msg: 'lock nightly did not become free in time',
    });
    expect(performance.now() - begun).toBeGreaterThan(900);
  });

  it('hands SIGTERM on, and a waiting command starts once the first one has ended; where it waits itself, it ends with 143', async () => {
    const holder = locked(WORK);
    await working(holder, 1);
    const [interrupted, next] = [locked('echo never'), locked('echo token $LOCK_TOKEN')];
    await Promise.all(
      [interrupted, next].map((each) => each.waitForOutput(/lock nightly is held by another task: waiting/)),
    );
    interrupted.kill('SIGTERM');
    expect((await interrupted.exit).code).toBe(143);
    expect(interrupted.stdout()).toBe('');
    holder.kill('SIGTERM');
    expect((await holder.exit).code).toBe(5);
    expect(holder.stdout()).toMatch(/asked to stop/);
    expect((await next.exit).code).toBe(0);
    // One that has given up has used no token.
    expect(next.stdout()).toBe('token 2\n');
  });

  it('keeps the exit code of the command, also where it is 76, which is no loss: what it leaves behind is ended, and nothing runs again', async () => {
    const file = join(folder, 'left');
    const leave = `sh -c 'echo $$ > ${file}; exec sleep 1000' & until [ -s ${file} ]; do sleep 0.02; done`;
    const run = locked(`echo ran; ${leave}; exit 76`, '--restart');
    expect((await run.exit).code).toBe(76);
    expect(run.stdout()).toBe('ran\n');
    expect(isAlive(Number(readFileSync(file, 'utf8')))).toBe(false);
    expect(run.stderr()).toMatch(/left processes behind/);
  });

  it('is next to the node ids of the same store, which do not see it', async () => {
    const inner = [
      process.execPath,
      cliFile,
      'run',
      '--nodes',
      '2',
      '--',
      'sh',
      '-c',
      'echo $NODE_ID $NODE_ID_VERSION $LOCK_TOKEN',
    ];
    const run = runCli(['lock', 'nightly', '--', ...inner], { env: { NODELEASE_STORE: store } });
    expect((await run.exit).code).toBe(0);
    expect(run.stdout()).toBe('0 1 1\n');
    expect(readdirSync(join(folder, 'store', 'locks'))).toEqual(['.cas', 'cluster.json', 'nightly']);
  });

  it('ends with 69 when the store cannot be used', async () => {
    writeFileSync(join(folder, 'plain'), '');
    const unusable = runCli([
      'lock',
      'nightly',
      '--store',
      `file:${folder}/plain`,
      '--',
      'touch',
      join(folder, 'ran'),
    ]);
    expect((await unusable.exit).code).toBe(69);
    expect(unusable.stderr()).toMatch(/lock nightly cannot be acquired/);
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });
});

describe('a command that runs for a lock', () => {
  it('is killed with nodelease, before another task has the lock', async () => {
    const holder = locked(STUBBORN, ...SHORT);
    const pid = await working(holder, 1);
    holder.kill('SIGKILL');
    const next = locked(nextAfter(pid, 'echo token $LOCK_TOKEN'));
    expect((await next.exit).code).toBe(0);
    expect(next.stdout()).toBe('the last one has ended\ntoken 2\n');
  });

  it('is killed by the deadline while nodelease is paused, which knows of the loss once it goes on: with --restart it waits for its turn', async () => {
    // The other one's lease lasts as long, and is to outlive a loaded machine.
    const holder = locked(STUBBORN, '--duration', '8s', '--restart');
    const pid = await working(holder, 1);
    holder.kill('SIGSTOP');
    const next = locked(nextAfter(pid, WORK));
    const other = await working(next, 2);
    expect(next.stdout()).toMatch(/^the last one has ended$/m);
    holder.kill('SIGCONT');
    await holder.waitForOutput(/lock nightly is held by another task: waiting/);
    expect(isAlive(other)).toBe(true);
    next.kill('SIGTERM');
    expect((await next.exit).code).toBe(5);
    process.kill(await working(holder, 3), 'SIGKILL');
    expect((await holder.exit).code).toBe(137);
  });

  it('is stopped and ends with 76 when an operator takes the lock away', async () => {
    const holder = locked(STUBBORN, ...SHORT);
    const pid = await working(holder, 1);
    const release = ['release', '0', '--force', '--store', `${store}/locks/nightly`];
    expect(await runInProcess(release)).toMatchObject({ code: 0 });
    expect((await holder.exit).code).toBe(76);
    expect(isAlive(pid)).toBe(false);
    expect(holder.stderr()).toMatch(/lock nightly \(token 1\) is lost/);
  });

  it('runs again with --restart after the lock was taken away, and not once a signal has asked for the end', async () => {
    const reported = `trap 'echo asked to stop' TERM; echo token $LOCK_TOKEN pid $$; while :; do sleep 0.05; done`;
    const run = locked(reported, '--duration', '8s', '--restart');
    const first = await working(run, 1);
    await evictInProcess();
    // The eviction itself has a token, so that the old holder is fenced off.
    const [, token] = await run.waitForOutput(/token ([2-9]) pid/);
    expect(isAlive(first)).toBe(false);
    const second = await working(run, Number(token));
    run.kill('SIGTERM');
    await run.waitForOutput(/asked to stop/);
    await evictInProcess();
    expect((await run.exit).code).toBe(76);
    expect(isAlive(second)).toBe(false);
    expect(run.stdout().match(/token/g)).toHaveLength(2);
  });

  /** As `nodelease release` does. */
  const evictInProcess = () => {
    const ofLock = new FileLeaseStore({
      directory: join(folder, 'store/locks/nightly'),
      clock: systemClock,
      random: systemRandom,
    });
    return evictHolder(new StoreSession(ofLock, systemClock, 5_000), 0);
  };
});
