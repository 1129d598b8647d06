import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runCli } from '../../../support/processes.js';
import { family, guardOf, timersOf, unguarded } from './guard-support.js';
import { isAlive, newFolder, removeFolders, untilDead } from './run-support.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

function threadsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    return 0;
  }
}

describe('a command whose supervisor', () => {
  // The twin of the other tests, which shows what the guard is for.
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'is ended or paused by %s lives on where there is no guard, which is warned of',
    async (signal) => {
      const command = ['/bin/sh', '-c', 'echo $$; exec /bin/sleep 1000'];
      const run = runCli(['run', '--store', `file:${newFolder()}`, '--duration', '3s', '--', ...command], {
        env: unguarded(),
      });
      const pid = Number((await run.waitForOutput(/(\d+)\n/))[1]);
      await run.waitForOutput(/nothing will stop the command when this process is killed or paused/);
      run.kill(signal);
      await sleep(4_500);
      expect(isAlive(pid)).toBe(true);
      process.kill(-pid, 'SIGKILL');
    },
  );

  it('is stopped together with every process of its guard lives on past the deadline, until it goes on', async () => {
    const { run, pids } = await family('3s');
    const stopped = [new ProcessHandle(run.pid)];
    await stopped[0]?.pause();
    for (const pid of [guardOf(run), ...(await timersOf(guardOf(run)))]) stopped.push(new ProcessHandle(pid));
    for (const each of stopped) await each.pause();
    try {
      await sleep(3_500);
      expect(pids.every(isAlive)).toBe(true);
      run.kill('SIGCONT');
      await untilDead(pids);
    } finally {
      for (const each of stopped) each.signal('SIGCONT');
    }
  });

  it('is killed takes along a process of its session whose first thread has ended, and which looks like a zombie', async () => {
    const program = `
import ctypes, os, threading, time
os.setpgid(0, 0)
print("stray", os.getpid(), flush=True)
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)`;
    const command = ['sh', '-c', 'python3 -c "$PROGRAM" & exec sleep 1000'];
    const env = { PROGRAM: program };
    const run = runCli(['run', '--store', `file:${newFolder()}`, '--duration', '10m', '--', ...command], {
      env,
    });
    const stray = Number((await run.waitForOutput(/stray (\d+)\n/))[1]);
    await expect.poll(() => readFileSync(`/proc/${stray}/stat`, 'utf8')).toMatch(/^\d+ \(python3\) Z /);
    run.kill('SIGKILL');
    await expect.poll(() => threadsOf(stray), { timeout: 10_000 }).toBeLessThan(2);
  });

  it('works is not touched by the guard for many lease durations', async () => {
    const { run, command, pids } = await family('4s');
    await sleep(10_000);
    expect(pids.every(isAlive)).toBe(true);
    process.kill(command, 'SIGKILL');
    expect((await run.exit).code).toBe(137);
  });
});
