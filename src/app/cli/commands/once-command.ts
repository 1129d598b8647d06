import { checkLockName } from '../../../node/locks/lock-place.js';
import { forgetTicks, type OnceOptions, oncePer } from '../../../node/locks/once.js';
import type { OnceRun } from '../../../node/locks/once-run.js';
import { MAX_MISSED } from '../../../node/locks/tick.js';
import { say } from '../../kit/answer.js';
import { type Call, reported } from '../../kit/call.js';
import type { HoldingOptions } from '../../kit/holding.js';
import { ExitCode, UsageError } from '../../kit/io.js';
import type { Logger } from '../../kit/log/logger.js';
import { formatTime, pluralize } from '../../kit/terminal/text.js';
import { runHeldCommand } from '../../supervisor/supervised-command.js';
import { lockOptions, lockSettings } from './lock-options.js';

/** The options of `once`, as they are on the command line. */
type Options = Pick<HoldingOptions, 'timeout'> &
  Pick<OnceOptions, 'every' | 'offset' | 'cron' | 'tz' | 'retry' | 'catchUp'> & { readonly forget?: boolean };

/** `nodelease once NAME -- command`: runs the command for the due tick, unless that has run elsewhere. */
export async function onceCommand(call: Call<Options>, name: string, ...command: string[]): Promise<number> {
  checkLockName(name);
  const { every, offset, cron, tz, retry = 0, catchUp = false, forget } = call.options;
  const plan = { name, every, offset, cron, tz, retry };
  const { store, taskId } = call.settings;
  if (forget && command.length > 0) throw new UsageError('--forget runs no command: leave out one of them');
  if (forget)
    return reported(call, async () => {
      const tick = await forgetTicks(store, { ...lockSettings(call), ...plan, taskId });
      say(call.io, `tick ${formatTime(tick)} of ${name} counts as run`);
      return ExitCode.ok;
    });
  if (command.length === 0) throw new UsageError('no command given: expected one after --, or --forget');
  let caughtUp = false;
  /** That of the run before, which may be claimed again. */
  let tick: number | undefined;
  /** Of the runs here: where nothing is left to run, or another tick, only these say that they have failed. */
  const codes = { missed: 0, due: 0 };
  const last = await runHeldCommand(call, {
    command,
    acquire: async (request) => {
      const options = await lockOptions(call, name, request, 'its ticks');
      const run = await oncePer(store, { ...options, ...plan, tick, catchUp: catchUp && !caughtUp });
      if (run) logRun(run, request.log);
      else
        request.log.info(
          { lock: name },
          `nothing to do: the due tick of ${name} is claimed, or was missed during another run`,
        );
      return run;
    },
    variables: ({ tick }) => ({ LOCK_NAME: name, ONCE_TICK: formatTime(tick) }),
    end: async (run, exitCode, log) => {
      const succeeded = exitCode === ExitCode.ok;
      const at = formatTime(run.tick);
      if (!succeeded) await run.release();
      else if (!(await run.complete()))
        log.warn(
          { lock: name, tick: at },
          `the success of tick ${at} could not be recorded: its outcome counts as unknown`,
        );
      codes[run.isCatchUp ? 'missed' : 'due'] = exitCode;
      caughtUp ||= run.isCatchUp;
      if (run.isCatchUp) return true;
      tick = run.tick;
      return !succeeded && run.attempt <= retry;
    },
  });
  return last || codes.due || codes.missed;
}

/** Says which tick it is, and what has become of those before it. */
function logRun({ name, tick, attempt, missed, schedule, previous }: OnceRun, log: Logger): void {
  const facts = { lock: name, tick: formatTime(tick), attempt, missed };
  log.info(facts, `claimed tick ${facts.tick} of ${name}${attempt > 1 ? `, attempt ${attempt}` : ''}`);
  if (missed > 0)
    log.warn(
      facts,
      `${missed < MAX_MISSED ? '' : 'at least '}${pluralize(missed, 'tick')} of ${name} before it ran nowhere`,
    );
  if (previous && previous.schedule !== schedule)
    log.warn(facts, `the schedule of ${name} was ${previous.schedule}, and is ${schedule} now`);
  if (previous && previous.outcome === undefined)
    log.warn(
      facts,
      `the outcome of tick ${formatTime(previous.tick)} is unknown: task ${previous.taskId} was killed, or lost the lock`,
    );
}
