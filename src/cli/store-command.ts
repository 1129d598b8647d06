import { inspect } from 'node:util';
import type { Settings } from '../config.js';
import { ConfigError, explain } from '../errors.js';
import { StoreSession } from '../lease/store-session.js';
import { ExitCode, exitCodeOf, exitCodeOfSignal } from './exit-codes.js';
import { printable } from './ink.js';
import type { Io } from './io.js';
import { Interrupted } from './signal-relay.js';

/** How long one request to the store may take, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

/**
 * Opens the store, lets `act` work on it, and closes it: the frame of every command that is not `run`.
 * Resolves to the exit code; a failure has been reported by then, in one line on standard error.
 *
 * @throws {ConfigError} when a setting turns out to be unusable, for the caller to report
 */
export async function onStore(settings: Settings, io: Io, act: (session: StoreSession) => Promise<number>): Promise<number> {
  const { store: url, endpoint, region } = settings;
  const { clock, random } = io;
  io.onWarning((warning) => complain(io, `warning: ${explain(warning)}`));
  try {
    const { openStore } = await import('../store/open-store.js');
    const options = { clock, random, requestTimeoutMs: REQUEST_TIMEOUT_MS };
    const store = await openStore(url, {
      ...options,
      ...(endpoint !== undefined && { endpoint }),
      ...(region !== undefined && { region }),
    });
    try {
      return await act(new StoreSession(store, clock, REQUEST_TIMEOUT_MS));
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
