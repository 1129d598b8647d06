import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.js';
import { systemClock } from '../../../src/base/system.js';
import { GUARD_MARGIN_MS, type Guard, startGuard } from '../../../src/cli/run/guard.js';
import { cliFile, killAll, runCli, runProcess, type TestProcess } from '../../support/processes.js';
import { argumentsOf, childrenOf, isAlive, newFolder, removeFolders, untilDead } from './run-support.js';

const victims: ChildProcess[] = [];

afterEach(async () => {
  for (const victim of victims.splice(0)) victim.kill('SIGKILL');
  await killAll();
  removeFolders();
});

/** What a machine may be slower than the timer says, in milliseconds, when everything runs at once. */
const SLACK_MS = 200;

/** How long is waited for what comes at once on a quiet machine. */
const SOON = { timeout: 30_000, interval: 5 };

/** The two timers of a guard that has a deadline, once each has its `sleep`. */
async function timersOf(guard: number): Promise<number[]> {
  const naps = () => childrenOf(guard).flatMap(childrenOf);
  await expect.poll(() => naps().map((pid) => argumentsOf(pid)[0]), SOON).toEqual(['sleep', 'sleep']);
  return childrenOf(guard);
}

/** A process group to end, and how long it takes until it has ended. */
function victim() {
  const child = spawn('sh', ['-c', 'trap "" TERM; sleep 100 & wait; sleep 100'], { detached: true, stdio: 'ignore' });
  victims.push(child);
  const begun = systemClock.monotonic();
  const ended = once(child, 'exit').then(([, signal]) => ({ signal, tookMs: systemClock.monotonic() - begun }));
  return { id: child.pid ?? 0, begun, ended };
}

async function guarding(act: (guard: Guard) => Promise<void>, options: { clock?: Clock; uptime?: () => string | undefined } = {}) {
  const guard = startGuard({ clock: systemClock, path: process.env.PATH, ...options });
  try {
    await act(guard);
  } finally {
    guard.done();
  }
}

describe('the guard', () => {
  it.each([
    ['by the uptime of the machine', {}],
    ['counting by itself where there is no /proc/uptime', { uptime: () => undefined }],
  ])('ends the group just before the deadline, %s', async (_, options) => {
    const { id, begun, ended } = victim();
    await guarding(async (guard) => {
      guard.watch(id);
      guard.extend(begun + 1_400);
      const { signal, tookMs } = await ended;
      expect(signal).toBe('SIGKILL');
      expect(tookMs).toBeGreaterThan(1_400 - GUARD_MARGIN_MS - 50);
      expect(tookMs).toBeLessThan(1_400 - GUARD_MARGIN_MS + SLACK_MS);
    }, options);
  });

  it('goes by the last deadline that it was given, and leaves no sleeping process of the earlier ones', async () => {
    const { id, begun, ended } = victim();
    const before = childrenOf(process.pid);
    await guarding(async (guard) => {
      const pid = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
      guard.watch(id);
      for (let i = 1; i <= 40; i += 1) {
        guard.extend(systemClock.monotonic() + 1_000);
        await sleep(20);
      }
      expect(await timersOf(pid)).toHaveLength(2);
      const { tookMs } = await ended;
      expect(tookMs).toBeGreaterThan(systemClock.monotonic() - begun - SLACK_MS);
      expect(tookMs).toBeGreaterThan(1_700);
    });
  });

  it('lets the group live when it is told that the work has ended, and ends itself', async () => {
    const { id } = victim();
    const before = childrenOf(process.pid);
    let guards: number[] = [];
    await guarding(async (guard) => {
      guards = childrenOf(process.pid).filter((child) => !before.includes(child));
      guard.watch(id);
      guard.extend(systemClock.monotonic() + 500);
      await sleep(100);
    });
    await untilDead(guards, 500);
    await sleep(700);
    expect(isAlive(id)).toBe(true);
  });

  it('does not strike late when the supervisor is paused while it works the deadline out', async () => {
    const { id, begun, ended } = victim();
    const pausing = () => {
      const text = readFileSync('/proc/uptime', 'utf8');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
      return text;
    };
    await guarding(
      async (guard) => {
        guard.watch(id);
        guard.extend(begun + 1_000);
        expect((await ended).tookMs).toBeLessThan(1_000);
      },
      { uptime: pausing },
    );
  });

  it('needs no clock that begins where the uptime does', async () => {
    const { id, begun, ended } = victim();
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + 5_000_000 };
    await guarding(
      async (guard) => {
        guard.watch(id);
        guard.extend(begun + 5_001_000);
        const { tookMs } = await ended;
        expect(tookMs).toBeGreaterThan(1_000 - GUARD_MARGIN_MS - 50);
        expect(tookMs).toBeLessThan(1_000 - GUARD_MARGIN_MS + SLACK_MS);
      },
      { clock },
    );
  });

  it.each([0, 1])('ends the group by the deadline also when its timer %i is killed and the supervisor does nothing', async (index) => {
    const { id, begun, ended } = victim();
    const before = childrenOf(process.pid);
    await guarding(async (guard) => {
      const pid = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
      guard.watch(id);
      guard.extend(begun + 3_000);
      process.kill((await timersOf(pid))[index] ?? 0, 'SIGKILL');
      const { tookMs } = await ended;
      expect(tookMs).toBeGreaterThan(3_000 - GUARD_MARGIN_MS - 50);
      expect(tookMs).toBeLessThan(3_000 - GUARD_MARGIN_MS + SLACK_MS);
    });
  });

  it('has two timers again at the next deadline when one was killed', async () => {
    const { id, begun, ended } = victim();
    const before = childrenOf(process.pid);
    await guarding(async (guard) => {
      const pid = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
      guard.watch(id);
      guard.extend(begun + 60_000);
      const [killed = 0, other = 0] = await timersOf(pid);
      process.kill(killed, 'SIGKILL');
      guard.extend(systemClock.monotonic() + 2_000);
      await expect.poll(() => childrenOf(pid), SOON).not.toContain(other);
      expect(await timersOf(pid)).toHaveLength(2);
      expect((await ended).tookMs).toBeLessThan(30_000);
    });
  });

  it('says so when it is ended by somebody else', async () => {
    const before = childrenOf(process.pid);
    await guarding(async (guard) => {
      const pid = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
      process.kill(pid, 'SIGKILL');
      expect(await guard.failed).toBe('it was ended by SIGKILL');
    });
  });
});

const FAMILY = 'echo $$; sleep 1000 & echo $!; trap "" TERM; while :; do sleep 0.05; done';

/** A command with a child of its own, run for a short lease. */
async function family(options: { env?: Record<string, string> } = {}) {
  const run = runCli(['run', '--store', `file:${newFolder()}`, '--duration', '2s', '--', '/bin/sh', '-c', FAMILY], options);
  await run.waitForOutput(/\d+\n\d+\n/);
  const pids = [...run.stdout().matchAll(/\d+/g)].map(Number);
  return { run, pids };
}

/** A PATH on which a guard finds no `sleep`: the twin of the tests below that shows what the guard is for. */
function unguarded(): Record<string, string> {
  const folder = newFolder();
  symlinkSync(process.execPath, join(folder, 'node'));
  return { PATH: folder };
}

const guardOf = (run: TestProcess) => childrenOf(run.pid).find((pid) => argumentsOf(pid).includes('lease-guard')) ?? 0;

describe('a command whose supervisor', () => {
  it('is killed is killed as well, with its children', async () => {
    const { run, pids } = await family();
    run.kill('SIGKILL');
    await untilDead(pids, 1_000);
  });

  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'is ended or paused by %s lives on where there is no guard, which is warned of',
    async (signal) => {
      const command = ['/bin/sh', '-c', 'echo $$; exec /bin/sleep 1000'];
      const run = runCli(['run', '--store', `file:${newFolder()}`, '--duration', '1s', '--', ...command], { env: unguarded() });
      await run.waitForOutput(/\d+\n/);
      const pid = Number(run.stdout());
      expect(run.stderr()).toMatch(/nothing will stop the command when this process is killed or paused/);
      run.kill(signal);
      await sleep(1_500);
      expect(isAlive(pid)).toBe(true);
      process.kill(-pid, 'SIGKILL');
    },
  );

  it('is killed together with its guard is killed by the kernel, where there is setpriv', async () => {
    const { run, pids } = await family();
    const [command = 0, child = 0] = pids;
    run.kill('SIGSTOP');
    process.kill(guardOf(run), 'SIGKILL');
    run.kill('SIGKILL');
    await untilDead([command], 500);
    process.kill(child, 'SIGKILL');
  });

  it('is paused is ended by the deadline, and the supervisor finds out when it goes on', async () => {
    const { run, pids } = await family();
    await sleep(1_000);
    run.kill('SIGSTOP');
    // The last renewal was before the pause, so the deadline is within two seconds of it.
    const tookMs = await untilDead(pids, 3_000);
    expect(tookMs).toBeLessThan(2_000);
    run.kill('SIGCONT');
    expect((await run.exit).code).toBe(76);
  });

  it('is paused is ended by the deadline also when a timer of its guard was killed before', async () => {
    const { run, pids } = await family();
    process.kill((await timersOf(guardOf(run)))[0] ?? 0, 'SIGKILL');
    run.kill('SIGSTOP');
    expect(await untilDead(pids, 4_000)).toBeLessThan(2_000);
  });

  it('is stopped together with every process of its guard lives on past the deadline, until it goes on', async () => {
    const { run, pids } = await family();
    run.kill('SIGSTOP');
    const stopped = [run.pid, guardOf(run), ...(await timersOf(guardOf(run)))];
    for (const pid of stopped) process.kill(pid, 'SIGSTOP');
    try {
      await sleep(2_500);
      expect(pids.every(isAlive)).toBe(true);
      run.kill('SIGCONT');
      await untilDead(pids, 30_000);
    } finally {
      for (const pid of stopped) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
    }
  });

  it('works is not touched by the guard for many lease durations', async () => {
    const { run, pids } = await family();
    await sleep(6_000);
    expect(pids.every(isAlive)).toBe(true);
    process.kill(pids[0] ?? 0, 'SIGKILL');
    expect((await run.exit).code).toBe(137);
  });

  it('loses its guard is ended in order, with 76 and the reason', async () => {
    const { run, pids } = await family();
    process.kill(guardOf(run), 'SIGKILL');
    await untilDead(pids, 2_000);
    expect((await run.exit).code).toBe(76);
    expect(run.stderr()).toMatch(/its guard is gone \(it was ended by SIGKILL\)/);
  });

  it('is killed together with its whole process group is killed as well', async () => {
    const script = `exec "$0" "$1" run --node-id 3 -- sh -c '${FAMILY.replaceAll("'", '')}'`;
    const run = runProcess('setsid', ['sh', '-c', script, process.execPath, cliFile]);
    await run.waitForOutput(/\d+\n\d+\n/);
    const pids = [...run.stdout().matchAll(/\d+/g)].map(Number);
    process.kill(-run.pid, 'SIGKILL');
    await untilDead(pids, 1_000);
  });

  it('goes by the name of nodelease does not share that name with its guard', async () => {
    const { run } = await family();
    expect(argumentsOf(guardOf(run)).join(' ')).not.toMatch(/nodelease/);
  });
});
