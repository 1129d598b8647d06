import { onAbort } from '../../base/abort.js';
import { explain } from '../../base/errors.js';
import type { Lease } from '../../lease/model/lease.js';
import type { Held } from './held.js';

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
