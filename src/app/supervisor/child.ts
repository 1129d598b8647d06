import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, readdirSync } from 'node:fs';
import { Writable } from 'node:stream';
import { codeOf } from '../../core/base/files.js';
import { descriptorFlags } from '../kit/terminal/non-blocking-write.js';
import { SHELL } from './guard.js';
import { type ProcessGroup, systemProcessGroup } from './process-group.js';

/** How a process ended. */
export type ChildEnd = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** The process that a held lease is for, and everything that it starts in its own session. */
export interface Child {
  readonly group: ProcessGroup;
  /** Lets the command begin, where it waits for that. */
  begin(): void;
  /** Sends a signal to the process alone, as an init process would. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the process has ended, whatever is left of its group. */
  readonly ended: Promise<ChildEnd>;
}

/** What to start. */
interface ChildOptions {
  readonly command: readonly [file: string, ...args: string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True to hold the command back until `begin()`. Needs {@link SHELL}. */
  readonly gated: boolean;
}

/**
 * Starts the child's command once the guard knows of it: waits for a line on file descriptor 3, and
 * gives up when the supervisor dies before it is written. Where util-linux' `setpriv` works, the command is
 * also ended by the kernel when the supervisor dies.
 */
const GATE_SCRIPT = `
read -r NODELEASE_GO <&3 || exit 76
exec 3<&-
if setpriv --pdeathsig KILL -- true 2>/dev/null; then exec setpriv --pdeathsig KILL -- "$@"; fi
exec "$@"
`;

/** The names of the variables that every shell hands down. */
const SHELL_NAME = /^[A-Za-z_]\w*$/;

/** The operating system refused to start the command. */
export class ChildStartError extends Error {
  readonly code: 'COMMAND_NOT_FOUND' | 'COMMAND_NOT_EXECUTABLE';

  constructor(file: string, cause: unknown) {
    super(`${file} could not be started`, { cause });
    this.name = 'ChildStartError';
    this.code = codeOf(cause) === 'ENOENT' ? 'COMMAND_NOT_FOUND' : 'COMMAND_NOT_EXECUTABLE';
  }
}

/**
 * Starts a child in its own session, and so process group; its standard input, output and error are
 * this process' own, and nothing else that Node.js has opened is handed down.
 *
 * @throws {ChildStartError} when it could not be started
 */
export async function startChild({ command, env, gated }: ChildOptions): Promise<Child> {
  const others = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || SHELL_NAME.test(name) ? [] : [`${name}=${value}`],
  );
  // For a moment other users can read them in the list of processes. A command with a = in its name would be taken
  // for one of them.
  const words =
    others.length > 0 && !command[0].includes('=') ? ['env', '--', ...others, ...command] : command;
  const [file, ...args] = gated ? ([SHELL, '-c', GATE_SCRIPT, 'sh', ...words] as const) : command;
  const stdio: StdioOptions = ['inherit', 'inherit', 'inherit'];
  if (gated) stdio.push('pipe');
  let started: ChildProcess;
  try {
    started = spawn(file, args, { detached: true, stdio, env: { ...env } });
  } catch (cause) {
    throw new ChildStartError(file, cause);
  }
  const { pid } = started;
  if (pid === undefined) throw new ChildStartError(file, (await once(started, 'error'))[0]);

  const stream = started.stdio[3];
  const gate = stream instanceof Writable ? stream : undefined;
  // The child may end before it has read the line; its end says all there is to say.
  gate?.on('error', () => undefined);
  // A signal that cannot be sent, to a child that has become another user's, must not end this process.
  started.on('error', () => undefined);
  return {
    group: systemProcessGroup(pid),
    begin: () => gate?.end('\n'),
    signal: (signal) => void started.kill(signal),
    ended: new Promise<ChildEnd>((resolve) => {
      started.once('exit', (code, signal) => resolve(signal === null ? { code: code ?? 0 } : { signal }));
    }),
  };
}

/** O_CLOEXEC as Linux shows it in fdinfo, which Node.js has no name for. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * The descriptors that this process was started with, and that every process started from here would have as
 * well: Node.js marks those below 16 as its own alone, and forgets the ones above a gap. Ask before anything
 * else opens files. Empty outside of Linux; macOS passes no such files on.
 */
export function inheritedFiles(): readonly number[] {
  try {
    return readdirSync('/proc/self/fd')
      .map(Number)
      .filter((fd) => fd > 2 && isHandedDown(fd));
  } catch {
    return [];
  }
}

/**
 * Closes those of them that are still that. Another thread of Node.js may have had a file open for a moment when they
 * were counted: its number is of no file now, or of one that this process needs.
 */
export function closeInherited(files: readonly number[]): void {
  for (const fd of files.filter(isHandedDown)) closeSync(fd);
}

function isHandedDown(fd: number): boolean {
  try {
    return (descriptorFlags(fd) & CLOSE_ON_EXEC) === 0;
  } catch {
    // It is gone, as the one by which the folder was read.
    return false;
  }
}
