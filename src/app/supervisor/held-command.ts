import type { Clock } from '../../core/base/clock.js';
import { WaitTimeoutError } from '../../core/base/errors.js';
import type { Call } from '../kit/call.js';
import { ExitCode } from '../kit/exit-codes.js';
import { type HoldingOptions, waitTimeout } from '../kit/holding.js';
import type { Logger } from '../kit/log/logger.js';
import type { Held } from './held.js';
import { type SupervisedCommand, withCommand } from './supervised-command.js';

/** What a command runs for: a lock, or whatever else has a fencing token and may be lost. */
export interface Hold extends Held {
  readonly token: bigint;
  release(): Promise<void>;
}

interface HeldCommandOptions {
  /** What follows `--`. */
  readonly command: readonly string[];
  /**
   * Acquires it, `again` where it has been held before, and lost. The signal aborts with `Interrupted` when a
   * signal asks for an end. The time-out is in milliseconds, undefined for without limit.
   */
  readonly acquire: (request: {
    readonly log: Logger;
    readonly signal: AbortSignal;
    readonly again: boolean;
    readonly timeoutMs: number | undefined;
  }) => Promise<Hold>;
  /** The command's variables, in addition to those of this process and the token. */
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * Acquires something, runs a command while it is held, and releases it when no work is left. Resolves to the
 * command's exit code, or to the one for what kept it from running; a failure has been logged by then.
 *
 * @throws {ConfigError} when it is called wrongly
 */
export async function runHeldCommand(
  call: Call<HoldingOptions>,
  { command, acquire, variables }: HeldCommandOptions,
): Promise<number> {
  const { io } = call;
  const { restart = false } = call.options;
  const timeoutMs = waitTimeout(call.options);
  return withCommand(call, command, restart, async (supervised, log, signals) => {
    try {
      for (let again = false; ; again = true) {
        const hold = await acquire({ log, signal: signals.interrupted, again, timeoutMs });
        const ended = new AbortController();
        void followDeadline(supervised, hold, io.clock, ended.signal);
        const env = { ...io.env, ...variables, LOCK_TOKEN: String(hold.token) };
        const run = supervised.run({ lease: hold, env, log });
        const { exitCode, workEnded } = await run.finally(() => ended.abort());
        const isLost = exitCode === ExitCode.leaseLost && !hold.isValid();
        // Where work may be left, it is not for others before it has expired (rule 8).
        if (workEnded) await hold.release();
        if (!isLost || !workEnded || !restart || signals.hasAskedToStop) return exitCode;
        log.info('standing again, to start the command again');
      }
    } catch (error) {
      // Others hold it. Without waiting that is an answer, and after a time-out worth a look. Its causes would
      // speak of what it is made of.
      if (!(error instanceof WaitTimeoutError)) throw error;
      log[timeoutMs === 0 ? 'info' : 'warn']({ exitCode: ExitCode.acquireTimeout }, error.message);
      return ExitCode.acquireTimeout;
    }
  });
}

/**
 * How often the guard gets the deadline: after a share of what is left before it, and not more often
 * than this, in milliseconds.
 */
const SENT_AFTER = { share: 1 / 4, minMs: 50 };

/**
 * Keeps the guard's deadline as late as the hold's. A guard that learns of a renewal late strikes too early,
 * never too late.
 */
async function followDeadline(
  command: SupervisedCommand,
  hold: Hold,
  clock: Clock,
  ended: AbortSignal,
): Promise<void> {
  for (let sent = hold.deadline; ; ) {
    const leftMs = sent - clock.monotonic();
    await clock.sleep(Math.max(SENT_AFTER.minMs, leftMs * SENT_AFTER.share), ended).catch(() => undefined);
    // The next run has its own guard, which this deadline is not for.
    if (ended.aborted || !hold.isValid()) return;
    if (hold.deadline === sent) continue;
    sent = hold.deadline;
    command.extend(sent);
  }
}
