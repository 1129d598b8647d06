import type { Settings, ZooKeeperSettings } from '../config.js';
import { ConfigError, explain } from '../errors.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { exitCodeOfSignal } from './exit-codes.js';
import type { Io } from './io.js';
import { Interrupted, SignalRelay } from './signal-relay.js';
import { complain, reportFailure } from './store-command.js';

/** How long the first connection, and each request, may take, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

/**
 * Begins to connect to ZooKeeper, lets `act` work with it, and ends the session: the frame of every command that is about ZooKeeper alone.
 * Resolves to the exit code; a failure has been reported by then, in one line on standard error. A signal aborts the one that `act` is given.
 *
 * @throws {ConfigError} when a setting turns out to be unusable, for the caller to report
 */
export async function onZooKeeper(
  settings: Settings & { readonly zookeeper: ZooKeeperSettings },
  io: Io,
  act: (zookeeper: ZooKeeper, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  io.onWarning((warning) => complain(io, `warning: ${explain(warning)}`));
  const signals = new SignalRelay(io.signals);
  try {
    const zookeeper = await connectTo(settings.zookeeper, io);
    try {
      return await act(zookeeper, signals.interrupted);
    } finally {
      await zookeeper.close();
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    // A request that a signal has given up fails in its own words.
    const interruption: unknown = signals.interrupted.reason ?? error;
    if (interruption instanceof Interrupted) return exitCodeOfSignal(interruption.signal);
    return reportFailure(error, settings, io);
  } finally {
    signals.close();
  }
}

/**
 * Begins to connect to ZooKeeper, in the background. Its code is loaded when it is needed, and not before.
 *
 * @throws {ConfigError} when a setting turns out to be unusable
 */
export async function connectTo(
  { connect, auth, sessionTimeoutMs }: Pick<ZooKeeperSettings, 'connect' | 'auth' | 'sessionTimeoutMs'>,
  { clock, random }: Pick<Io, 'clock' | 'random'>,
): Promise<ZooKeeper> {
  const { openZooKeeper } = await import('../zookeeper/zookeeper-client.js');
  return openZooKeeper({
    connect,
    sessionTimeoutMs,
    operationTimeoutMs: REQUEST_TIMEOUT_MS,
    clock,
    random,
    ...(auth !== undefined && { auth }),
  });
}
