import { connect } from 'node:net';
import { explain, NodeLeaseError } from '../../base/errors.js';
import type { ZooKeeperSettings } from '../../settings/settings.js';
import { formatServer } from '../../zookeeper/connect-string.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import { connectTo } from '../commands/zookeeper-command.js';
import type { Io } from '../terminal/io.js';
import { formatSetting } from '../terminal/text.js';
import type { Finding } from './finding.js';
import { checkRights, type RightsReport } from './zookeeper-rights-check.js';

/** Whether one of the servers can be used, by itself. */
export interface ServerCheck {
  /** As it stands in the connect string: host and port. */
  readonly server: string;
  readonly ok: boolean;
  /** From the first packet until there is a session, in milliseconds; null where there is none. */
  readonly latencyMs: number | null;
  /** Why it cannot be used; null where it can. */
  readonly problem: string | null;
}

/** How long a connection, and then a session, may take, in milliseconds. */
const LIMIT_MS = 2_500;

/** What `doctor --json` prints of ZooKeeper: every field is always there, null where there is nothing to say. */
export interface ZooKeeperDiagnosis {
  /** The connect string. */
  readonly zookeeper: string;
  /** False: at least one finding is a fault. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  /** Each by itself, in the order of the connect string. */
  readonly servers: readonly ServerCheck[];
  /** How long a session outlives its connection, in milliseconds: as asked for, and as granted. */
  readonly sessionTimeoutMs: { readonly asked: number; readonly granted: number | null };
  /** The median times of requests that read, and that write, in milliseconds; null when they did not get through. */
  readonly latencyMs: { readonly read: number; readonly write: number } | null;
}

/**
 * Examines ZooKeeper: each server by itself, the session, and the rights in the tree. What it finds, failures included, are findings; its
 * scratch znodes are gone afterwards.
 *
 * @param allocates whether node ids come from ZooKeeper alone
 * @throws {ConfigError} when a setting turns out to be unusable
 * @throws `signal.reason` when it aborts
 */
export async function examineZooKeeper(
  settings: ZooKeeperSettings,
  allocates: boolean,
  io: Pick<Io, 'clock' | 'random'>,
  signal?: AbortSignal,
): Promise<ZooKeeperDiagnosis> {
  const { connect, sessionTimeoutMs: asked } = settings;
  const findings: Finding[] = [];
  let granted: number | null = null;
  let rights: RightsReport | undefined;
  const single = connect.servers.map((server) =>
    checkServer({ servers: [server], chroot: '', text: formatServer(server) }, settings, io, signal),
  );
  // All of them, before anything is thrown: none of their sessions is left behind.
  await Promise.allSettled(single);
  const servers = await Promise.all(single);
  findings.push(...serverFindings(servers));
  // Who cannot be reached by any way need not be waited for once more.
  if (servers.some(({ ok }) => ok)) {
    const whole = { ...connect, chroot: '', text: connect.servers.map(formatServer).join(',') };
    const zookeeper = await connectTo({ ...settings, connect: whole }, io);
    try {
      ({ timeoutMs: granted } = await zookeeper.whenConnected({ signal }));
      findings.push(sessionFinding(asked, granted));
      rights = await checkRights(zookeeper, { chroot: connect.chroot, allocates }, io, signal);
      findings.push(...rightsFindings(rights, settings));
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof NodeLeaseError)) throw error;
      findings.push({ id: 'zookeeper-session', title: 'session', status: 'fault', detail: explain(error) });
    } finally {
      await zookeeper.close();
    }
  }
  signal?.throwIfAborted();
  return {
    zookeeper: connect.text,
    ok: findings.every(({ status }) => status !== 'fault'),
    findings,
    servers,
    sessionTimeoutMs: { asked, granted },
    latencyMs: rights?.latencyMs ?? null,
  };
}

/** One server out of several may be down; that is what they are several for. */
function serverFindings(servers: readonly ServerCheck[]): Finding[] {
  const usable = servers.some(({ ok }) => ok);
  return servers.map(({ server, latencyMs, problem }) => ({
    id: 'zookeeper-server',
    title: `server ${server}`,
    status: problem === null ? 'ok' : usable ? 'warning' : 'fault',
    detail: problem ?? `a session within ${(latencyMs ?? 0).toFixed(1)} ms`,
  }));
}

function sessionFinding(asked: number, granted: number): Finding {
  const times = `asked to outlive its connection by ${formatSetting(asked)}, granted ${formatSetting(granted)}`;
  const finding = { id: 'zookeeper-session', title: 'session' };
  return granted === asked
    ? { ...finding, status: 'ok', detail: times }
    : { ...finding, status: 'warning', detail: `${times}, by the bounds of the servers` };
}

function rightsFindings({ chroot, denied, failed, left, latencyMs }: RightsReport, { connect, auth }: ZooKeeperSettings): Finding[] {
  const findings: Finding[] = [];
  if (chroot !== undefined) {
    const detail = chroot === 'present' ? 'is there' : 'is not there yet, and can be made';
    findings.push({ id: 'zookeeper-chroot', title: `chroot ${connect.chroot}`, status: 'ok', detail });
  }
  const why =
    auth === undefined
      ? 'no credentials are given: --zookeeper-auth'
      : 'the credentials of --zookeeper-auth are wrong, or have no right to';
  const problems = [...denied.map((text) => `${text} (${why})`), ...failed];
  if (problems.length === 0) {
    findings.push({
      id: 'zookeeper-rights',
      title: 'rights',
      status: 'ok',
      detail: 'znodes can be made, read, changed and removed everywhere',
    });
  }
  findings.push(...problems.map((detail): Finding => ({ id: 'zookeeper-rights', title: 'rights', status: 'fault', detail })));
  if (latencyMs !== undefined) {
    const detail = `${latencyMs.read.toFixed(1)} ms to read, ${latencyMs.write.toFixed(1)} ms to write (medians)`;
    findings.push({ id: 'zookeeper-latency', title: 'latency', status: 'ok', detail });
  }
  if (left.length > 0) {
    const detail = `left behind, remove by hand: ${left.join(', ')}`;
    findings.push({ id: 'zookeeper-clean-up', title: 'scratch znodes', status: 'warning', detail });
  }
  return findings;
}

/**
 * Connects to one server, and has it give a session, which is ended again.
 *
 * @throws `signal.reason` when it aborts
 */
async function checkServer(
  { servers: [server], text }: ZooKeeperSettings['connect'],
  settings: ZooKeeperSettings,
  io: Pick<Io, 'clock' | 'random'>,
  signal?: AbortSignal,
): Promise<ServerCheck> {
  const unusable = (problem: string): ServerCheck => ({ server: text, ok: false, latencyMs: null, problem });
  const begun = io.clock.monotonic();
  const problem = server && (await reach(server, io, signal));
  signal?.throwIfAborted();
  if (problem !== undefined) return unusable(problem);
  const zookeeper = await connectTo({ ...settings, connect: { servers: server ? [server] : [], chroot: '', text } }, io);
  try {
    await zookeeper.whenConnected({ timeoutMs: LIMIT_MS, signal });
    return { server: text, ok: true, latencyMs: io.clock.monotonic() - begun, problem: null };
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof NodeLeaseError)) throw error;
    return unusable(
      `takes connections, but gives no session${isFault(error, 'timeout') ? ': no quorum, or no ZooKeeper server' : ''} (${explain(error)})`,
    );
  } finally {
    await zookeeper.close();
  }
}

/** Why no connection is to be had; undefined where there is one. */
async function reach(
  { host, port }: { readonly host: string; readonly port: number },
  { clock }: Pick<Io, 'clock'>,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const done = new AbortController();
  const socket = connect({ host, port });
  const giveUp = signal === undefined ? done.signal : AbortSignal.any([signal, done.signal]);
  try {
    const connected = new Promise<string | undefined>((resolve) => {
      socket.once('connect', () => resolve(undefined));
      socket.on('error', (error) => resolve(connectProblem(error)));
    });
    const late = clock.sleep(LIMIT_MS, giveUp).then(
      () => 'no answer: neither a connection nor a refusal',
      () => 'interrupted',
    );
    return await Promise.race([connected, late]);
  } finally {
    done.abort();
    socket.destroy();
  }
}

function connectProblem(error: Error): string {
  // A host of several addresses fails with a collection of its failures.
  const [first = error] = error instanceof AggregateError ? error.errors.filter((each) => each instanceof Error) : [];
  switch ('code' in first ? first.code : undefined) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `unknown host (${explain(first)})`;
    case 'ECONNREFUSED':
      return `nobody listens there (${explain(first)})`;
    default:
      return `cannot be reached (${explain(first)})`;
  }
}
