import type { Clock } from '../../core/base/clock.js';
import type { ClusterEvent } from '../wire/cluster-snapshot.js';

/** How many events are kept. */
const EVENTS = 200;

/** A {@link ClusterEvent} without its number and time. */
export type EventFacts = Pick<ClusterEvent, 'kind' | 'text'> & Partial<ClusterEvent>;

/** The last events of a cluster, numbered from 1. */
export class EventLog {
  /** The oldest first. Without new events it is the same object. */
  events: readonly ClusterEvent[] = [];

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  /** @param since after which time they happened; null if it is unknown */
  add(added: readonly EventFacts[], since: number | null = null): void {
    if (added.length === 0) return;
    const at = this.clock.now();
    const first = (this.events.at(-1)?.id ?? 0) + 1;
    const numbered = added.map(
      (each, index): ClusterEvent => ({
        nodeId: null,
        version: null,
        taskId: null,
        previousTaskId: null,
        ...each,
        id: first + index,
        at,
        since,
      }),
    );
    this.events = [...this.events, ...numbered].slice(-EVENTS);
  }
}
