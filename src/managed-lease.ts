import { onAbort } from './base/abort.js';
import type { Clock } from './clock.js';
import type { Discovery } from './discovery/discovery.js';
import type { Lease, LeaseLostError } from './lease/lease.js';
import { graceAfterLoss } from './lease/loss.js';
import { sleepUntil } from './lease/sleep-until.js';

/** The exit code of a process that lost its lease. */
export const EXIT_LEASE_LOST = 76;

/** What becomes of the process when its lease is lost. */
export type LossPolicy = 'exit' | 'signal' | ((error: LeaseLostError) => void);

export interface ManagedLeaseOptions {
  readonly clock: Clock;
  readonly onLost: LossPolicy;
  /** Ends the process with that code. */
  readonly exit: (code: number) => void;
  /** Where the lease is announced, if anywhere. */
  readonly discovery?: Discovery | undefined;
  /** Is told when the release begins. */
  readonly onRelease?: (() => void) | undefined;
  /** Takes the node out of the discovery tree, before its id is given back. */
  readonly leave?: () => Promise<void>;
  /** Gives up what was opened for this lease. */
  readonly close: () => Promise<void>;
}

/** A lease that looks after its surroundings. */
export interface ManagedLease extends Lease {
  /** The node in the discovery tree; undefined without ZooKeeper. */
  readonly discovery: Discovery | undefined;
}

/** The lease with its surroundings: the store that was opened for it is closed with it, and its loss is acted upon. */
export function manage(lease: Lease, options: ManagedLeaseOptions): ManagedLease {
  const { clock, onLost, exit, discovery, onRelease, leave = async () => undefined, close } = options;
  let ending: Promise<void> | undefined;
  const end = async () => {
    onRelease?.();
    try {
      await leave();
    } finally {
      await lease.release();
      await close();
    }
  };
  const release = () => {
    ending ??= end();
    return ending;
  };
  const actOnLoss = () => {
    const error = lease.signal.reason as LeaseLostError;
    if (typeof onLost === 'function') onLost(error);
    else if (onLost === 'exit') void exitInTime(error, clock, exit);
  };
  onAbort(lease.signal, actOnLoss);
  return {
    id: lease.id,
    version: lease.version,
    taskId: lease.taskId,
    discovery,
    signal: lease.signal,
    retiring: lease.retiring,
    get deadline() {
      return lease.deadline;
    },
    tenureTime: lease.tenureTime,
    isValid: () => lease.isValid(),
    setKnownNodes: (versions) => lease.setKnownNodes(versions),
    release,
    [Symbol.asyncDispose]: release,
  };
}

/** Listeners of the signal get what time there is before the deadline; where somebody else may hold the id already, none. */
async function exitInTime(error: LeaseLostError, clock: Clock, exit: (code: number) => void): Promise<void> {
  const now = clock.monotonic();
  await sleepUntil(clock, now + graceAfterLoss(error, now));
  exit(EXIT_LEASE_LOST);
}
