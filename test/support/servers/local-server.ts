import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Some are written in Java or Python, and the machine may be loaded. One that has ended is not waited for.
 */
const READY_WITHIN_MS = 120_000;
const STOPPED_WITHIN_MS = 5_000;

// Ends the server and removes its folder when the test run dies without doing so: then the pipe on its stdin
// closes. On the pipe it gets the server's pid at every start, and `-` at every end, since the pid may
// soon belong to somebody else.
const WATCHER = `
pid=-
while read -r line; do
  [ "$line" != done ] || exit 0
  pid=$line
done
if [ "$pid" != - ]; then
  kill -KILL "$pid" 2>/dev/null
  tries=0
  while kill -0 "$pid" 2>/dev/null && [ $tries -lt 20 ]; do sleep 0.1; tries=$((tries + 1)); done
fi
rm -rf "$1"
`;

/**
 * A server's process under a test's control. It ends with this process, whatever ends that, and its folder
 * goes with it.
 */
export interface LocalServer {
  /** Its own, removed at the end. */
  readonly folder: string;
  /** Undefined while it does not run. */
  readonly pid: number | undefined;
  /**
   * Starts it, when it does not run. Resolves when it is ready.
   * @throws Error with the end of its log when it does not get ready
   */
  start(): Promise<void>;
  /** Ends it as an operator does (SIGTERM). Resolves when it has ended, at once when it does not run. */
  stop(): Promise<void>;
  /** Ends it as a crash does (SIGKILL). */
  kill(): Promise<void>;
  /** Stops it in its tracks (SIGSTOP): connections stay open and nothing is answered, until `resume()`. */
  pause(): void;
  /** Lets it go on (SIGCONT). */
  resume(): void;
  /** Ends it for good and removes its folder. Idempotent. */
  dispose(): Promise<void>;
}

/** A program, and what it is given. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** All of its environment. @default that of this process */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** How a server is started. */
export interface LocalServerOptions {
  /** For errors, and in lower case for the folder. */
  readonly name: string;
  /** Asked at every start. */
  readonly launch: (folder: string) => Launch | Promise<Launch>;
  readonly isReady: () => Promise<boolean>;
}

/**
 * Starts a server. Where it does not get ready, nothing of it is left.
 * @throws Error with the end of its log
 */
export async function started<T extends Pick<LocalServer, 'start' | 'dispose'>>(server: T): Promise<T> {
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.dispose();
    throw error;
  }
}

/** Makes a server with a folder of its own, and does not start it yet. */
export async function localServer({ name, launch, isReady }: LocalServerOptions): Promise<LocalServer> {
  const folder = await mkdtemp(join(tmpdir(), `nodelease-${name.toLowerCase()}-`));
  const watcher = spawn('/bin/sh', ['-c', WATCHER, 'watcher', folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.stdin.on('error', () => {});
  watcher.unref();
  const logFile = join(folder, `${name.toLowerCase()}.log`);
  let running: { process: ChildProcess; ended: Promise<unknown> } | undefined;
  let end: unknown;

  const run = async () => {
    const { command, args, env } = await launch(folder);
    const log = openSync(logFile, 'a');
    // In a session of its own, so that Ctrl-C on the test run leaves the ending to the tests or to the
    // watcher.
    const child = spawn(command, args, { cwd: folder, detached: true, stdio: ['ignore', log, log], env });
    closeSync(log);
    const ended = new Promise<unknown>((resolve) => {
      child.once('exit', (code, signal) => resolve(code ?? signal));
      child.once('error', resolve);
    }).then((how) => {
      end = how;
      if (running?.process === child) running = undefined;
      watcher.stdin.write('-\n');
    });
    watcher.stdin.write(`${child.pid ?? '-'}\n`);
    // May not hold up the end of the test run; the watcher then does the rest.
    child.unref();
    running = { process: child, ended };
  };

  const stop = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (!running) return;
    const { process: child, ended } = running;
    child.ref();
    child.kill(signal);
    child.kill('SIGCONT');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOPPED_WITHIN_MS);
    await ended;
    clearTimeout(timer);
  };

  const ready = async () => {
    const deadline = performance.now() + READY_WITHIN_MS;
    while (performance.now() < deadline) {
      if (!running) throw new Error(`it ended with ${end}`);
      if (await isReady()) return;
      await sleep(25);
    }
    throw new Error(`no answer within ${READY_WITHIN_MS} ms`);
  };

  return {
    folder,
    get pid() {
      return running?.process.pid;
    },
    async start() {
      if (running) return;
      await run();
      try {
        await ready();
      } catch (error) {
        await stop('SIGKILL');
        const log = await readFile(logFile, 'utf8').catch(() => '');
        throw new Error(`${name} did not get ready: ${String(error)}\n${log.slice(-2000)}`);
      }
    },
    stop: () => stop('SIGTERM'),
    kill: () => stop('SIGKILL'),
    pause: () => void running?.process.kill('SIGSTOP'),
    resume: () => void running?.process.kill('SIGCONT'),
    async dispose() {
      await stop('SIGKILL');
      watcher.stdin.end('done\n');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
