import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Guard, startGuard } from '../../../../src/app/supervisor/guard.js';
import type { Clock } from '../../../../src/core/base/clock.js';
import { systemClock } from '../../../../src/core/base/system.js';
import { type ProcessOptions, runCli, type TestProcess } from '../../../support/processes.js';
import { argumentsOf, childrenOf, newFolder } from './run-support.js';

const victims: ChildProcess[] = [];

/** A process group to end, and how long it takes until it has ended. */
export function victim() {
  const child = spawn('sh', ['-c', 'trap "" TERM; sleep 100 & wait; sleep 100'], {
    detached: true,
    stdio: 'ignore',
  });
  victims.push(child);
  const begun = systemClock.monotonic();
  const ended = once(child, 'exit').then(([, signal]) => ({
    signal,
    tookMs: systemClock.monotonic() - begun,
  }));
  return { id: child.pid ?? 0, begun, ended };
}

/** For `afterEach`. */
export function endVictims(): void {
  for (const { pid, exitCode, signalCode } of victims.splice(0)) {
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
  }
}

/** Starts a guard for as long as `act` takes, which gets its process id, too. */
export async function guarding(
  act: (guard: Guard, pid: number) => Promise<void>,
  options: { clock?: Clock; uptime?: () => string | undefined } = {},
) {
  const before = childrenOf(process.pid);
  const guard = startGuard({ clock: systemClock, path: process.env.PATH, ...options });
  try {
    await act(guard, found(childrenOf(process.pid).find((child) => !before.includes(child))));
  } finally {
    guard.done();
  }
}

/**
 * The two timers of a guard that has a deadline, once each has its `sleep` and those of the deadline before
 * are gone.
 */
export async function timersOf(guard: number): Promise<number[]> {
  let timers: number[] = [];
  const naps = () => {
    timers = childrenOf(guard);
    return timers.map((timer) => childrenOf(timer).map((pid) => argumentsOf(pid)[0]));
  };
  await expect.poll(naps).toEqual([['sleep'], ['sleep']]);
  return timers;
}

/** Children of a command, the second one in a process group of its own. Each says its number. */
export const CHILDREN = `sh -c 'echo child $$; exec sleep 1000' & timeout 1000 sh -c 'echo stray $$; exec sleep 1000' &`;

/** A command with {@link CHILDREN}; each says its number once it is as it is to be. */
export const FAMILY = `${CHILDREN} trap "" TERM; echo command $$; while :; do sleep 0.05; done`;

/** The process ids of {@link FAMILY}, once all have been said. */
export async function membersOf(run: TestProcess) {
  const numberOf = async (name: string) =>
    Number((await run.waitForOutput(new RegExp(`${name} (\\d+)\\n`)))[1]);
  const command = await numberOf('command');
  const children = [await numberOf('child'), await numberOf('stray')];
  return { command, children, pids: [command, ...children] };
}

/** Runs {@link FAMILY} under a lease of the only node id. */
export async function family(duration: string, options: ProcessOptions = {}, store = newFolder()) {
  const lease = ['--store', `file:${store}`, '--nodes', '1', '--duration', duration];
  const run = runCli(['run', ...lease, '--', '/bin/sh', '-c', FAMILY], options);
  return { run, ...(await membersOf(run)) };
}

/** A PATH on which a guard finds no `sleep`. */
export function unguarded(): Record<string, string> {
  const folder = newFolder();
  symlinkSync(process.execPath, join(folder, 'node'));
  return { PATH: folder };
}

/** The process of the guard of a run. */
export const guardOf = (run: TestProcess) =>
  found(childrenOf(run.pid).find((pid) => argumentsOf(pid).includes('lease-guard')));

/** A signal to process 0 would meet the group of the tests. */
function found(guard: number | undefined): number {
  if (guard === undefined) throw new Error('there is no guard');
  return guard;
}
