import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { type Client, createClient } from 'node-zookeeper-client';
import { containerOrProcess } from './servers/container-or-process.js';
import { startZooKeeperContainer } from './servers/zookeeper-container.js';
import { startZooKeeperProcess, ZOOKEEPER_TIMES } from './servers/zookeeper-process.js';

/**
 * The most that the server grants. Longer than a test waits: what goes meanwhile was removed, and did not end
 * with the session.
 */
export const LONGEST_SESSION = '40s';

/** How to reach a ZooKeeper server. Plain data, so that it can be handed to test workers. */
export interface ZooKeeperAccess {
  /** The server, `host:port`, or several separated by commas; without a chroot. */
  readonly connect: string;
}

/** A ZooKeeper server that tests may use. */
export interface ZooKeeperServer extends ZooKeeperAccess {
  /** Where it came from, for people. */
  readonly description: string;
  /**
   * Stops the server and removes its data; of a server that was there before, only what this run's chroots
   * hold. Idempotent.
   */
  stop(): Promise<void>;
}

/** A server that is stopped for a while, or has much else to do, may take long. */
const ANSWERS_WITHIN_MS = 30_000;

/**
 * Starts, or finds, a real ZooKeeper server: the one that NODELEASE_TEST_ZOOKEEPER names, else one in a
 * container where a Docker API is reachable, else the local package as a process.
 *
 * @throws Error when there is none, or when it does not grant sessions as short as the tests need; tests are
 * never skipped for that
 */
export async function startZooKeeper(): Promise<ZooKeeperServer> {
  const connect = process.env.NODELEASE_TEST_ZOOKEEPER;
  if (connect) return external(connect);
  const server = await startAny();
  try {
    await assertUsable(server);
    return server;
  } catch (error) {
    await server.stop().catch(() => {});
    throw error;
  }
}

async function assertUsable({ connect, description }: Omit<ZooKeeperServer, 'stop'>): Promise<void> {
  const wanted = ZOOKEEPER_TIMES.minSessionTimeoutMs;
  const session = await openSession(connect, wanted).catch((error: unknown) => {
    throw new Error(`${description} cannot be used: ${String(error)}`);
  });
  const granted = session.getSessionTimeout();
  await end(session);
  if (granted > wanted)
    throw new Error(
      `${description} cannot be used: it grants no session shorter than ${granted} ms, and the tests need one of ${wanted} ms`,
    );
}

const startAny = () =>
  containerOrProcess<ZooKeeperServer>('ZooKeeper', 'NODELEASE_TEST_ZOOKEEPER_SERVER', {
    container: startZooKeeperContainer,
    async process() {
      const { connect, description, dispose } = await startZooKeeperProcess();
      return { connect, description, stop: dispose };
    },
  });

async function external(connect: string): Promise<ZooKeeperServer> {
  if (!/^[^\s,/:]+:\d+(,[^\s,/:]+:\d+)*$/.test(connect))
    throw new Error(
      `NODELEASE_TEST_ZOOKEEPER: expected HOST:PORT[,HOST:PORT…] without a chroot, got ${connect}`,
    );
  const description = `${connect} (NODELEASE_TEST_ZOOKEEPER)`;
  await assertUsable({ connect, description });
  // Only the process that marked this run's chroots knows when they are not used any longer.
  if (process.env[RUN_MARK]) return { connect, description, stop: async () => {} };
  const mark = randomBytes(4).toString('hex');
  process.env[RUN_MARK] = mark;
  return { connect, description, stop: () => removeChroots(connect, `nodelease-test-${mark}`) };
}

/** Set for the workers of a run, so that their chroots on a server that stays are known when the run ends. */
const RUN_MARK = 'NODELEASE_TEST_ZOOKEEPER_MARK';

/** A chroot that no other test uses, to be put behind `connect`. It is not made here. */
export function uniqueChroot(name?: string): string {
  return `/nodelease-test-${[process.env[RUN_MARK], name, randomBytes(6).toString('hex')].filter(Boolean).join('-')}`;
}

async function removeChroots(connect: string, prefix: string): Promise<void> {
  const client = await openSession(connect, 10_000);
  const children = (path: string) =>
    new Promise<string[]>((resolve, reject) =>
      client.getChildren(path, (error, names) => (error ? reject(error) : resolve(names))),
    );
  const remove = async (path: string): Promise<void> => {
    for (const name of await children(path)) await remove(`${path}/${name}`);
    await new Promise<void>((resolve, reject) =>
      client.remove(path, (error) => (error ? reject(error) : resolve())),
    );
  };
  try {
    for (const name of await children('/')) if (name.startsWith(prefix)) await remove(`/${name}`);
  } finally {
    await end(client);
  }
}

/** A session to be ended. */
export interface SessionToExpire {
  /** One or more of the servers; a server that cannot be reached is passed over. */
  readonly connect: string;
  /** As 16 hex digits, or as the client has it. */
  readonly sessionId: string | Buffer;
}

/**
 * Has a session expire on purpose: it is over, and its ephemeral znodes are gone, when this resolves. The
 * server takes away the client's connection, so that a client in this process learns it as soon as it comes
 * back. One in another process may come back before the end: in rare cases a server that stands alone then
 * leaves it connected and answers nothing, which it has to notice by itself.
 *
 * @throws Error when there is no such session, or no server can be reached
 */
export async function expireSession({ connect, sessionId }: SessionToExpire): Promise<void> {
  const id = Buffer.isBuffer(sessionId) ? sessionId.toString('hex') : sessionId;
  const password = sessionPassword(BigInt(`0x${id}`)).toString('hex');
  // This process is held up meanwhile on purpose, so that a client within it cannot come back too early.
  const answer = execFileSync(process.execPath, ['-e', END_SESSION, id, password, ...connect.split(',')], {
    encoding: 'utf8',
  });
  if (answer === 'unreachable') throw new Error(`no server of ${connect} can be reached`);
  if (answer === 'unknown') throw new Error(`there is no session ${id} on ${connect}`);
  if (answer !== 'ended') throw new Error(`session ${id} could not be ended on ${connect}`);
}

/**
 * Takes a session over from its client and ends it, at the first server that can be reached, until there is
 * no such session any more.
 */
const END_SESSION = `
const [id, password, ...servers] = process.argv.slice(1);
const int = (value) => { const bytes = Buffer.alloc(4); bytes.writeInt32BE(value); return bytes; };
const packet = (...parts) => Buffer.concat([int(parts.reduce((sum, part) => sum + part.length, 0)), ...parts]);
const connectRequest = packet(int(0), Buffer.alloc(8), int(10000), Buffer.from(id, 'hex'), int(16), Buffer.from(password, 'hex'));
const closeRequest = packet(int(1), int(-11));
const say = (answer) => process.stdout.write(answer);
let [reached, known, attempts] = [false, false, 0];
const again = () => (++attempts < 100 ? setTimeout(attempt, 20, [...servers]) : say('interrupted'));
const attempt = ([server, ...others]) => {
  if (!server) return reached ? again() : say('unreachable');
  const [, host, port] = /^(.*):(.*)$/.exec(server);
  const socket = require('node:net').connect(Number(port), host);
  let end;
  socket.setTimeout(${ANSWERS_WITHIN_MS}, () => socket.destroy());
  socket.on('error', () => {});
  socket.on('connect', () => {
    reached = true;
    socket.write(connectRequest);
  });
  // A granted time-out of nothing says that there is no such session.
  socket.once('data', (answer) => {
    end = answer.readInt32BE(8) > 0 ? 'known' : 'unknown';
    if (end === 'known') socket.write(closeRequest);
  });
  // The server closes the connection when the session is over, and when there is none.
  socket.on('close', () => {
    if (end === 'unknown') return say(known ? 'ended' : 'unknown');
    known ||= end === 'known';
    return known && end ? again() : attempt(others);
  });
};
attempt(servers);
`;

async function openSession(connect: string, timeoutMs: number): Promise<Client> {
  const client = createClient(connect, { sessionTimeout: timeoutMs, spinDelay: 50 });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Client>((resolve, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no session with ${connect} within ${ANSWERS_WITHIN_MS} ms`)),
        ANSWERS_WITHIN_MS,
      );
      client.once('connected', () => resolve(client));
      client.connect();
    });
  } catch (error) {
    client.close();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function end(client: Client): Promise<void> {
  await new Promise<void>((resolve) => {
    client.once('disconnected', resolve);
    client.close();
  });
}

/**
 * ZooKeeper derives a session's password from its id, with Java's generator of chance (java.util.Random) and
 * a number that is no secret.
 */
function sessionPassword(sessionId: bigint): Buffer {
  const bits48 = (1n << 48n) - 1n;
  const multiplier = 0x5deece66dn;
  let seed = (sessionId ^ 0xb3415c00n ^ multiplier) & bits48;
  const password = Buffer.alloc(16);
  for (let offset = 0; offset < password.length; offset += 4) {
    seed = (seed * multiplier + 0xbn) & bits48;
    password.writeUInt32LE(Number(seed >> 16n), offset);
  }
  return password;
}
