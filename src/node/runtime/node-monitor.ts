import { onAbort } from '../../core/base/abort.js';
import { checkArguments, LEASE, maybe, OBJECT, TEXT } from '../../core/base/arguments.js';
import type { Clock } from '../../core/base/clock.js';
import { explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import { type Lease, type LeaseEvent, waitingText } from '../../core/lease/model/lease.js';
import type { Discovery, DiscoveryEvent } from '../../zookeeper/discovery/discovery.js';
import type { NodeHealth, NodeHealthJson, NodePhase } from '../wire/node-health.js';

/** A source of the health of a node: its `NodeMonitor`, or its mirror in another thread. */
export interface WatchedNode {
  /** The health at this moment. */
  health(): NodeHealth;
  /** Calls `listener` at every event that may change the health, until the returned function is called. */
  onEvent(listener: () => void): () => void;
}

/**
 * The same facts for readers with another clock: a deadline on this process's monotonic clock has no meaning
 * for them.
 */
export function nodeHealthJson(
  { deadline, ...facts }: NodeHealth,
  clock: Pick<Clock, 'monotonic'>,
): NodeHealthJson {
  return {
    ...facts,
    validForMs: deadline === null ? null : Math.max(0, Math.floor(deadline - clock.monotonic())),
  };
}

const RELEASED = 'the lease has been released';

/** The events of a {@link NodeMonitor}, in the order in which they happen. */
export type MonitorEvent =
  | { readonly type: 'phase'; readonly phase: NodePhase }
  | { readonly type: 'lease'; readonly event: LeaseEvent }
  | { readonly type: 'discovery'; readonly event: DiscoveryEvent };

/**
 * The state of a process's own node id, from before its acquisition to after its release: for health checks,
 * metrics and consoles. Pass it to `acquire({ monitor })`, and to all parts that show it.
 *
 * It does not affect the lease. `health()` compares clocks at each call: a process that was paused reports at
 * once that it holds no node id.
 */
export class NodeMonitor {
  #phase: NodePhase = 'acquiring';
  #reason: string | undefined;
  #lease: Lease | undefined;
  #discovery: Discovery | undefined;
  #dataDir: string | undefined;
  readonly #listeners = new Listeners<MonitorEvent>();

  /** The lease that is, or was, held; undefined before the first one. */
  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** Where the node is announced; undefined without ZooKeeper. */
  get discovery(): Discovery | undefined {
    return this.#discovery;
  }

  /** Receives the events of the lease: the listener of `acquireLease`. */
  readonly onLeaseEvent = (event: LeaseEvent): void => {
    checkArguments({ event });
    this.#listeners.notify({ type: 'lease', event });
    if (event.type === 'lost') this.#enter('lost', explain(event.error));
    else if (event.type === 'released') this.#enter('released', RELEASED);
    else if (event.type === 'release-failed')
      this.#enter('released', `the lease has been given up and is left to expire: ${explain(event.error)}`);
    else if (this.#phase === 'acquiring') this.#reason = whyNotYet(event) ?? this.#reason;
  };

  /** Receives the events of the announcement. */
  readonly onDiscoveryEvent = (event: DiscoveryEvent): void => {
    checkArguments({ event });
    this.#listeners.notify({ type: 'discovery', event });
  };

  /** Records what must be done before the node id may be used. */
  waits(reason: string): void {
    checkArguments({ reason }, { reason: TEXT });
    if (this.#phase === 'acquiring') this.#enter('acquiring', reason);
  }

  /** A node id is held from now on. The phase stays `stopping` if that was reported before. */
  hold(lease: Lease, discovery?: Discovery, dataDir?: string): void {
    const kinds = { lease: LEASE, discovery: maybe(OBJECT), dataDir: maybe(TEXT) };
    checkArguments({ lease, discovery, dataDir }, kinds);
    this.#lease = lease;
    this.#discovery = discovery;
    this.#dataDir = dataDir;
    this.#enter('held', undefined);
    onAbort(lease.signal, () => this.#enter('lost', explain(lease.signal.reason)));
  }

  /** The work is being ended, and the node id is released afterwards: no more work should be sent here. */
  stopping(reason = 'the work is being ended'): void {
    checkArguments({ reason }, { reason: TEXT });
    this.#enter('stopping', reason);
  }

  /** No node id was acquired, and none will be. */
  failed(error: unknown): void {
    this.#enter('failed', explain(error));
  }

  /** The health at this moment. */
  health(): NodeHealth {
    const { lease, discovery } = this;
    // A process that is stopped before it has a lease cannot lose one.
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
      // By the lease's own clock, as in `isValid()`. An infinite deadline is that of a fixed id.
      deadline: valid && Number.isFinite(lease.deadline) ? lease.deadline : null,
      ...(this.#dataDir !== undefined && { dataDir: this.#dataDir }),
      idWidth: lease?.tenureTime?.idWidth ?? null,
      discovery: discovery === undefined ? null : discoveryHealth(discovery),
    };
  }

  /**
   * Calls `listener` with every event, until the returned function is called. Listeners must neither throw
   * nor block.
   */
  onEvent(listener: (event: MonitorEvent) => void): () => void {
    return this.#listeners.add(listener);
  }

  #whyNot(phase: NodePhase): string {
    if (phase === 'lost' && this.#phase !== 'lost')
      return 'the lease is over: no renewal came through before its deadline';
    if (phase === 'released' && this.#phase !== 'released') return RELEASED;
    if (phase === 'held' && this.#lease?.retiring.aborted) return explain(this.#lease.retiring.reason);
    if (phase === 'held')
      return 'taken over from a task that did not release it: waiting until the other nodes know of that';
    return this.#reason ?? 'a node id is being acquired';
  }

  /** The first end is final, and a node that is being stopped does not become held again. */
  #enter(phase: NodePhase, reason: string | undefined) {
    const over = this.#phase === 'lost' || this.#phase === 'released' || this.#phase === 'failed';
    if (over || (this.#phase === 'stopping' && (phase === 'stopping' || phase === 'held'))) return;
    this.#phase = phase;
    this.#reason = reason;
    this.#listeners.notify({ type: 'phase', phase });
  }
}

/** Why no node id may be used yet, if the event shows that. */
function whyNotYet(event: LeaseEvent): string | undefined {
  if (event.type === 'waiting') return event.why ?? waitingText(event);
  if (event.type === 'testing-store') return 'the store is being tested, once';
  if (event.type === 'store-failed') return `the store failed: ${explain(event.error)}`;
  return event.type === 'acquired'
    ? `node id ${event.id} has been acquired, and is being announced`
    : undefined;
}

function discoveryHealth({ state, isReady: ready }: Discovery): NodeHealth['discovery'] {
  const problem = state.status === 'degraded' ? state.problem : null;
  return { state: state.status === 'synced' ? 'ok' : 'degraded', problem, ready };
}

/**
 * Whether a lease that is not valid has been released, or is being released, and was not lost. No clock shows
 * that.
 */
function isReleased({ signal, tenureTime }: Lease): boolean {
  return !signal.aborted && (tenureTime === undefined || tenureTime.signal.aborted);
}
