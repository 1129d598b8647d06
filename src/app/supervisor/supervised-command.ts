import type { Clock } from '../../core/base/clock.js';
import { explain, WaitTimeoutError } from '../../core/base/errors.js';
import { taskProtector } from '../../core/base/host/task-protection.js';
import { fail } from '../kit/answer.js';
import { type Call, logFailure } from '../kit/call.js';
import { type HoldingOptions, waitTimeout } from '../kit/holding.js';
import { EXIT_CODES, ExitCode, type Io } from '../kit/io.js';
import { type Logger, loggerFor } from '../kit/log/logger.js';
import { SignalRelay } from '../kit/terminal/signal-relay.js';
import { type Child, ChildStartError, closeInherited, inheritedFiles, startChild } from './child.js';
import { lookUpCommand } from './command-lookup.js';
import { canGuard, type Guard, SHELL, startGuard } from './guard.js';
import type { Held } from './held.js';
import { type SuperviseOptions, supervise, type WorkEnd } from './supervisor.js';

/**
 * Lets `work` run a command. Resolves to its exit code, or to the one for what kept the command from running,
 * which has been reported or logged by then.
 *
 * @param words the command and its arguments
 * @param restarts whether it may be run more than once
 * @throws {ConfigError} when `work` does
 */
export async function withCommand(
  { settings, io }: Pick<Call, 'settings' | 'io'>,
  [file = '', ...args]: readonly string[],
  restarts: boolean,
  work: (command: SupervisedCommand, log: Logger, signals: SignalRelay) => Promise<number>,
): Promise<number> {
  const lookup = lookUpCommand(file, io.env.PATH);
  if (lookup === 'not-found') return fail(io, 'COMMAND_NOT_FOUND', `${file}: command not found`);
  if (lookup === 'not-executable') return fail(io, 'COMMAND_NOT_EXECUTABLE', `${file}: not executable`);
  // The first of several runs must not close what the next one's guard needs.
  const files = restarts ? [] : inheritedFiles();
  const signals = new SignalRelay(io.signals);
  const log = await loggerFor(settings, io);
  try {
    return await work(new SupervisedCommand({ command: [file, ...args], files, io, signals }), log, signals);
  } catch (error) {
    return logFailure(error, log, ' before the command was started');
  } finally {
    signals.close();
  }
}

interface SupervisedCommandOptions {
  readonly command: readonly [file: string, ...args: string[]];
  /** The result of `inheritedFiles`. */
  readonly files: readonly number[];
  readonly io: Pick<Io, 'env' | 'clock' | 'keyboard'>;
  readonly signals: SignalRelay;
}

/** One run of the command. */
interface SupervisedRun extends Pick<SuperviseOptions, 'lease' | 'beforeStop' | 'onRetire' | 'restart'> {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** The command has been started. */
  readonly onStart?: (child: Child) => void;
}

/** A command that runs while something is held, supervised here, and by a guard where there can be one. */
export class SupervisedCommand {
  #guard: Guard | undefined;

  constructor(private readonly options: SupervisedCommandOptions) {}

  /** What is held now is held until `deadline`, in milliseconds on the monotonic clock. */
  extend(deadline: number): void {
    this.#guard?.extend(deadline);
  }

  /** Runs the command once: see `supervise`. */
  async run({ env, log, onStart, ...run }: SupervisedRun): Promise<WorkEnd> {
    const { command, files, io, signals } = this.options;
    const guarded = canGuard(io.env.PATH);
    if (guarded) this.#guard = startGuard({ clock: io.clock, path: io.env.PATH });
    else
      log.warn(
        `no ${SHELL} or no sleep here: nothing will stop the command when this process is killed or paused`,
      );
    // The guard has them now, and with them a lock that the starter of this process holds until the work has
    // ended.
    closeInherited(files);
    try {
      return await supervise({
        ...run,
        clock: io.clock,
        log,
        guard: this.#guard,
        signals,
        keyboard: io.keyboard,
        start: async () => {
          const child = await startChild({ command, env, gated: guarded });
          onStart?.(child);
          return child;
        },
      });
    } catch (error) {
      // For any other error the child may be running: then the guard ends it, as soon as this process is
      // gone.
      if (!(error instanceof ChildStartError)) throw error;
      this.#guard?.done();
      const { code } = error;
      log.fatal({ code }, explain(error));
      return { exitCode: EXIT_CODES[code], workEnded: true };
    }
  }
}

/** What a command runs for: a lock, or whatever else has a fencing token and may be lost. */
export interface Hold extends Held {
  readonly token: bigint;
  release(): Promise<void>;
}

/** What a hold is acquired with. */
export interface HoldRequest {
  readonly log: Logger;
  /** Aborts with `Interrupted` when a signal asks for an end. */
  readonly signal: AbortSignal;
  /** Whether it has been held before, and lost. */
  readonly again: boolean;
  /** In milliseconds; undefined for without limit. */
  readonly timeoutMs: number | undefined;
}

interface HeldCommandOptions<Own extends Hold> {
  /** What follows `--`. */
  readonly command: readonly string[];
  /** Acquires it. Undefined ends this with 0: there is nothing to do. */
  readonly acquire: (request: HoldRequest) => Promise<Own | undefined>;
  /** The command's variables, in addition to those of this process and the token. */
  readonly variables: (hold: Own) => Readonly<Record<string, string>>;
  /**
   * Releases it after the work has ended with this exit code. Resolves to whether to acquire it again.
   * @default after a loss with --restart
   */
  readonly end?: (hold: Own, exitCode: number, log: Logger) => Promise<boolean>;
}

/**
 * Acquires something, runs a command while it is held, and releases it when no work is left. Resolves to the
 * command's exit code, or to the one for what kept it from running; a failure has been logged by then.
 *
 * @throws {ConfigError} when it is called wrongly
 */
export async function runHeldCommand<Own extends Hold>(
  call: Call<HoldingOptions>,
  { command, acquire, variables, end }: HeldCommandOptions<Own>,
): Promise<number> {
  const { io } = call;
  const { restart = false } = call.options;
  const timeoutMs = waitTimeout(call.options);
  return withCommand(call, command, restart || end !== undefined, async (supervised, log, signals) => {
    // One for all runs: the removal for one may still be under way when the next begins.
    const protect = call.settings.ecsProtect && taskProtector({ ...io, log });
    try {
      for (let again = false; ; again = true) {
        const hold = await acquire({ log, signal: signals.interrupted, again, timeoutMs });
        if (hold === undefined) return ExitCode.ok;
        const ended = new AbortController();
        void followDeadline(supervised, hold, io.clock, ended.signal);
        const env = {
          ...io.env,
          ...variables(hold),
          NODELEASE_ECS_PROTECT: undefined,
          LOCK_TOKEN: String(hold.token),
        };
        const unprotect = protect?.();
        const run = supervised.run({ lease: hold, env, log });
        const { exitCode, workEnded } = await run.finally(() => ended.abort());
        const unprotected = unprotect?.();
        const isLost = exitCode === ExitCode.leaseLost && !hold.isValid();
        // Where work may be left, it is not for others before it has expired (rule 8).
        const runsAgain =
          workEnded &&
          (await (end ? end(hold, exitCode, log) : hold.release().then(() => isLost && restart)));
        await unprotected;
        if (!runsAgain || signals.hasAskedToStop) return exitCode;
        log.info('rejoining the queue, to start the command again');
      }
    } catch (error) {
      // Others hold it. Without waiting that is an answer, and after a time-out worth a look. Its causes would
      // speak of what it is made of.
      if (!(error instanceof WaitTimeoutError)) throw error;
      const { code, message } = error;
      const exitCode = EXIT_CODES[code];
      log[timeoutMs === 0 ? 'info' : 'warn']({ exitCode, code }, message);
      return exitCode;
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
async function followDeadline(command: SupervisedCommand, hold: Hold, clock: Clock, ended: AbortSignal) {
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
