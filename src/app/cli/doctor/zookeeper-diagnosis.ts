import { connect as connectSocket } from 'node:net';
import { withTimeout } from '../../../core/base/abort.js';
import { explain } from '../../../core/base/errors.js';
import { formatServer, type ServerAddress } from '../../../zookeeper/client/connect-string.js';
import { isFault } from '../../../zookeeper/client/zookeeper.js';
import { connectTo } from '../../kit/call.js';
import { type Finding, failureOf, faultOf, finding, isSound } from '../../kit/finding.js';
import type { Io } from '../../kit/io.js';
import { formatSetting } from '../../kit/terminal/text.js';
import { mixedServices } from '../../services/mixed-services.js';
import type { ZooKeeperSettings } from '../../settings/settings.js';
import { checkRights, type RightsCheck } from './zookeeper-rights-check.js';

/** How long a connection, and then a session, may take, in milliseconds. */
const LIMIT_MS = 2_500;

/** How ZooKeeper is examined. */
interface ExamineZooKeeperOptions extends Pick<Io, 'clock' | 'random'> {
  readonly settings: ZooKeeperSettings;
  /** Whether node ids come from ZooKeeper alone. */
  readonly allocates: boolean;
  readonly signal: AbortSignal;
}

/**
 * What `doctor --json` prints of ZooKeeper: every field is always there, null where there is nothing to say.
 */
export type ZooKeeperDiagnosis = Awaited<ReturnType<typeof examineZooKeeper>>;

/**
 * Examines ZooKeeper: each server by itself, the session, and the rights in the tree. What it finds, failures
 * included, are findings; its scratch znodes are gone afterwards.
 *
 * @throws {ConfigError} when a setting turns out to be unusable
 * @throws `options.signal.reason` when it aborts
 */
export async function examineZooKeeper(options: ExamineZooKeeperOptions) {
  const { settings, signal } = options;
  const { connect, sessionTimeoutMs: asked } = settings;
  const checks = connect.servers.map((server) => checkServer(server, options));
  // All of them, before anything is thrown: no session of theirs is left behind.
  await Promise.allSettled(checks);
  const servers = await Promise.all(checks);
  const findings = serverFindings(servers);
  let granted: number | null = null;
  let rights: RightsCheck | undefined;
  // Otherwise the session would wait for servers that cannot be reached.
  if (servers.some(({ ok }) => ok)) {
    const whole = { ...connect, chroot: '', text: connect.servers.map(formatServer).join(',') };
    const zookeeper = await connectTo({ ...settings, connect: whole }, options);
    try {
      ({ timeoutMs: granted } = await zookeeper.whenConnected({ signal }));
      const times = `asked to outlive its connection by ${formatSetting(asked)}, granted ${formatSetting(granted)}`;
      findings.push(
        granted === asked
          ? finding('zookeeper-session', 'ok', times)
          : finding('zookeeper-session', 'warning', `${times}, by the bounds of the servers`),
      );
      rights = await checkRights({ ...options, zookeeper, chroot: connect.chroot });
      findings.push(
        ...rightsFindings(rights, settings),
        ...(await mixedServices(zookeeper, options)).map((problem) =>
          finding('mixed-payloads', 'warning', problem),
        ),
      );
    } catch (error) {
      findings.push(faultOf('zookeeper-session', error, signal));
    } finally {
      await zookeeper.close();
    }
  }
  signal.throwIfAborted();
  return {
    /** The connect string. */
    zookeeper: connect.text,
    /** False: at least one finding is a fault. */
    ok: isSound(findings),
    findings,
    /** Each by itself, in the order of the connect string. */
    servers,
    /** How long a session outlives its connection, in milliseconds: as asked for, and as granted. */
    sessionTimeoutMs: { asked, granted },
    /**
     * The median times of requests that read, and that write, in milliseconds; null when they did not get
     * through.
     */
    latencyMs: rights?.latencyMs ?? null,
  };
}

/** Whether one of the servers can be used, by itself. */
interface ServerCheck {
  /** As it is in the connect string: host and port. */
  readonly server: string;
  readonly ok: boolean;
  /** From the first packet until there is a session, in milliseconds; null where there is none. */
  readonly latencyMs: number | null;
  /** Why it cannot be used; null where it can. */
  readonly problem: string | null;
}

/** One server out of several may be down: the others serve. */
function serverFindings(servers: readonly ServerCheck[]): Finding[] {
  const failed = servers.some(({ ok }) => ok) ? 'warning' : 'fault';
  return servers.map(({ server, latencyMs, problem }) => {
    const detail = problem ?? `a session within ${(latencyMs ?? 0).toFixed(1)} ms`;
    return finding('zookeeper-server', problem === null ? 'ok' : failed, detail, `server ${server}`);
  });
}

function rightsFindings(
  { chroot, denied, failed, left, latencyMs }: RightsCheck,
  { connect, auth }: ZooKeeperSettings,
): Finding[] {
  const findings: Finding[] = [];
  const found = (...of: Parameters<typeof finding>) => findings.push(finding(...of));
  if (chroot !== undefined) {
    const detail = chroot === 'present' ? 'is there' : 'is not there yet, and can be made';
    found('zookeeper-chroot', 'ok', detail, `chroot ${connect.chroot}`);
  }
  const why =
    auth === undefined
      ? 'no credentials are given: --zookeeper-auth'
      : 'the credentials of --zookeeper-auth are wrong, or have no right to';
  const problems = [...denied.map((text) => `${text} (${why})`), ...failed];
  for (const problem of problems) found('zookeeper-rights', 'fault', problem);
  if (problems.length === 0)
    found('zookeeper-rights', 'ok', 'znodes can be made, read, changed and removed everywhere');
  if (latencyMs !== undefined) {
    const { read, write } = latencyMs;
    const medians = `${read.toFixed(1)} ms to read, ${write.toFixed(1)} ms to write (medians)`;
    found('zookeeper-latency', 'ok', medians);
  }
  if (left.length > 0)
    found(
      'zookeeper-clean-up',
      'warning',
      `left behind, remove by hand: ${left.join(', ')}`,
      'scratch znodes',
    );
  return findings;
}

/**
 * Connects to one server, and has it give a session, which is ended again.
 * @throws `options.signal.reason` when it aborts
 */
async function checkServer(server: ServerAddress, options: ExamineZooKeeperOptions): Promise<ServerCheck> {
  const { settings, signal, clock } = options;
  const text = formatServer(server);
  // The first handshake of a server may take seconds.
  const timeoutMs = settings.tls ? 2 * LIMIT_MS : LIMIT_MS;
  const unusable = (problem: string): ServerCheck => ({ server: text, ok: false, latencyMs: null, problem });
  const begun = clock.monotonic();
  const socket = connectSocket(server);
  const connected = new Promise<string>((resolve) => {
    socket.once('connect', () => resolve(''));
    socket.on('error', (error) => resolve(connectProblem(error)));
  });
  const problem = await withTimeout(clock, LIMIT_MS, connected, signal).finally(() => socket.destroy());
  if (problem !== '') return unusable(problem ?? 'no answer: neither a connection nor a refusal');
  const alone = { servers: [server], chroot: '', text };
  const zookeeper = await connectTo({ ...settings, connect: alone }, options);
  try {
    await zookeeper.whenConnected({ timeoutMs, signal });
    return { server: text, ok: true, latencyMs: clock.monotonic() - begun, problem: null };
  } catch (error) {
    const failure = failureOf(error, signal);
    const guess =
      isFault(failure, 'timeout') && !settings.tls ? ': no quorum, read-only, or no ZooKeeper server' : '';
    return unusable(`takes connections, but gives no session${guess} (${explain(failure)})`);
  } finally {
    await zookeeper.close();
  }
}

function connectProblem(error: Error): string {
  // A host of several addresses fails with a collection of its failures.
  const [first = error] =
    error instanceof AggregateError ? error.errors.filter((each) => each instanceof Error) : [];
  switch ('code' in first ? first.code : undefined) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `unknown host (${explain(first)})`;
    case 'ECONNREFUSED':
      return `no server listens there (${explain(first)})`;
    default:
      return `cannot be reached (${explain(first)})`;
  }
}
