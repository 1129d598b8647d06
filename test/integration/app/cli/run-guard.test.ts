import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { cliFile, killAll, runCli, runProcess } from '../../../support/processes.js';
import {
  endVictims,
  FAMILY,
  family,
  guarding,
  guardOf,
  membersOf,
  timersOf,
  unguarded,
  victim,
} from './guard-support.js';
import { argumentsOf, childrenOf, isAlive, newFolder, removeFolders, untilDead } from './run-support.js';

// How soon it strikes is shown in run-guard.timing.test.ts.

afterEach(async () => {
  endVictims();
  await killAll();
  removeFolders();
});

/** In milliseconds on the monotonic clock. */
const inMs = (ms: number) => systemClock.monotonic() + ms;

describe('the guard', () => {
  it('leaves no process of the deadlines before the last one, and ends the group at that', async () => {
    const { id, ended } = victim();
    await guarding(async (guard, pid) => {
      guard.watch(id);
      for (let i = 1; i <= 40; i += 1) guard.extend(inMs(60_000));
      expect(await timersOf(pid)).toHaveLength(2);
      guard.extend(inMs(200));
      expect((await ended).signal).toBe('SIGKILL');
    });
  });

  it('lets the group live when it learns that the work has ended, and ends itself with all that could end the group', async () => {
    const { id } = victim();
    let guards: number[] = [];
    await guarding(async (guard, pid) => {
      guard.watch(id);
      guard.extend(inMs(60_000));
      guards = [pid, ...(await timersOf(pid))];
    });
    await untilDead(guards);
    expect(isAlive(id)).toBe(true);
  });

  it('has two timers again at the next deadline when one was killed', async () => {
    const { id, ended } = victim();
    await guarding(async (guard, pid) => {
      guard.watch(id);
      guard.extend(inMs(60_000));
      const [killed = 0, other = 0] = await timersOf(pid);
      process.kill(killed, 'SIGKILL');
      guard.extend(inMs(60_000));
      await expect.poll(() => childrenOf(pid)).not.toContain(other);
      expect(await timersOf(pid)).toHaveLength(2);
      guard.extend(inMs(200));
      expect((await ended).signal).toBe('SIGKILL');
    });
  });

  it('says so when it is ended by another process', async () => {
    await guarding(async (guard, pid) => {
      process.kill(pid, 'SIGKILL');
      expect(await guard.failed).toBe('it was ended by SIGKILL');
    });
  });
});

describe('a command whose supervisor', () => {
  it('is killed is killed as well, with its children, long before the deadline', async () => {
    const { run, pids } = await family('10m');
    run.kill('SIGKILL');
    await untilDead(pids);
  });

  it('is killed together with its guard is killed by the kernel, where there is setpriv', async () => {
    const { run, command, children } = await family('10m');
    await new ProcessHandle(run.pid).pause();
    process.kill(guardOf(run), 'SIGKILL');
    run.kill('SIGKILL');
    await untilDead([command]);
    for (const child of children) process.kill(child, 'SIGKILL');
  });

  it('is killed together with its whole process group is killed as well', async () => {
    const script = 'exec "$0" "$1" run --node-id 3 -- sh -c "$FAMILY"';
    const run = runProcess('setsid', ['sh', '-c', script, process.execPath, cliFile], { env: { FAMILY } });
    const { pids } = await membersOf(run);
    process.kill(-run.pid, 'SIGKILL');
    await untilDead(pids);
  });

  it('is paused is ended, and the supervisor finds out when it goes on', async () => {
    const { run, pids } = await family('2s');
    await new ProcessHandle(run.pid).pause();
    await untilDead(pids);
    run.kill('SIGCONT');
    expect((await run.exit).code).toBe(76);
  });

  it('loses its guard is ended in order, with 76 and the reason', async () => {
    const script = `trap 'echo asked; exit 0' TERM; echo begun; while :; do sleep 0.05; done`;
    const run = runCli([
      'run',
      '--store',
      `file:${newFolder()}`,
      '--duration',
      '10m',
      '--',
      'sh',
      '-c',
      script,
    ]);
    await run.waitForOutput(/begun/);
    process.kill(guardOf(run), 'SIGKILL');
    expect((await run.exit).code).toBe(76);
    expect(run.stdout()).toBe('begun\nasked\n');
    expect(run.stderr()).toMatch(/its guard is gone \(it was ended by SIGKILL\)/);
  });

  it('has no guard is warned of', async () => {
    const run = runCli(['run', '--store', `file:${newFolder()}`, '--', '/bin/true'], { env: unguarded() });
    await run.exit;
    expect(run.stderr()).toMatch(/nothing will stop the command when this process is killed or paused/);
  });

  it('goes by the name of nodelease does not share that name with its guard', async () => {
    const { run } = await family('10m');
    expect(argumentsOf(guardOf(run)).join(' ')).not.toMatch(/nodelease/);
  });
});
