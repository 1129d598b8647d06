import type { Clock } from '../clock.js';
import type { ClusterEvent } from './cluster-view.js';
import type { LeaseChange } from './lease-changes.js';

/** How many are kept. */
const KEPT = 200;

/** What a {@link ClusterEvent} is made of. */
export type EventFacts = Pick<ClusterEvent, 'kind' | 'text'> &
  Partial<Pick<ClusterEvent, 'nodeId' | 'version' | 'taskId' | 'previousTaskId'>>;

/** The last things that happened in a cluster, numbered. */
export class ClusterEvents {
  #kept: readonly ClusterEvent[] = [];
  #count = 0;

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  /** The last 200, oldest first; another array after every change. */
  get list(): readonly ClusterEvent[] {
    return this.#kept;
  }

  /** Takes note of things that have just been seen, in their order. */
  add(facts: readonly EventFacts[]): readonly ClusterEvent[] {
    const at = this.clock.now();
    const added = facts.map((each): ClusterEvent => {
      this.#count += 1;
      return { id: this.#count, at, nodeId: null, version: null, taskId: null, previousTaskId: null, ...each };
    });
    if (added.length > 0) this.#kept = [...this.#kept, ...added].slice(-KEPT);
    return added;
  }
}

/** What became of a lease, for people. */
export function factsOf(change: LeaseChange): EventFacts {
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

/** Who held an id that nobody holds now. */
function holderOf(previousTaskId: string | undefined): Pick<EventFacts, 'previousTaskId'> {
  return { previousTaskId: previousTaskId ?? null };
}
