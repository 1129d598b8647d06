import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ProcessOptions, runCli, runProcess, type TestProcess } from '../../../support/processes.js';

const folders: string[] = [];

/** A new folder, gone after {@link removeFolders}. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'nodelease-run-'));
  folders.push(folder);
  return folder;
}

/** For `afterEach`. */
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Runs a shell script under `nodelease run`. */
export const shell = (script: string, ...options: string[]): TestProcess =>
  runCli(['run', ...options, '--', 'sh', '-c', script]);

/** All numbers of a text. */
export const numbers = (text: string): number[] => [...text.matchAll(/\d+/g)].map(Number);

/** True while a process is at work: zombies are not. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

/**
 * Resolves, with the milliseconds it took, when no process of the list is at work any more.
 *
 * @throws Error when some still are after `ms` milliseconds; the default is enough for a loaded machine
 */
export async function untilDead(pids: readonly number[], ms = 30_000): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const alive = pids.filter(isAlive);
    const took = performance.now() - begun;
    if (alive.length === 0) return took;
    if (took > ms) throw new Error(`processes ${alive.join(', ')} still run after ${ms} ms`);
    await sleep(5);
  }
}

/** The processes whose parent is `pid`; an empty list for a process that no longer exists. */
export function childrenOf(pid: number): number[] {
  return readChildren(pid)
    .split(' ')
    .filter((text) => text !== '')
    .map(Number);
}

function readChildren(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return '';
    throw error;
  }
}

/** The arguments of a process, the first one being its name. */
export function argumentsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
}

/**
 * Starts a command line as process 1 of a process namespace of its own, as a container does.
 * Where that is not permitted, the test fails and says what `unshare` said.
 */
export function asProcess1(command: readonly string[], options: ProcessOptions = {}): TestProcess {
  return runProcess('unshare', ['--pid', '--fork', '--mount-proc', '--kill-child=KILL', ...command], options);
}

/**
 * The number by which the world outside knows process 1.
 * @throws Error where there is none: 0 would be this process and all others of its group
 */
export function outside(run: TestProcess): number {
  const [first] = childrenOf(run.pid);
  if (first === undefined) throw new Error('there is no process 1');
  return first;
}
