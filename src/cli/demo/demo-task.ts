import { spawn } from 'node:child_process';
import { withTimeout } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { explain } from '../../base/errors.js';

/** One task of the demo: a process `nodelease run`, and its command. */
export interface DemoTask {
  readonly name: string;
  /** 0 when it could not be started. */
  readonly pid: number;
  /** How it ended, for people; undefined while it runs. */
  end(): string | undefined;
  /** Ends it at once, as an accident would: it releases nothing. */
  kill(): void;
  /** Asks it to end, and resolves when it has: its lease is released then. Kills it when that takes too long. */
  stop(): Promise<void>;
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

/** The command of each task. It ends with its standard input, and so with the demo, in whatever way that ends. */
const COMMAND = ['cat'];
/** How long a task may take to end, in milliseconds. */
const STOP_TIMEOUT_MS = 5_000;
/** How many characters of a task's log are kept. */
const KEPT_LOG = 4_000;

/** Starts a task in a session of its own: a Ctrl-C is for the demo, which then ends its tasks in order. */
export function startDemoTask({ name, program, options, env, clock }: DemoTaskOptions): DemoTask {
  const [file, ...args] = program;
  const own = ['run', ...options, '--task-id', name, '--log-level', 'warn', '--', ...COMMAND];
  const child = spawn(file, [...args, ...own], { detached: true, stdio: ['pipe', 'ignore', 'pipe'], env: withoutSettings(env) });
  let log = '';
  let end: string | undefined;
  child.stdin.on('error', () => undefined);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-KEPT_LOG);
  });
  const ended = new Promise<void>((resolve) => {
    const finish = (how: string) => {
      end ??= how;
      resolve();
    };
    child.once('error', (error) => finish(explain(error)));
    child.once('exit', (code, signal) => finish(`${signal === null ? `exit code ${code}` : `signal ${signal}`}${lastMessage(log)}`));
  });
  return {
    name,
    pid: child.pid ?? 0,
    end: () => end,
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      if (end !== undefined) return;
      child.kill('SIGTERM');
      await withTimeout(clock, STOP_TIMEOUT_MS, ended);
      if (end === undefined) child.kill('SIGKILL');
      await ended;
    },
  };
}

/** The environment without settings: a task id or an endpoint of the user's would spoil the demo. */
function withoutSettings(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(NODELEASE_|NODE_ID)/.test(name)));
}

/** The last line of a task's log, its message alone where it is JSON. */
function lastMessage(log: string): string {
  const line = log.trim().split('\n').at(-1) ?? '';
  if (line === '') return '';
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry === 'object' && entry !== null && 'msg' in entry) return `: ${String(entry.msg)}`;
  } catch {
    // Node's own message, such as that of a crash.
  }
  return `: ${line}`;
}
