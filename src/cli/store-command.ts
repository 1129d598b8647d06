import { inspect } from 'node:util';
import type { Settings } from '../config.js';
import { ConfigError, explain } from '../errors.js';
import { StoreSession } from '../lease/store-session.js';
import { ExitCode, exitCodeOf, exitCodeOfSignal } from './exit-codes.js';
import type { Io } from './io.js';
import { openedStore, REQUEST_TIMEOUT_MS } from './opened-store.js';
import { Interrupted } from './signal-relay.js';
import { printable } from './text.js';

/**
 * Opens the store, lets `act` work on it, and closes it: the frame of every command that is not `run`.
 * Resolves to the exit code; a failure has been reported by then, in one line on standard error.
 *
 * @throws {ConfigError} when a setting turns out to be unusable, for the caller to report
 */
export async function onStore(settings: Settings, io: Io, act: (session: StoreSession) => Promise<number>): Promise<number> {
  io.onWarning((warning) => complain(io, `warning: ${explain(warning)}`));
  try {
    const store = await openedStore(settings, io);
    try {
      return await act(new StoreSession(store, io.clock, REQUEST_TIMEOUT_MS));
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof Interrupted) return exitCodeOfSignal(error.signal);
    return reportFailure(error, settings, io);
  }
}

/** One line on standard error, and the exit code that goes with the error. Only who asks for details, or meets a fault of ours, is shown a stack trace. */
export function reportFailure(error: unknown, { logLevel }: Pick<Settings, 'logLevel'>, io: Pick<Io, 'stderr'>): number {
  const code = exitCodeOf(error);
  complain(io, explain(error));
  if (logLevel === 'debug' || logLevel === 'trace' || code === ExitCode.internal) io.stderr(`${inspect(error)}\n`);
  return code;
}

/** One line on standard error. */
export function complain(io: Pick<Io, 'stderr'>, text: string): void {
  io.stderr(`nodelease: ${printable(text)}\n`);
}

/** One line of the answer. */
export function say(io: Pick<Io, 'stdout'>, text: string): void {
  io.stdout(`${printable(text)}\n`);
}
