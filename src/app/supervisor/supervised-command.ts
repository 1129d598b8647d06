import { closeSync } from 'node:fs';
import { explain } from '../../core/base/errors.js';
import { ExitCode, UsageError } from '../kit/exit-codes.js';
import type { Logger } from '../kit/log/logger.js';
import type { Io } from '../kit/terminal/io.js';
import type { SignalRelay } from '../kit/terminal/signal-relay.js';
import { type Child, ChildStartError, startChild } from './child.js';
import { lookUpCommand } from './command-lookup.js';
import { canGuard, type Guard, SHELL, startGuard } from './guard.js';
import { type SuperviseOptions, supervise, type WorkEnd } from './supervisor.js';

/** A command and its arguments. */
type CommandWords = readonly [file: string, ...args: string[]];

/**
 * The command that follows `--`. Where it cannot be executed, that has been reported, and this is the
 * exit code.
 *
 * @param example a call of nodelease that has one
 * @throws {UsageError} where there is none
 */
export function commandToRun(
  [file, ...args]: readonly string[],
  example: string,
  io: Io,
): CommandWords | number {
  if (file === undefined)
    throw new UsageError(`no command given: expected one after --, as in "nodelease ${example}"`);
  const lookup = lookUpCommand(file, io.env.PATH);
  if (lookup === 'executable') return [file, ...args];
  io.stderr(`nodelease: ${file}: ${lookup === 'not-found' ? 'command not found' : 'not executable'}\n`);
  return lookup === 'not-found' ? ExitCode.notFound : ExitCode.notExecutable;
}

export interface SupervisedCommandOptions {
  readonly command: CommandWords;
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
