import { NodeLeaseError } from '../../base/errors.js';
import { type LossReason, TenureLostError } from './lease.js';

/** A lock is lost: all work that relies on it must stop. */
export class LockLostError extends TenureLostError {
  readonly code = 'LOCK_LOST';

  constructor(
    /** Its name, or its path in ZooKeeper. */
    readonly lock: string,
    readonly token: bigint,
    reason: LossReason,
    deadline: number,
    detail: string,
    cause?: unknown,
  ) {
    super(`lock ${lock} (token ${token})`, reason, deadline, detail, cause);
  }
}

/** This process has released the lock: another process may hold it. */
export class LockReleasedError extends NodeLeaseError {
  readonly code = 'LOCK_RELEASED';

  constructor(
    readonly lock: string,
    readonly token: bigint,
  ) {
    super(`lock ${lock} (token ${token}) has been released`);
  }
}
