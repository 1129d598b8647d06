import { spawn } from 'node:child_process';
import { withTimeout } from '../base/abort.js';
import type { Clock } from '../clock.js';
import { explain } from '../errors.js';

/** One task of the demo: a process `nodelease run`, and what it runs. */
export interface DemoTask {
  readonly name: string;
  /** 0 when it could not be started. */
  readonly pid: number;
  /** How it ended, for people; undefined as long as it runs. */
  end(): string | undefined;
  /** Ends it at once, as an accident would: it has no chance to release anything. */
  kill(): void;
  /** Asks it to end, and resolves when it has: its lease is released then. Killed when that takes too long, or when `hurry` aborts. */
  stop(hurry: AbortSignal): Promise<void>;
}

/** What a task of the demo needs. */
export interface DemoTaskOptions {
  readonly name: string;
  readonly program: readonly [file: string, ...args: string[]];
  /** The options of `nodelease run`. */
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

/** What each task runs: it works until its standard input ends, which it does at the latest when the demo does, in whatever way. */
const COMMAND = ['cat'];
/** How long a task may take to end when asked, in milliseconds. */
const STOP_LIMIT_MS = 8_000;
/** How much of what a task says is kept, in characters. */
const KEPT_OUTPUT = 4_000;

/** Starts a task in a session of its own: a Ctrl-C is for the demo, which then ends its tasks in order. */
export function startDemoTask({ name, program, options, env, clock }: DemoTaskOptions): DemoTask {
  const [file, ...args] = [...program, 'run', ...options, '--task-id', name, '--log-level', 'warn', '--', ...COMMAND] as [
    string,
    ...string[],
  ];
  const child = spawn(file, args, { detached: true, stdio: ['pipe', 'ignore', 'pipe'], env: withoutSettings(env) });
  let said = '';
  let end: string | undefined;
  child.stdin.on('error', () => undefined);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-KEPT_OUTPUT);
  });
  const ended = new Promise<void>((resolve) => {
    const finish = (how: string) => {
      end ??= how;
      resolve();
    };
    child.once('error', (error) => finish(explain(error)));
    child.once('exit', (code, signal) => finish(`${signal === null ? `exit code ${code}` : `signal ${signal}`}${lastWords(said)}`));
  });
  return {
    name,
    pid: child.pid ?? 0,
    end: () => end,
    kill: () => void child.kill('SIGKILL'),
    async stop(hurry) {
      if (end !== undefined) return;
      child.kill('SIGTERM');
      await withTimeout(clock, STOP_LIMIT_MS, ended, hurry).catch(() => undefined);
      if (end === undefined) child.kill('SIGKILL');
      await ended;
    },
  };
}

/** The surroundings' settings are not for the demo: a task id or an endpoint of the user's would spoil it. */
function withoutSettings(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(NODELEASE_|NODE_ID)/.test(name)));
}

/** The last line that a task logged, in JSON or not. */
function lastWords(said: string): string {
  const line = said.trim().split('\n').at(-1) ?? '';
  if (line === '') return '';
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry === 'object' && entry !== null && 'msg' in entry) return `: ${String(entry.msg)}`;
  } catch {
    // Not a line of the log: shown as it is.
  }
  return `: ${line}`;
}
