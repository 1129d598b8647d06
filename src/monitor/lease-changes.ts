import type { NodeStatus } from '../lease/inspect.js';
import { expiresInMs } from './status-report.js';

/** What became of a lease between two looks. */
export type LeaseChange =
  /** A new tenure. */
  | { readonly kind: 'acquired'; readonly id: number; readonly version: number; readonly taskId: string }
  /** Given back, or taken away by hand. */
  | { readonly kind: 'released'; readonly id: number; readonly version: number; readonly taskId: string | undefined }
  /** Its holder did not renew it in time; nobody may take it before the grace period is over. */
  | { readonly kind: 'overdue'; readonly id: number; readonly version: number; readonly taskId: string | undefined };

/**
 * What happened to the leases between two looks, in ascending order of the ids. Between two looks that are far apart more may
 * have happened than this tells.
 */
export function leaseChanges(before: readonly NodeStatus[], after: readonly NodeStatus[]): LeaseChange[] {
  return after.flatMap((now): LeaseChange[] => {
    const was = before[now.id];
    const { id, version } = now;
    if (isHeld(now) && now.taskId !== undefined && (!isHeld(was) || was?.version !== version)) {
      return [{ kind: 'acquired', id, version, taskId: now.taskId }];
    }
    if (isHeld(was) && (now.state === 'released' || now.state === 'evicted'))
      return [{ kind: 'released', id, version, taskId: was?.taskId }];
    if (isOverdue(now) && !isOverdue(was)) return [{ kind: 'overdue', id, version, taskId: now.taskId }];
    return [];
  });
}

function isHeld(node: NodeStatus | undefined): boolean {
  return node?.state === 'held' || node?.state === 'expired';
}

function isOverdue(node: NodeStatus | undefined): boolean {
  const left = node && isHeld(node) ? expiresInMs(node) : undefined;
  return left !== undefined && left <= 0;
}
