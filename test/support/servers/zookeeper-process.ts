import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect as openSocket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { installed } from '../installed.js';
import { freePort } from './free-ports.js';
import { type LocalServer, localServer, started } from './local-server.js';

const READY_WITHIN_MS = 120_000;

/**
 * The settings of a server of the tests, whatever it runs in. The shortest session that it grants is one
 * second.
 */
export const ZOOKEEPER_TIMES = {
  tickTimeMs: 500,
  minSessionTimeoutMs: 1_000,
  maxSessionTimeoutMs: 40_000,
} as const;

/** The questions that a server of the tests may be asked by {@link fourLetter}. */
export const FOUR_LETTER_WORDS = ['ruok', 'srvr', 'mntr', 'cons', 'dump', 'wchp'] as const;

/** How to start a server. */
export interface ZooKeeperProcessOptions {
  /** The clients' port on 127.0.0.1. @default a free one */
  readonly port?: number;
  /**
   * Where the data lies; kept at the end when it is given.
   * @default a folder of its own, removed at the end
   */
  readonly dataDir?: string;
  /** The server's unit of time, in milliseconds: it looks for expired sessions that often. @default 500 */
  readonly tickTimeMs?: number;
  /** The shortest session time-out that it grants, in milliseconds. @default 1000 */
  readonly minSessionTimeoutMs?: number;
  /** The longest one, in milliseconds. @default 40000 */
  readonly maxSessionTimeoutMs?: number;
  /** Further lines of its configuration file, such as `{ readonlymode.enabled: 'true' }`. @default none */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * The server's number within an ensemble, whose members `settings` name.
   * @default a server that stands alone
   */
  readonly memberId?: number;
}

/**
 * A server under a test's control. Its data is kept from `stop()` or `kill()` to `start()`; a member of an
 * ensemble may not serve at once.
 */
export interface ZooKeeperProcess extends Omit<LocalServer, 'folder'> {
  /** `127.0.0.1:PORT`, also while it does not run. */
  readonly connect: string;
  readonly port: number;
  readonly description: string;
  /** What it is now; undefined while it does not serve, for example without a quorum. */
  mode(): Promise<'standalone' | 'leader' | 'follower' | undefined>;
}

/**
 * The class path of the local ZooKeeper, installed at need.
 *
 * @throws Error when there is none and it cannot be installed
 */
export function findZooKeeper(): Promise<string> {
  return installed(
    'install-zookeeper.sh',
    [],
    'start Docker, install zookeeper (Debian or Ubuntu: apt-get), or set NODELEASE_TEST_ZOOKEEPER to HOST:PORT of a server of your own',
  );
}

/**
 * Starts a server of the local package on 127.0.0.1.
 *
 * @throws Error with the end of its log when it does not get ready, or when there is no local package
 */
export async function startZooKeeperProcess(
  options: ZooKeeperProcessOptions = {},
): Promise<ZooKeeperProcess> {
  const classPath = await findZooKeeper();
  return started(await prepare(classPath, options.port ?? (await freePort()), options));
}

async function prepare(
  classPath: string,
  port: number,
  options: ZooKeeperProcessOptions,
): Promise<ZooKeeperProcess> {
  const mode: ZooKeeperProcess['mode'] = async () => {
    const answer = await fourLetter(port, 'srvr').catch(() => '');
    return /^Mode: (standalone|leader|follower)$/m.exec(answer)?.[1] as
      | 'standalone'
      | 'leader'
      | 'follower'
      | undefined;
  };
  const server = await localServer({
    name: 'ZooKeeper',
    launch: (folder) => {
      const main = [
        '-cp',
        classPath,
        'org.apache.zookeeper.server.quorum.QuorumPeerMain',
        join(folder, 'zoo.cfg'),
      ];
      return { command: 'java', args: [...JAVA_OPTIONS, ...main] };
    },
    // It answers before it serves; a member serves only once there is a quorum, which is not for it to wait
    // for.
    isReady: async () =>
      (await isOk(port)) && (options.memberId !== undefined || (await mode()) !== undefined),
  });
  const dataDir = options.dataDir ?? join(server.folder, 'data');
  await mkdir(dataDir, { recursive: true });
  await writeFile(join(server.folder, 'zoo.cfg'), configuration(port, dataDir, options));
  if (options.memberId !== undefined) await writeFile(join(dataDir, 'myid'), `${options.memberId}\n`);
  const { start, stop, kill, pause, resume, dispose } = server;
  return {
    ...{ connect: `127.0.0.1:${port}`, port, start, stop, kill, pause, resume, dispose, mode },
    get pid() {
      return server.pid;
    },
    get description() {
      return `127.0.0.1:${port}, process ${server.pid ?? '(ended)'} of the local package`;
    },
  };
}

// The system's crash is not what is tested, so nothing is gained by waiting for the disk; a log file is made
// 1 MB at a time, not 64.
const JAVA_OPTIONS = [
  '-Xmx128m',
  '-XX:+UseSerialGC',
  '-Dzookeeper.forceSync=no',
  '-Dzookeeper.preAllocSize=1024',
];

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
  const timer = setTimeout(
    () => socket.destroy(new Error(`${host}:${port} did not answer ${word} within ${timeoutMs} ms`)),
    timeoutMs,
  );
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
 * Asks ZooKeeper's own command line client: `zkCli(connect, ['ls', '/path'])`,
 * `zkCli(connect, ['get', '/path'])`.
 *
 * @returns what it answered, without the lines about its connection: for `ls` a text such as `[a, b]`
 * @throws Error with what it said, for example that there is no such znode
 */
export async function zkCli(connect: string, command: readonly string[]): Promise<string> {
  const quiet = [
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=off',
  ];
  // Java writes in the surroundings' encoding otherwise, which under the locale C has no letters beyond
  // ASCII: the property's name is another from Java 19 on.
  const utf8 = ['-Dfile.encoding=UTF-8', '-Dsun.stdout.encoding=UTF-8', '-Dstdout.encoding=UTF-8'];
  const client = [
    '-cp',
    await findZooKeeper(),
    'org.apache.zookeeper.ZooKeeperMain',
    '-server',
    connect,
    ...command,
  ];
  const { stdout } = await run('java', [...quiet, ...utf8, ...client], { timeout: READY_WITHIN_MS });
  return stdout
    .replace(/^Connecting to .*\n/, '')
    .replace(/\nWATCHER::\n\nWatchedEvent .*\n/g, '')
    .trim();
}
