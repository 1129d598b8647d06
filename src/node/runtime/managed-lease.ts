import { onAbort } from '../../core/base/abort.js';
import { sleepUntil } from '../../core/base/clock.js';
import { exitLost } from '../../core/base/host/exit-lost.js';
import { systemClock } from '../../core/base/system.js';
import { afterWork } from '../../core/lease/hold/lease-home.js';
import type { Lease, LeaseLostError } from '../../core/lease/model/lease.js';
import { graceAfterLoss } from '../../core/lease/model/lease-timing.js';
import type { HeldNode } from './hold-node.js';

/** What happens to the process when its lease is lost. */
export type LossPolicy = 'exit' | 'signal' | ((error: LeaseLostError) => void);

/**
 * The lease of a held node, for a program: a loss follows `onLost`, and its release ends the node.
 * `onRelease` is called when that begins.
 */
export function manage(
  { lease, end, ...held }: HeldNode,
  onLost: LossPolicy,
  onRelease: () => void,
): Lease & typeof held {
  let ending: Promise<void> | undefined;
  const release = () => {
    if (ending === undefined) {
      onRelease();
      ending = afterWork(lease.home, (workEnded) => end({ workEnded, release: true }));
    }
    return ending;
  };
  onAbort(lease.signal, () => {
    const error = lease.signal.reason as LeaseLostError;
    if (typeof onLost === 'function') onLost(error);
    else if (onLost === 'exit') void exitInTime(error);
  });
  return {
    ...held,
    id: lease.id,
    version: lease.version,
    taskId: lease.taskId,
    previous: lease.previous,
    signal: lease.signal,
    retiring: lease.retiring,
    get deadline() {
      return lease.deadline;
    },
    tenureTime: lease.tenureTime,
    home: lease.home,
    isValid: () => lease.isValid(),
    setKnownNodes: (versions) => lease.setKnownNodes(versions),
    release,
    [Symbol.asyncDispose]: release,
  };
}

/**
 * Gives listeners of the signal the time that is left before the deadline, or none if another task may hold
 * the id already.
 */
async function exitInTime(error: LeaseLostError) {
  const now = systemClock.monotonic();
  await sleepUntil(systemClock, now + graceAfterLoss(error, now));
  exitLost();
}
