import { closeSync } from 'node:fs';
import { explain } from '../../core/base/errors.js';
import { type Call, logFailure } from '../kit/call.js';
import { ExitCode } from '../kit/exit-codes.js';
import { type Logger, loggerFor } from '../kit/log/logger.js';
import type { Io } from '../kit/terminal/io.js';
import { SignalRelay } from '../kit/terminal/signal-relay.js';
import { type Child, ChildStartError, inheritedFiles, startChild } from './child.js';
import { lookUpCommand } from './command-lookup.js';
import { canGuard, type Guard, SHELL, startGuard } from './guard.js';
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
  if (lookup !== 'executable') {
    io.stderr(`nodelease: ${file}: ${lookup === 'not-found' ? 'command not found' : 'not executable'}\n`);
    return lookup === 'not-found' ? ExitCode.notFound : ExitCode.notExecutable;
  }
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
    for (const file of files) closeSync(file);
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
      log.fatal(explain(error));
      return { exitCode: error.missing ? ExitCode.notFound : ExitCode.notExecutable, workEnded: true };
    }
  }
}
