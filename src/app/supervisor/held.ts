import { onAbort } from '../../core/base/abort.js';
import { explain } from '../../core/base/errors.js';
import { type Lease, LeaseLostError } from '../../core/lease/model/lease.js';
import { LockLostError } from '../../core/lease/model/lock-lost.js';

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

/**
 * Calls `act` once the node id is being retired, unless the returned function is called, or the lease lost,
 * before.
 */
export function onRetirement(
  { retiring, signal }: Pick<Held, 'retiring' | 'signal'>,
  act: () => void,
): () => void {
  return onAbort(retiring, () => {
    if (!signal.aborted) act();
  });
}

/** Why the work for a node id is being ended, as far as it is not what is usual; undefined where it is. */
export function whyStopping({ retiring }: Pick<Lease, 'retiring'>): string | undefined {
  return retiring.aborted ? `the work is being ended: ${explain(retiring.reason)}` : undefined;
}
