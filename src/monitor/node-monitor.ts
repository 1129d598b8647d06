import { onAbort } from '../base/abort.js';
import { explain } from '../base/errors.js';
import type { Discovery, DiscoveryEvent } from '../discovery/discovery.js';
import type { Lease, LeaseEvent } from '../lease/model/lease.js';
import { notify } from '../zookeeper/listeners.js';
import type { NodeHealth, NodePhase } from './node-health.js';

const RELEASED = 'the lease has been released';

/** What a {@link NodeMonitor} tells of, in the order in which it happens. */
export type MonitorEvent =
  | { readonly type: 'phase'; readonly phase: NodePhase }
  | { readonly type: 'lease'; readonly event: LeaseEvent }
  | { readonly type: 'discovery'; readonly event: DiscoveryEvent };

/**
 * What one process knows of its own node id, from before it has one to after it has given it back: for health checks, metrics and consoles.
 * Hand it to `acquire({ monitor })`, and to whatever shows it.
 *
 * It only watches. Nothing here takes part in holding the lease, and `health()` compares clocks when it is asked, so that a process that was
 * paused says at once that it holds nothing any more.
 */
export class NodeMonitor {
  #phase: NodePhase = 'acquiring';
  #reason: string | undefined;
  #lease: Lease | undefined;
  #discovery: Discovery | undefined;
  readonly #listeners = new Set<(event: MonitorEvent) => void>();

  /** The lease that is, or was, held; undefined as long as there is none. */
  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** Where the node is announced; undefined without ZooKeeper. */
  get discovery(): Discovery | undefined {
    return this.#discovery;
  }

  /** Takes note of what happens to the lease: the listener of `acquireLease`. */
  readonly onLeaseEvent = (event: LeaseEvent): void => {
    this.#tell({ type: 'lease', event });
    if (event.type === 'lost') this.#enter('lost', explain(event.error));
    else if (event.type === 'released') this.#enter('released', RELEASED);
    else if (event.type === 'release-failed')
      this.#enter('released', `the lease has been given up and is left to expire: ${explain(event.error)}`);
    else if (this.#phase === 'acquiring') this.#reason = whyNotYet(event) ?? this.#reason;
  };

  /** Takes note of what happens to the announcement. */
  readonly onDiscoveryEvent = (event: DiscoveryEvent): void => this.#tell({ type: 'discovery', event });

  /** A node id is held from now on; it stays `stopping` where that was told before. */
  hold(lease: Lease, discovery?: Discovery): void {
    this.#lease = lease;
    this.#discovery = discovery;
    this.#enter('held', undefined);
    onAbort(lease.signal, () => this.#enter('lost', explain(lease.signal.reason)));
  }

  /** The work is being ended, and the node id given back afterwards: no more work should be sent here. */
  stopping(reason = 'the work is being ended'): void {
    this.#enter('stopping', reason);
  }

  /** No node id was acquired, and none will be. */
  failed(error: unknown): void {
    this.#enter('failed', explain(error));
  }

  /** What the answer is right now. */
  health(): NodeHealth {
    const lease = this.#lease;
    const discovery = this.#discovery;
    // One that is being stopped before it has a lease has none to lose.
    const holds = lease !== undefined && (this.#phase === 'held' || this.#phase === 'stopping');
    const valid = holds && lease.isValid();
    const phase = holds && !valid ? (isReleased(lease) ? 'released' : 'lost') : this.#phase;
    const settled = discovery === undefined || discovery.isReady;
    const retiring = valid && lease.retiring.aborted;
    const ready = phase === 'held' && settled && !retiring;
    return {
      state: phase,
      live: phase !== 'lost' && phase !== 'failed',
      ready,
      reason: ready ? null : this.#whyNot(phase),
      retiring,
      nodeId: lease?.id ?? null,
      version: lease?.version ?? null,
      taskId: lease?.taskId ?? null,
      // The lease's own clock reckons, as for `isValid()`: a deadline that cannot be told in milliseconds is that of a fixed id.
      deadline: valid && Number.isFinite(lease.deadline) ? lease.deadline : null,
      idWidth: lease?.tenureTime?.idWidth ?? null,
      discovery:
        discovery === undefined
          ? null
          : {
              state: discovery.state.status === 'synced' ? 'ok' : 'degraded',
              problem: discovery.state.status === 'degraded' ? discovery.state.problem : null,
              ready: discovery.isReady,
            },
    };
  }

  /** Calls `listener` with everything that happens, until the returned function is called. Listeners must neither throw nor block. */
  onEvent(listener: (event: MonitorEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #whyNot(phase: NodePhase): string {
    if (phase === 'lost' && this.#phase !== 'lost') return 'the lease is over: no renewal came through before its deadline';
    if (phase === 'released' && this.#phase !== 'released') return RELEASED;
    if (phase === 'held' && this.#lease?.retiring.aborted) return explain(this.#lease.retiring.reason);
    if (phase === 'held') return 'taken over from a task that did not release it: waiting until the other nodes know of that';
    return this.#reason ?? 'a node id is being acquired';
  }

  /** The first end is the one that counts, and what is being stopped is not held anew. */
  #enter(phase: NodePhase, reason: string | undefined): void {
    const over = this.#phase === 'lost' || this.#phase === 'released' || this.#phase === 'failed';
    if (over || (this.#phase === 'stopping' && (phase === 'stopping' || phase === 'held'))) return;
    this.#phase = phase;
    this.#reason = reason;
    this.#tell({ type: 'phase', phase });
  }

  #tell(event: MonitorEvent): void {
    for (const listener of this.#listeners) notify(listener, event);
  }
}

/** Why there is still no node id that may be used, where the event says something about that. */
function whyNotYet(event: LeaseEvent): string | undefined {
  if (event.type === 'waiting') return event.why ?? 'no node id is free: waiting';
  if (event.type === 'store-failed') return `the store failed: ${explain(event.error)}`;
  return event.type === 'acquired' ? `node id ${event.id} has been acquired, and is being announced` : undefined;
}

/** Whether a lease that is not valid has been given back, or is being given back, and was not lost: no clock tells that. */
function isReleased({ signal, tenureTime }: Lease): boolean {
  return !signal.aborted && (tenureTime === undefined || tenureTime.signal.aborted);
}
