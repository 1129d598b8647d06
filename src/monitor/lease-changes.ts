import type { NodeStatus } from '../lease/operate/inspect.js';
import type { ClusterEvent } from './cluster-view.js';
import { expiresInMs } from './status-report.js';

/** What became of a lease between two scans. */
export type LeaseChange = {
  readonly id: number;
  /** The highest version used so far, as of the second scan. */
  readonly version: number;
} & (
  | {
      /** A new tenure. `taken-over`: of an id whose holder may have let it expire, as far as the scans tell. */
      readonly kind: 'acquired' | 'taken-over';
      readonly taskId: string;
      /** Who held it at the first scan. */
      readonly previousTaskId: string | undefined;
    }
  /** `released`: by its holder. `evicted`: taken away by hand. `overdue`: not renewed in time; no task may take it before the grace period is over. */
  | { readonly kind: 'released' | 'evicted' | 'overdue'; readonly taskId: string | undefined }
  /** `retired`: by scaling. `restored`: acquirable again, after that or after it was damaged. */
  | { readonly kind: 'retired' | 'restored' }
  | { readonly kind: 'damaged'; readonly problem: string }
);

type ProblemOf = (node: NodeStatus) => string | undefined;

/** What is known of the two scans. */
export interface BetweenLooks {
  /** From the first scan to the second, in milliseconds. @default unknown, so that anything may have expired meanwhile */
  readonly sinceMs?: number;
  /** What kept, and keeps, a node id from being used. @default nothing did, and nothing does */
  readonly problemOf?: { readonly before: ProblemOf; readonly after: ProblemOf };
}

/**
 * What happened to the leases between two scans, in the order of the second one. Between two scans that are far apart more may
 * have happened than this tells.
 */
export function leaseChanges(before: readonly NodeStatus[], after: readonly NodeStatus[], between: BetweenLooks = {}): LeaseChange[] {
  const earlier = new Map(before.map((node) => [node.id, node]));
  return after.flatMap((now) => leaseChange(earlier.get(now.id), now, between) ?? []);
}

/**
 * What happened to one lease between two scans; undefined when nothing did that is worth telling.
 *
 * @param was undefined where there was no such id
 */
export function leaseChange(was: NodeStatus | undefined, now: NodeStatus, between: BetweenLooks = {}): LeaseChange | undefined {
  const { id, version } = now;
  const problem = between.problemOf?.after(now);
  const wasDamaged = was !== undefined && between.problemOf?.before(was) !== undefined;
  if (problem !== undefined) return wasDamaged ? undefined : { kind: 'damaged', id, version, problem };
  if (isHeld(now) && now.taskId !== undefined && (!isHeld(was) || was?.version !== version)) {
    const kind = mayHaveExpired(was, between.sinceMs) ? 'taken-over' : 'acquired';
    return { kind, id, version, taskId: now.taskId, previousTaskId: was?.taskId };
  }
  if (now.state === 'evicted' && was?.state !== 'evicted' && !wasDamaged) return { kind: 'evicted', id, version, taskId: was?.taskId };
  if (isHeld(was) && now.state === 'released')
    return { kind: isBumped(was, now) ? 'evicted' : 'released', id, version, taskId: was?.taskId };
  if (now.state === 'retired') return was?.state === 'retired' ? undefined : { kind: 'retired', id, version };
  if (was?.state === 'retired' || wasDamaged) return { kind: 'restored', id, version };
  return isOverdue(now) && !isOverdue(was) ? { kind: 'overdue', id, version, taskId: now.taskId } : undefined;
}

function isHeld(node: NodeStatus | undefined): boolean {
  return node?.state === 'held' || node?.state === 'expired';
}

function isOverdue(node: NodeStatus | undefined): boolean {
  const left = node && isHeld(node) ? expiresInMs(node) : undefined;
  return left !== undefined && left <= 0;
}

/** Whether its holder may have let it expire by the second scan. Otherwise it was given back in between, unseen. */
function mayHaveExpired(was: NodeStatus | undefined, sinceMs = Number.POSITIVE_INFINITY): boolean {
  if (was === undefined || !isHeld(was)) return false;
  return was.age === undefined || was.durationMs === undefined || was.age.max + sinceMs > was.durationMs;
}

/** Whether the version rose without a tenure: one writes a later timestamp. So an operator evicts who no longer renews. */
function isBumped(was: NodeStatus | undefined, now: NodeStatus): boolean {
  return was !== undefined && now.version === was.version + 1 && now.timestamp === was.timestamp;
}

/** A {@link ClusterEvent} without its number and time. */
export type EventFacts = Pick<ClusterEvent, 'kind' | 'text'> &
  Partial<Pick<ClusterEvent, 'nodeId' | 'version' | 'taskId' | 'previousTaskId'>>;

/** What became of a lease, for people. */
export function eventFacts(change: LeaseChange): EventFacts {
  const { kind, id: nodeId, version } = change;
  const facts = { kind, nodeId, version };
  switch (change.kind) {
    case 'acquired':
    case 'taken-over': {
      const { taskId, previousTaskId = null } = change;
      const from = previousTaskId === null ? '' : ` from ${previousTaskId}`;
      const text =
        kind === 'acquired'
          ? `${taskId} acquired node id ${nodeId} at version ${version}`
          : `${taskId} took over node id ${nodeId}${from} at version ${version}`;
      return { ...facts, taskId, previousTaskId, text };
    }
    case 'released':
      return { ...facts, ...holderOf(change.taskId), text: `node id ${nodeId} is released, its version ${version} is kept` };
    case 'evicted':
      return {
        ...facts,
        ...holderOf(change.taskId),
        text: `node id ${nodeId} was taken away${change.taskId === undefined ? '' : ` from ${change.taskId}`} by force, its version is now ${version}`,
      };
    case 'overdue':
      return {
        ...facts,
        taskId: change.taskId ?? null,
        text: `the lease of node id ${nodeId} has run out: ${change.taskId} did not renew it in time`,
      };
    case 'retired':
      return { ...facts, text: `node id ${nodeId} is retired: nobody may acquire it` };
    case 'restored':
      return { ...facts, text: `node id ${nodeId} may be acquired again` };
    case 'damaged':
      return { ...facts, text: `node id ${nodeId} is damaged: ${change.problem}` };
  }
}

/** The last holder of an id without a holder. */
function holderOf(previousTaskId: string | undefined): Pick<EventFacts, 'previousTaskId'> {
  return { previousTaskId: previousTaskId ?? null };
}
