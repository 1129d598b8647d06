import { connect } from 'node:net';
import { withTimeout } from '../base/abort.js';
import { explain, NodeLeaseError } from '../errors.js';
import type { ZooKeeperSettings } from '../settings/settings.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import type { Io } from './io.js';
import { connectTo } from './zookeeper-command.js';

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

/**
 * Connects to one server, and has it give a session, which is ended again.
 *
 * @throws `signal.reason` when it aborts
 */
export async function checkServer(
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
  const socket = connect({ host, port });
  try {
    const answered = new Promise<{ readonly problem: string | undefined }>((resolve) => {
      socket.once('connect', () => resolve({ problem: undefined }));
      socket.on('error', (error) => resolve({ problem: connectProblem(error) }));
    });
    const answer = await withTimeout(clock, LIMIT_MS, answered, signal);
    return answer === undefined ? 'no answer: neither a connection nor a refusal' : answer.problem;
  } finally {
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
