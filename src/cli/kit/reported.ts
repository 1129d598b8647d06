import { inspect } from 'node:util';
import { aborted } from '../../base/abort.js';
import { ConfigError, explain } from '../../base/errors.js';
import { StoreSession } from '../../lease/session/store-session.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../../runtime/opened-store.js';
import type { Settings } from '../../settings/settings.js';
import { ExitCode, exitCodeOf, exitCodeOfSignal, exitCodeOfStop } from '../exit-codes.js';
import type { Logger } from '../log/logger.js';
import type { Io } from '../terminal/io.js';
import { Interrupted, SignalRelay } from '../terminal/signal-relay.js';
import { complain } from './answer.js';
import type { Call } from './command-row.js';

/** Opens the store, lets `act` work on it, and closes it. Resolves and throws as {@link reported} does. */
export function onStore(call: Call, act: (session: StoreSession) => Promise<number>): Promise<number> {
  return reported(call, async () => {
    const store = await openedStore(call.settings, call.io);
    try {
      return await act(new StoreSession(store, call.io.clock, REQUEST_TIMEOUT_MS));
    } finally {
      await store.close();
    }
  });
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
export async function interruptible<T>(
  { signals }: Pick<Io, 'signals'>,
  work: (interrupted: AbortSignal) => Promise<T>,
): Promise<T> {
  const relay = new SignalRelay(signals);
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
export function reportFailure(
  error: unknown,
  { logLevel }: Pick<Settings, 'logLevel'>,
  io: Pick<Io, 'stderr'>,
): number {
  const code = exitCodeOf(error);
  complain(io, explain(error));
  if (logLevel === 'debug' || logLevel === 'trace' || code === ExitCode.internal)
    io.stderr(`${inspect(error)}\n`);
  return code;
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
  const code = exitCodeOf(error);
  const detail = log.isLevelEnabled('debug') || code === ExitCode.internal ? { err: error } : {};
  log.fatal({ ...detail, exitCode: code }, explain(error));
  return code;
}

/** Logs the end of a command that works until a signal ends it. Returns the exit code. */
export function logEnd({ signal }: Interrupted, log: Pick<Logger, 'info'>): number {
  log.info({ signal }, `${signal}: ending`);
  return exitCodeOfStop(signal);
}
