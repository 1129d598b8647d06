import { type Lease, LeaseLostError } from '../../lease/model/lease.js';
import { LockLostError } from '../../lease/model/lock-lost.js';

/**
 * What a command relies on while it runs: a lease, or a lock. Its signal aborts with a {@link LeaseLostError}
 * or a {@link LockLostError}.
 */
export type Held = Pick<Lease, 'signal' | 'deadline' | 'isValid'> & Partial<Pick<Lease, 'retiring'>>;

/** Why it was lost; undefined where it has not been, or where its signal gives another reason. */
export function lossOf({ signal }: Pick<Held, 'signal'>): LeaseLostError | LockLostError | undefined {
  const reason: unknown = signal.reason;
  return reason instanceof LeaseLostError || reason instanceof LockLostError ? reason : undefined;
}
