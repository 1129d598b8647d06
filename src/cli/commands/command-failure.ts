import { ConfigError, explain } from '../../base/errors.js';
import { ExitCode, exitCodeOf, exitCodeOfSignal } from '../exit-codes.js';
import type { Logger } from '../log/logger.js';
import { Interrupted } from '../run/signal-relay.js';

/**
 * Logs why a command that holds a node id has failed. The exit code that goes with it.
 *
 * @param whenInterrupted what follows the name of the signal that ended it
 * @throws {ConfigError} when it is one, for the caller to report
 */
export function reportCommandFailure(error: unknown, log: Logger, whenInterrupted = ''): number {
  if (error instanceof ConfigError) throw error;
  if (error instanceof Interrupted) {
    log.info({ signal: error.signal }, `${error.message}${whenInterrupted}`);
    return exitCodeOfSignal(error.signal);
  }
  const code = exitCodeOf(error);
  // A stack trace is for the level debug, and for a fault of ours.
  const detail = log.isLevelEnabled('debug') || code === ExitCode.internal ? { err: error } : {};
  log.fatal({ ...detail, exitCode: code }, explain(error));
  return code;
}
