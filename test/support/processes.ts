import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from './package-root.js';

/** How a process ended: one of the two is null. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process under test. Its output is kept as text. */
export interface TestProcess {
  readonly pid: number;
  /** What it has written so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when it has ended and its output has been read. */
  readonly exit: Promise<ProcessEnd>;
  /** Sends it a signal; false when it has ended already. */
  kill(signal: NodeJS.Signals): boolean;
  /**
   * Resolves as soon as `pattern` is found in one of its outputs, also in what it wrote before the call.
   *
   * @throws Error with its output when that did not come within `ms` milliseconds (60,000 by default), or
   * when it ended without it
   */
  waitForOutput(pattern: RegExp, ms?: number): Promise<RegExpExecArray>;
}

/** How to start a process. */
export interface ProcessOptions {
  /**
   * Added to the surroundings' environment, from which every variable of nodelease, AWS and ECS has been
   * taken out.
   */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Written to its standard input, which is then closed. @default nothing, closed at once */
  readonly stdin?: string;
}

/**
 * How long a condition that a test merely waits for may take where the machine has much else to do, in
 * milliseconds.
 */
const LOADED_MACHINE_MS = 60_000;
/** How long to wait for the end of the output when descendants keep it open, in milliseconds. */
const OUTPUT_GRACE_MS = 500;

const running = new Set<ChildProcess>();

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** The file that package.json names as the command, as built: run it with Node. */
export const cliFile: string = join(
  packageRoot,
  (JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { bin: { nodelease: string } }).bin
    .nodelease,
);

/** Runs the built command line as a user does: `runCli(['status', '--json'])`. */
export function runCli(args: readonly string[], options: ProcessOptions = {}): TestProcess {
  return runProcess(process.execPath, [cliFile, ...args], options);
}

/**
 * Runs any command, to be ended by {@link killAll} at the latest.
 *
 * @throws Error when it cannot be started
 */
export function runProcess(
  command: string,
  args: readonly string[],
  options: ProcessOptions = {},
): TestProcess {
  const child = spawn(command, args, {
    cwd: options.cwd ?? packageRoot,
    env: { ...cleanEnvironment(), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) {
    child.on('error', () => {});
    throw new Error(`${command} could not be started`);
  }
  running.add(child);
  child.stdin.on('error', () => {});
  child.stdin.end(options.stdin ?? '');
  const output = { stdout: '', stderr: '' };
  const listeners = new Set<() => void>();
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
      for (const listener of listeners) listener();
    });
  }
  const exit = ended(child);
  return {
    pid,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    exit,
    kill: (signal) => child.kill(signal),
    waitForOutput: (pattern, ms = LOADED_MACHINE_MS) =>
      new Promise((resolve, reject) => {
        // A global or sticky pattern would remember where it stopped.
        const stateless = new RegExp(pattern, pattern.flags.replace(/[gy]/g, ''));
        const look = () => {
          const found = stateless.exec(output.stdout) ?? stateless.exec(output.stderr);
          if (!found) return;
          done();
          resolve(found);
        };
        const fail = (why: string) => {
          done();
          reject(
            new Error(
              `${args.join(' ')}: no ${pattern} in its output ${why}\nstdout: ${output.stdout}\nstderr: ${output.stderr}`,
            ),
          );
        };
        const timer = setTimeout(() => fail(`within ${ms} ms`), ms);
        const done = () => {
          clearTimeout(timer);
          listeners.delete(look);
        };
        listeners.add(look);
        void exit.then((end) => {
          if (listeners.has(look)) fail(`before it ended with ${end.code ?? end.signal}`);
        });
        look();
      }),
  };
}

/**
 * Ends, with SIGKILL, every process started here that still runs, and waits for their ends: for `afterEach`.
 */
export async function killAll(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    }),
  );
}

async function ended(child: ChildProcess): Promise<ProcessEnd> {
  const closed = once(child, 'close');
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  running.delete(child);
  // Descendants may hold its output open for as long as they like.
  await Promise.race([closed, sleep(OUTPUT_GRACE_MS, undefined, { ref: false })]);
  // Where this process was too busy to read meanwhile, what the child has written itself is still in its
  // pipes.
  const pipes = [child.stdout, child.stderr] as (Socket | null)[];
  const bytes = () => pipes.reduce((sum, pipe) => sum + (pipe?.bytesRead ?? 0), 0);
  for (let turn = 0, before = -1; turn < 100 && before < bytes(); turn += 1) {
    before = bytes();
    await nextTurn();
  }
  // What an orphan writes is read for as long as there is something else to do.
  for (const pipe of pipes) pipe?.unref();
  return { code, signal };
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const foreign = /^(NODELEASE_|AWS_|AZURE_|ECS_|GOOGLE_|NODE_ID|STORAGE_EMULATOR_|PG[A-Z]+$)/;
  const clean = Object.entries(process.env).filter(([name]) => !foreign.test(name));
  // Whether a test runs on an old Node makes no difference to what it expects.
  return { ...Object.fromEntries(clean), AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' };
}
