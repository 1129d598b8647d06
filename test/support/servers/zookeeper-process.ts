import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect as openSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { packageRoot } from '../package-root.js';
import { freePort } from './free-ports.js';

const READY_WITHIN_MS = 30_000;
const STOPPED_WITHIN_MS = 5_000;

/** What a server of the tests is told, whatever it runs in. The shortest session that it grants is one second. */
export const ZOOKEEPER_TIMES = { tickTimeMs: 500, minSessionTimeoutMs: 1_000, maxSessionTimeoutMs: 40_000 } as const;

/** The questions that a server of the tests may be asked by {@link fourLetter}. */
export const FOUR_LETTER_WORDS = ['ruok', 'srvr', 'mntr', 'cons', 'dump', 'wchp'] as const;

// Ends the server and removes its folder when the test run dies without doing so: then the pipe on its stdin closes. On the
// pipe it is told the server's pid at every start, and `-` at every end, since the pid may soon belong to somebody else.
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

/** How to start a server. */
export interface ZooKeeperProcessOptions {
  /** The clients' port on 127.0.0.1. @default a free one */
  readonly port?: number;
  /** Where the data lies; kept at the end when it is given. @default a folder of its own, removed at the end */
  readonly dataDir?: string;
  /** The server's unit of time, in milliseconds: it looks for expired sessions that often. @default 500 */
  readonly tickTimeMs?: number;
  /** The shortest session time-out that it grants, in milliseconds. @default 1000 */
  readonly minSessionTimeoutMs?: number;
  /** The longest one, in milliseconds. @default 40000 */
  readonly maxSessionTimeoutMs?: number;
  /** Further lines of its configuration file, such as `{ readonlymode.enabled: 'true' }`. @default none */
  readonly settings?: Readonly<Record<string, string>>;
  /** The server's number within an ensemble, whose members `settings` name. @default a server that stands alone */
  readonly memberId?: number;
}

/** A server under a test's control. It ends with this process, whatever ends that, and its folder goes with it. */
export interface ZooKeeperProcess {
  /** `127.0.0.1:PORT`, also while it does not run. */
  readonly connect: string;
  readonly port: number;
  readonly description: string;
  /** Undefined while it does not run. */
  readonly pid: number | undefined;
  /** Starts it again on the same port and data, when it does not run. Resolves when it answers; a member of an ensemble may not serve yet. */
  start(): Promise<void>;
  /** Ends it as an operator does (SIGTERM); the data is kept for `start()`. Resolves when it has ended, at once when it does not run. */
  stop(): Promise<void>;
  /** Ends it as a crash does (SIGKILL); the data is kept for `start()`. */
  kill(): Promise<void>;
  /** Stops it in its tracks (SIGSTOP): connections stay open and nothing is answered, until `resume()`. */
  pause(): void;
  /** Lets it go on (SIGCONT). */
  resume(): void;
  /** What it is now; undefined while it does not serve, for example without a quorum. */
  mode(): Promise<'standalone' | 'leader' | 'follower' | undefined>;
  /** Ends it for good and removes its folder. Idempotent. */
  dispose(): Promise<void>;
}

/**
 * The class path of the local ZooKeeper, installed at need.
 *
 * @throws Error when there is none and it cannot be installed
 */
export async function findZooKeeper(): Promise<string> {
  const install = spawn('sh', [join(packageRoot, 'test/support/install/install-zookeeper.sh')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [path, [code]] = await Promise.all([text(install.stdout), once(install, 'close') as Promise<[number | null]>]);
  if (code !== 0) throw new Error(`ZooKeeper could not be installed (exit code ${code}); the reason stands above`);
  return path.trim();
}

/**
 * Starts a server of the local package on 127.0.0.1.
 *
 * @throws Error with the end of its log when it does not get ready, or when there is no local package
 */
export async function startZooKeeperProcess(options: ZooKeeperProcessOptions = {}): Promise<ZooKeeperProcess> {
  const classPath = await findZooKeeper();
  const attempts = options.port === undefined ? 3 : 1;
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await freePort());
    const server = await prepare(classPath, port as number, options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.dispose();
      // Between finding a free port and the server's binding it somebody else may have taken it.
      if (attempt === attempts) throw error;
    }
  }
}

async function prepare(classPath: string, port: number, options: ZooKeeperProcessOptions): Promise<ZooKeeperProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-zookeeper-'));
  const watcher = spawn('/bin/sh', ['-c', WATCHER, 'watcher', folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  watcher.stdin.on('error', () => {});
  watcher.unref();
  const logFile = join(folder, 'zookeeper.log');
  const configFile = join(folder, 'zoo.cfg');
  const dataDir = options.dataDir ?? join(folder, 'data');
  await mkdir(dataDir, { recursive: true });
  await writeFile(configFile, configuration(port, dataDir, options));
  if (options.memberId !== undefined) await writeFile(join(dataDir, 'myid'), `${options.memberId}\n`);

  let running: { process: ChildProcess; ended: Promise<unknown> } | undefined;

  const launch = () => {
    const log = openSync(logFile, 'a');
    // In a session of its own, so that Ctrl-C on the test run leaves the ending to the tests or to the watcher.
    const child = spawn('java', [...JAVA_OPTIONS, '-cp', classPath, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', configFile], {
      cwd: folder,
      detached: true,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    const ended = new Promise<void>((resolve) => {
      child.once('exit', resolve);
      child.once('error', () => resolve());
    }).then(() => {
      if (running?.process === child) running = undefined;
      watcher.stdin.write('-\n');
    });
    watcher.stdin.write(`${child.pid ?? '-'}\n`);
    // May not hold up the end of the test run; the watcher then does the rest.
    child.unref();
    running = { process: child, ended };
  };

  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (!running) return;
    const { process: child, ended } = running;
    child.ref();
    child.kill(signal);
    child.kill('SIGCONT');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOPPED_WITHIN_MS);
    await ended;
    clearTimeout(timer);
  };

  const server: ZooKeeperProcess = {
    connect: `127.0.0.1:${port}`,
    port,
    get pid() {
      return running?.process.pid;
    },
    get description() {
      return `127.0.0.1:${port}, process ${running?.process.pid ?? '(ended)'} of the local package`;
    },
    async start() {
      if (running) return;
      launch();
      try {
        await ready();
      } catch (error) {
        await end('SIGKILL');
        const log = await readFile(logFile, 'utf8').catch(() => '');
        throw new Error(`ZooKeeper did not get ready: ${String(error)}\n${log.slice(-2000)}`);
      }
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    pause: () => void running?.process.kill('SIGSTOP'),
    resume: () => void running?.process.kill('SIGCONT'),
    async mode() {
      const answer = await fourLetter(port, 'srvr').catch(() => '');
      return /^Mode: (standalone|leader|follower)$/m.exec(answer)?.[1] as 'standalone' | 'leader' | 'follower' | undefined;
    },
    async dispose() {
      await end('SIGKILL');
      watcher.stdin.end('done\n');
      await rm(folder, { recursive: true, force: true });
    },
  };

  const ready = async () => {
    const deadline = performance.now() + READY_WITHIN_MS;
    while (performance.now() < deadline) {
      if (!running) throw new Error('it ended');
      // It answers before it serves; a member serves only once there is a quorum, which is not for it to wait for.
      if ((await isOk(port)) && (options.memberId !== undefined || (await server.mode()))) return;
      await sleep(25);
    }
    throw new Error(`no answer within ${READY_WITHIN_MS} ms`);
  };

  return server;
}

// The system's crash is not what is tested, so nothing is gained by waiting for the disk; a log file is made 1 MB at a time, not 64.
const JAVA_OPTIONS = ['-Xmx128m', '-XX:+UseSerialGC', '-Dzookeeper.forceSync=no', '-Dzookeeper.preAllocSize=1024'];

function configuration(port: number, dataDir: string, options: ZooKeeperProcessOptions): string {
  const { tickTimeMs, minSessionTimeoutMs, maxSessionTimeoutMs } = { ...ZOOKEEPER_TIMES, ...options };
  const settings = {
    tickTime: tickTimeMs,
    minSessionTimeout: minSessionTimeoutMs,
    maxSessionTimeout: maxSessionTimeoutMs,
    dataDir,
    clientPort: port,
    clientPortAddress: '127.0.0.1',
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': FOUR_LETTER_WORDS.join(','),
    ...options.settings,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

/** True when a server answers there, and exactly as it should: a refusal begins with the same letters. */
export async function isOk(port: number, host = '127.0.0.1'): Promise<boolean> {
  return (await fourLetter(port, 'ruok', { host, timeoutMs: 1_000 }).catch(() => '')).trim() === 'imok';
}

/**
 * Asks a server one of the questions that are four letters long.
 *
 * @throws Error when it cannot be reached, or does not answer within `timeoutMs` milliseconds
 */
export async function fourLetter(
  port: number,
  word: (typeof FOUR_LETTER_WORDS)[number],
  { host = '127.0.0.1', timeoutMs = 2_000 }: { host?: string; timeoutMs?: number } = {},
): Promise<string> {
  const socket = openSocket(port, host);
  const timer = setTimeout(() => socket.destroy(new Error(`${host}:${port} did not answer ${word} within ${timeoutMs} ms`)), timeoutMs);
  try {
    socket.write(word);
    return await text(socket);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

const run = promisify(execFile);

/**
 * Asks ZooKeeper's own command line client: `zkCli(connect, ['ls', '/path'])`, `zkCli(connect, ['get', '/path'])`.
 *
 * @returns what it answered, without the lines about its connection: for `ls` a text such as `[a, b]`
 * @throws Error with what it said, for example that there is no such znode
 */
export async function zkCli(connect: string, command: readonly string[]): Promise<string> {
  const quiet = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=off'];
  // Java writes in the surroundings' encoding otherwise, which under the locale C has no letters beyond ASCII: the property's name is another from Java 19 on.
  const utf8 = ['-Dfile.encoding=UTF-8', '-Dsun.stdout.encoding=UTF-8', '-Dstdout.encoding=UTF-8'];
  const client = ['-cp', await findZooKeeper(), 'org.apache.zookeeper.ZooKeeperMain', '-server', connect, ...command];
  const { stdout } = await run('java', [...quiet, ...utf8, ...client], { timeout: READY_WITHIN_MS });
  return stdout
    .replace(/^Connecting to .*\n/, '')
    .replace(/\nWATCHER::\n\nWatchedEvent .*\n/g, '')
    .trim();
}
