import { onAbort } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import { type LossReason, leavesTime } from '../../core/lease/model/lease.js';
import { ExitCode, exitCodeOfSignal } from '../kit/io.js';
import type { Logger } from '../kit/log/logger.js';
import {
  asksToStop,
  deferStop,
  type ForwardedSignal,
  type SignalRelay,
} from '../kit/terminal/signal-relay.js';
import type { RetirePolicy } from '../settings/settings.js';
import type { Child, ChildEnd } from './child.js';
import type { Guard } from './guard.js';
import { type Held, lossOf, onRetirement } from './held.js';
import { endGroup } from './process-group.js';

/** What it takes to run a child for a lease, or for a lock. */
export interface SuperviseOptions {
  readonly lease: Held;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /**
   * Ends the child when this process cannot. It gets from here the child, its end, and the deadline at the
   * start.
   */
  readonly guard?: Guard | undefined;
  readonly signals: SignalRelay;
  /**
   * True when SIGINT and SIGQUIT come from a keyboard: a terminal means them for everything in the
   * foreground, not for one process.
   */
  readonly keyboard: boolean;
  /**
   * What has to happen before the child is asked to stop: a signal that asks for it waits until this has
   * settled, a second one does not. Nothing else waits: where the child ends by itself, or has to be ended,
   * it is only begun. May be called again; never rejects, and must settle soon. @default nothing
   */
  readonly beforeStop?: (() => Promise<void>) | undefined;
  /**
   * What becomes of the child when the node id is being retired: `stop`, it is asked to stop as by SIGTERM to
   * this process, unless it has been asked already; `drain`, it learns nothing of it. @default stop
   */
  readonly onRetire?: RetirePolicy | undefined;
  /**
   * Resolves when the child is to be ended so that it can be started again, which is left undone once its end
   * has been asked for, or its node id is being retired; never rejects. `beforeStop` is not called for it.
   * @default never
   */
  readonly restart?: Promise<void> | undefined;
  /** Starts the child, held back until `begin()`. */
  readonly start: () => Promise<Child>;
}

/** How work for a node id has ended. */
export interface WorkEnd {
  readonly exitCode: number;
  /** True when no work that relies on the node id is left, so that it may be released (rule 8). */
  readonly workEnded: boolean;
  /**
   * True when it has been ended to be started again, and nothing speaks against that: the lease is held, and
   * no end has been asked for.
   */
  readonly again?: boolean;
}

/** How long processes get between SIGTERM and SIGKILL while the lease is held, in milliseconds. */
const STOP_TIMEOUT_MS = 10_000;

/**
 * Runs a child for as long as it works and the lease is held, and sees to the end of its whole process group:
 * - when the child has ended: what is left of its group gets SIGTERM and then SIGKILL, and only then this
 *   resolves (rule 8);
 * - when the lease is lost (rule 7): with the store out of reach SIGTERM at once and SIGKILL before the
 *   deadline; when another task may hold the id already, SIGKILL at once;
 * - when the guard fails: SIGTERM at once and SIGKILL soon, and before the deadline in any case;
 * - when it is to be started again: the same, and this resolves once nothing is left of it;
 * - when the node id is being retired: as `onRetire` says, and for as long as the lease is held nothing more:
 *   the operator decides when to take the id away, which is a loss like any other.
 *
 * Signals reach the child alone, other than those of the keyboard. Daemons, which left its session, are out of
 * reach.
 *
 * @throws the operating system's error when the child could not be started
 */
export async function supervise(options: SuperviseOptions): Promise<WorkEnd> {
  const {
    lease,
    log,
    guard,
    signals,
    keyboard,
    beforeStop,
    onRetire = 'stop',
    restart = never(),
    start,
  } = options;
  const child = await start();
  const deliver = (signal: ForwardedSignal) => {
    if (keyboard && (signal === 'SIGINT' || signal === 'SIGQUIT')) child.group.signal(signal, true);
    else child.signal(signal);
  };
  const stop = beforeStop && deferStop(deliver, beforeStop);
  let isAsked = false;
  const pass = (signal: ForwardedSignal) => {
    isAsked ||= asksToStop(signal);
    if (stop) stop.pass(signal);
    else deliver(signal);
  };
  signals.handTo(pass);
  guard?.watch(child.group.id);
  guard?.extend(lease.deadline);
  // A pause since the lease was acquired may have outlasted it: then the command must not begin at all.
  if (lease.isValid()) child.begin();
  else child.group.signal('SIGKILL');
  let forgetLoss = () => {};
  const lost = new Promise<LossReason>((resolve) => {
    forgetLoss = onAbort(lease.signal, () => resolve(lossOf(lease)?.reason ?? 'taken'));
  });
  const forgetRetirement = onRetirement(lease, () => {
    if (onRetire === 'drain')
      return log.info(
        'the command goes on until it ends by itself, and gets no new work: its node id is being retired',
      );
    // A second request to end counts as one to hurry, here and with many commands.
    if (isAsked) return;
    log.info('asking the command to stop: its node id is being retired');
    pass('SIGTERM');
  });
  try {
    const next = await Promise.race([
      child.ended.then((end) => () => afterTheChild(end, child, options)),
      lost.then((reason) => () => afterTheLease(reason, child, options)),
      (guard?.failed ?? never()).then((reason) => () => afterTheGuard(reason, child, options)),
      restart.then(() => (isAsked || lease.retiring?.aborted ? never() : endToRestart)),
    ]);
    forgetRetirement();
    stop?.drop();
    const ending = next(child, options);
    // Only now: whatever has to be killed has been sent its signal.
    if (next !== endToRestart) void beforeStop?.();
    const result = await ending;
    // Otherwise the guard learns from this process' end that there is something left to be killed.
    if (result.workEnded) guard?.done();
    return result;
  } finally {
    forgetRetirement();
    forgetLoss();
    signals.handTo(undefined);
  }
}

/**
 * The child has ended: by itself, at a signal that was handed on, or by the guard's hand while this process
 * was paused.
 */
async function afterTheChild(
  end: ChildEnd,
  { group }: Child,
  { lease, clock, log, signals }: SuperviseOptions,
): Promise<WorkEnd> {
  let abandoned = false;
  // There is no child any more to have it: a further request to end is for this process.
  signals.handTo((signal) => {
    abandoned ||= asksToStop(signal) || signal === 'SIGQUIT' || signal === 'SIGHUP';
  });
  const workEnded = await endGroup(group, {
    lease,
    clock,
    graceMs: STOP_TIMEOUT_MS,
    abandoned: () => abandoned,
    onFound: () =>
      log.info(
        `the command has ended and left processes behind: they get SIGTERM, and SIGKILL after ${STOP_TIMEOUT_MS / 1_000} s`,
      ),
    onStuck: () => log.warn('some of them do not end: the lease is kept until they do'),
  });
  if (!workEnded)
    log.error('processes of the command are left: the lease is not released, but left to expire');
  if (lease.isValid())
    return { exitCode: 'signal' in end ? exitCodeOfSignal(end.signal) : end.code, workEnded };
  if (!lease.signal.aborted)
    log.error('the lease ran out before the command had ended: this process was paused');
  return { exitCode: ExitCode.leaseLost, workEnded };
}

async function afterTheLease(
  reason: LossReason,
  { group }: Child,
  { lease, clock, log }: SuperviseOptions,
): Promise<WorkEnd> {
  log.warn(
    leavesTime(reason)
      ? 'ending the command before its lease runs out'
      : 'killing the command: another task may be at work already',
  );
  const workEnded = await endGroup(group, { lease, clock, graceMs: Number.POSITIVE_INFINITY });
  if (!workEnded) log.error('processes of the command could not be ended');
  return { exitCode: ExitCode.leaseLost, workEnded };
}

async function afterTheGuard(
  reason: string,
  { group }: Child,
  { lease, clock, log }: SuperviseOptions,
): Promise<WorkEnd> {
  log.error(
    `ending the command: nothing would stop it in time if this process were paused, for its guard is gone (${reason})`,
  );
  const workEnded = await endGroup(group, {
    lease,
    clock,
    graceMs: STOP_TIMEOUT_MS,
    onStuck: () => log.warn('some of its processes do not end: the lease is kept until they do'),
  });
  return { exitCode: ExitCode.leaseLost, workEnded };
}

/** A loss of the lease meanwhile is heeded: see `endGroup`. */
async function endToRestart(child: Child, options: SuperviseOptions): Promise<WorkEnd> {
  const { lease, clock, log, signals } = options;
  const onStuck = () => log.warn('some of its processes do not end: it is started again when they have');
  if (!(await endGroup(child.group, { lease, clock, graceMs: STOP_TIMEOUT_MS, onStuck }))) {
    log.error('processes of the command could not be ended');
    return { exitCode: ExitCode.leaseLost, workEnded: false };
  }
  const end = await afterTheChild(await child.ended, child, options);
  return {
    ...end,
    again: end.workEnded && lease.isValid() && !signals.hasAskedToStop && !lease.retiring?.aborted,
  };
}

function never(): Promise<never> {
  return new Promise(() => {});
}
