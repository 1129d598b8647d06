import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import { mayExceed, PER_SECOND } from '../../core/lease/model/lease-state.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import type { ClusterEvent } from '../wire/cluster-snapshot.js';
import { problemOf } from './listed-cluster.js';
import { expiresInMs } from './status-report.js';

/** The change of a lease between two scans, as an event without its number and time. */
export interface LeaseChange extends Omit<ClusterEvent, 'id' | 'at' | 'since'> {
  readonly kind: Exclude<ClusterEvent['kind'], 'resized' | 'store-failed' | 'store-ok'>;
  readonly nodeId: number;
  /** The highest version used so far, as of the second scan. */
  readonly version: number;
}

/** What is known of the two scans. */
interface BetweenScans {
  /**
   * From the first scan to the second, in milliseconds.
   * @default unknown, so that anything may have expired meanwhile
   */
  readonly sinceMs?: number;
  /**
   * The settings at the first scan, and at the second.
   * @default none, so that an absent lease object is no damage
   */
  readonly before?: ClusterConfig | undefined;
  readonly after?: ClusterConfig | undefined;
  /**
   * Whether each tenure raises the version by one; with ids from ZooKeeper alone it raises it by any amount.
   * @default true
   */
  readonly countsVersions?: boolean;
}

/**
 * The changes of the leases between two scans, in the order of the second scan. If the scans are far apart,
 * it reports what the second one has found: a version that grew by more than one had unseen holders in
 * between.
 */
export function leaseChanges(
  before: readonly NodeStatus[],
  after: readonly NodeStatus[],
  between: BetweenScans = {},
): LeaseChange[] {
  const earlier = new Map(before.map((node) => [node.id, node]));
  return after.flatMap((now) => leaseChange(earlier.get(now.id), now, between) ?? []);
}

/** @param was undefined where there was no such id */
function leaseChange(
  was: NodeStatus | undefined,
  now: NodeStatus,
  between: BetweenScans,
): LeaseChange | undefined {
  const { sinceMs, before, after, countsVersions = true } = between;
  const { id, version, state, taskId = null } = now;
  const previousTaskId = was?.taskId ?? null;
  const change = (
    kind: LeaseChange['kind'],
    text: string,
    tasks: Partial<Pick<LeaseChange, 'taskId' | 'previousTaskId'>> = {},
  ) => ({ kind, nodeId: id, version, taskId: null, previousTaskId: null, text, ...tasks });
  const problem = problemOf(now, after);
  const wasDamaged = was !== undefined && problemOf(was, before) !== undefined;
  if (problem !== undefined)
    return wasDamaged ? undefined : change('damaged', `node id ${id} is damaged: ${problem}`);
  if (isHeld(now) && taskId !== null && (!isHeld(was) || was?.version !== version)) {
    const tenures = countsVersions && was !== undefined && !wasDamaged ? version - was.version : 1;
    // A store that has gone back makes it leap (rule 12).
    if (tenures > 1 && tenures < PER_SECOND) {
      // An eviction counts as one.
      const text = `${taskId} holds node id ${id} at version ${version}: up to ${tenures} tenures since the last look`;
      return change('acquired', text, { taskId });
    }
    const tasks = { taskId, previousTaskId };
    if (!mayHaveExpired(was, sinceMs))
      return change('acquired', `${taskId} acquired node id ${id} at version ${version}`, tasks);
    return change(
      'taken-over',
      `${taskId} took over node id ${id}${fromTask(previousTaskId)} at version ${version}`,
      tasks,
    );
  }
  if (
    (state === 'evicted' && was?.state !== 'evicted' && !wasDamaged) ||
    (state === 'released' && isHeld(was) && isBumped(was, now))
  ) {
    const from = !countsVersions || version === (was?.version ?? 0) + 1 ? previousTaskId : null;
    const text = `node id ${id} was taken away${fromTask(from)} by force, its version is now ${version}`;
    return change('evicted', text, { previousTaskId: from });
  }
  if (state === 'released' && isHeld(was)) {
    const by = !countsVersions || version === was?.version ? previousTaskId : null;
    return change('released', `node id ${id} is released, its version ${version} is kept`, {
      previousTaskId: by,
    });
  }
  const wasRetired = was?.state === 'retired';
  if (state === 'retired')
    return wasRetired ? undefined : change('retired', `node id ${id} is retired: no task may acquire it`);
  if (wasRetired || wasDamaged) return change('restored', `node id ${id} may be acquired again`);
  if (!isOverdue(now) || isOverdue(was)) return undefined;
  return change('overdue', `the lease of node id ${id} has run out: ${taskId} did not renew it in time`, {
    taskId,
  });
}

function fromTask(taskId: string | null) {
  return taskId === null ? '' : ` from ${taskId}`;
}

function isHeld(node: NodeStatus | undefined) {
  return node?.state === 'held' || node?.state === 'expired';
}

function isOverdue(node: NodeStatus | undefined) {
  const left = node && isHeld(node) ? expiresInMs(node) : undefined;
  return left !== undefined && left <= 0;
}

/** In place of the duration for ids from ZooKeeper alone, in milliseconds. */
const UNSEEN_MS = 10_000;

/**
 * Whether its holder has let it expire by the second scan, as far as the first scan shows that. Otherwise it
 * was released in between, unseen. With a whole duration between the scans, both are possible.
 */
function mayHaveExpired(was: NodeStatus | undefined, sinceMs: number | undefined) {
  if (was === undefined || !isHeld(was)) return false;
  if (isOverdue(was)) return true;
  if (sinceMs !== undefined && sinceMs > (was.durationMs ?? UNSEEN_MS)) return false;
  return (
    was.age === undefined ||
    was.durationMs === undefined ||
    mayExceed(was.age, was.durationMs - (sinceMs ?? Number.POSITIVE_INFINITY))
  );
}

/**
 * Whether the version rose without a tenure, which would write a later timestamp. That is the eviction of a
 * holder that no longer renews.
 */
function isBumped(was: NodeStatus | undefined, now: NodeStatus) {
  return was !== undefined && now.version === was.version + 1 && now.timestamp === was.timestamp;
}
