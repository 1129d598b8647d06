import { inspect } from 'node:util';
import { aborted } from '../../core/base/abort.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { storeKindOf } from '../../core/store/stores.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../../node/runtime/opened-store.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import type { Settings, ZooKeeperSettings } from '../settings/settings.js';
import { complain, fail } from './answer.js';
import { EXIT_CODES, ExitCode, exitCodeOfSignal, exitCodeOfStop, failureCode, type Io } from './io.js';
import type { Logger } from './log/logger.js';
import { Interrupted, SignalRelay } from './terminal/signal-relay.js';

/** One call of a command. */
export interface Call<Options = object, Needed extends Settings = Settings> {
  /** As they are on the command line. */
  readonly options: Options & { readonly json?: boolean };
  readonly settings: Needed;
  readonly io: Io;
}

/** The settings of a command that cannot do without ZooKeeper. */
export type WithZooKeeper = Settings & { readonly zookeeper: ZooKeeperSettings };
/** One call of such a command. */
export type ZooKeeperCall<Options = object> = Call<Options, WithZooKeeper>;

/** Opens the store, lets `act` work on it, and closes it. Resolves and throws as {@link reported} does. */
export function onStore(call: Call, act: (session: StoreSession) => Promise<number>): Promise<number> {
  return reported(call, () => onStoreAt(call, call.settings.store, act));
}

/** The same at another URL than the one in the settings, and without a report. */
export async function onStoreAt<T>(
  { settings, io }: Call,
  url: string,
  act: (session: StoreSession) => Promise<T>,
): Promise<T> {
  const store = await openedStore({ ...settings, store: url }, io);
  try {
    return await act(new StoreSession(store, io.clock, REQUEST_TIMEOUT_MS));
  } finally {
    await store.close();
  }
}

/**
 * Reports warnings and failures of `act` on standard error, each in one line. Resolves to the exit code, also
 * when a signal has interrupted it.
 *
 * @throws {ConfigError} when a setting is unusable, for the caller to report
 */
export async function reported({ settings, io }: Call, act: () => Promise<number>): Promise<number> {
  io.onWarning((warning) => complain(io, `warning: ${explain(warning)}`));
  try {
    return await act();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof Interrupted) return exitCodeOfSignal(error.signal);
    return reportFailure(error, settings, io);
  }
}

/**
 * Takes the signals of the process while `work` runs: one that asks for an end aborts the signal that `work`
 * gets.
 *
 * @throws {Interrupted} when `work` has failed after that
 */
export async function interruptible<T>(io: Io, work: (interrupted: AbortSignal) => Promise<T>): Promise<T> {
  const relay = new SignalRelay(io.signals);
  try {
    return await work(relay.interrupted);
  } catch (error) {
    // A request that is given up because of a signal fails in its own words.
    relay.interrupted.throwIfAborted();
    throw error;
  } finally {
    relay.close();
  }
}

/** Resolves to the interruption once a signal of {@link interruptible} aborts. */
export function interruption(signal: AbortSignal): Promise<Interrupted> {
  return aborted(signal) as Promise<Interrupted>;
}

/**
 * Lets `work` run until a signal of {@link interruptible} aborts, which ends it: resolves to the exit code, 0
 * for SIGINT and SIGTERM.
 */
export async function watching(signal: AbortSignal, work: () => Promise<void>): Promise<number> {
  try {
    await work();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return exitCodeOfStop((await interruption(signal)).signal);
}

/**
 * Reports a failure in one line. Returns its exit code. A stack trace follows at the log level debug, and for
 * a fault of nodelease itself.
 */
export function reportFailure(error: unknown, { logLevel }: Settings, io: Io): number {
  const exitCode = fail(io, failureCode(error), explain(error));
  if (logLevel === 'debug' || logLevel === 'trace' || exitCode === ExitCode.internal)
    io.stderr(`${inspect(error)}\n`);
  return exitCode;
}

/**
 * Logs why a command that has a log has failed. Returns the exit code.
 *
 * @param whenInterrupted what follows the name of the signal that ended it
 * @throws {ConfigError} when it is one, for the caller to report
 */
export function logFailure(error: unknown, log: Logger, whenInterrupted = ''): number {
  if (error instanceof ConfigError) throw error;
  if (error instanceof Interrupted) {
    log.info({ signal: error.signal }, `${error.message}${whenInterrupted}`);
    return exitCodeOfSignal(error.signal);
  }
  const code = failureCode(error);
  const exitCode = EXIT_CODES[code];
  const detail = log.isLevelEnabled('debug') || exitCode === ExitCode.internal ? { err: error } : {};
  log.fatal({ ...detail, exitCode, code }, explain(error));
  return exitCode;
}

/** Logs the end of a command that works until a signal ends it. Returns the exit code. */
export function logEnd({ signal }: Interrupted, log: Logger): number {
  log.info({ signal }, `${signal}: ending`);
  return exitCodeOfStop(signal);
}

/**
 * Whether a cluster can be seen from another thread or process: a fixed node id is leased nowhere, and only
 * its holder sees `memory:`.
 */
export function isVisible({ nodeId, provider, store }: Settings): boolean {
  return nodeId === undefined && (provider === 'zookeeper' || storeKindOf(store)?.sharedBy !== 'process');
}

/** The call, where ZooKeeper gives out the node ids; undefined where they are leased from a store. */
export function onAllocated<Options>({
  settings,
  ...call
}: Call<Options>): ZooKeeperCall<Options> | undefined {
  const { provider, zookeeper } = settings;
  return provider === 'zookeeper' && zookeeper
    ? { ...call, settings: { ...settings, zookeeper } }
    : undefined;
}

/**
 * Connects to ZooKeeper, lets `act` work with it, and ends the session. Resolves and throws as
 * {@link reported} does. A signal of the process aborts the signal that `act` gets.
 */
export function onZooKeeper(
  call: ZooKeeperCall,
  act: (zookeeper: ZooKeeper, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  return onConnecting(call, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    return act(zookeeper, signal);
  });
}

/** The same, without waiting for the connection. */
export function onConnecting(
  call: ZooKeeperCall,
  act: (zookeeper: ZooKeeper, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const { settings, io } = call;
  return reported(call, () =>
    interruptible(io, async (signal) => {
      const zookeeper = await connectTo(settings.zookeeper, io);
      try {
        return await act(zookeeper, signal);
      } finally {
        await zookeeper.close();
      }
    }),
  );
}

/**
 * Begins to connect to ZooKeeper, in the background; its code is loaded then. The first connection, and each
 * request, may take five seconds.
 * @throws {ConfigError} when a setting turns out to be unusable
 */
export async function connectTo(
  { connect, auth, tls, sessionTimeoutMs }: ZooKeeperSettings,
  { clock, random }: Pick<Io, 'clock' | 'random'>,
): Promise<ZooKeeper> {
  const { openZooKeeper } = await import('../../zookeeper/client/zookeeper-client.js');
  const operationTimeoutMs = REQUEST_TIMEOUT_MS;
  return openZooKeeper({ connect, auth, tls, sessionTimeoutMs, operationTimeoutMs, clock, random });
}
