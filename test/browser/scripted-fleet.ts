import type { ClusterEvent, ClusterSnapshot } from '../../src/node/wire/cluster-snapshot.js';
import type { DiscoveryStatusReport, NodeReport } from '../../src/node/wire/status-report.js';

/** The settings of a scripted cluster. */
export interface FleetOptions {
  readonly size: number;
  readonly durationMs: number;
  readonly graceMs: number;
  /** The name of the task that holds an id. */
  readonly taskOf?: (id: number) => string;
}

/**
 * Node ids that are all held and know each other, with some in odd states where a test wants them. For a
 * page, not for the protocol.
 */
export class ScriptedFleet {
  nodes: NodeReport[];
  events: ClusterEvent[] = [];
  discovery: DiscoveryStatusReport | null = null;
  #at = Date.now();

  constructor(readonly options: FleetOptions) {
    this.nodes = Array.from({ length: options.size }, (_, id) => this.held(id, 1));
  }

  /** A held node id, with an age between two renewals. */
  held(id: number, version: number, taskId = this.options.taskOf?.(id) ?? `task-${id + 1}`): NodeReport {
    const { size, durationMs } = this.options;
    const age = (((id * 7919) % 100) / 100) * (durationMs / 3);
    const known = Array.from({ length: size <= 300 ? size : 0 }, (_, other) => [other, 1] as const).filter(
      ([other]) => other !== id,
    );
    return {
      id,
      state: 'held',
      version,
      taskId,
      ageMs: [Math.floor(age), Math.ceil(age) + 2],
      expiresInMs: Math.ceil(durationMs - age),
      timestamp: Date.now() + Math.ceil(durationMs - age),
      knownNodes: Object.fromEntries(known),
      idWidth: 8,
      problem: null,
    };
  }

  /** Puts other facts into a node id; returns what it is now. */
  change(id: number, facts: Partial<NodeReport>): NodeReport {
    const was = this.nodes[id];
    if (was === undefined) throw new RangeError(`no node id ${id}`);
    const now = { ...was, ...facts };
    this.nodes[id] = now;
    return now;
  }

  /** A free id, given back at this version, or never held. */
  free(id: number, version = 0): NodeReport {
    const nothing = {
      taskId: null,
      ageMs: null,
      expiresInMs: null,
      timestamp: null,
      knownNodes: {},
      idWidth: null,
    };
    return this.change(id, { ...nothing, state: version > 0 ? 'released' : 'vacant', version });
  }

  /** Something that happened, a second after what happened before. */
  event(
    kind: ClusterEvent['kind'],
    nodeId: number | null,
    text: string,
    facts: Partial<ClusterEvent> = {},
  ): ClusterEvent {
    this.#at += 1;
    const id = (this.events.at(-1)?.id ?? 0) + 1;
    const unknown = { since: null, version: null, taskId: null, previousTaskId: null };
    const event = { ...unknown, id, at: this.#at, kind, nodeId, text, ...facts };
    this.events = [...this.events, event].slice(-200);
    return event;
  }

  /** A take-over: the node and the event that reports it. */
  takeOver(id: number, taskId: string): { readonly node: NodeReport; readonly event: ClusterEvent } {
    const { version = 0, taskId: previousTaskId = null } = this.nodes[id] ?? {};
    const node = this.change(id, {
      ...this.held(id, version + 1, taskId),
      knownNodes: this.nodes[id]?.knownNodes ?? {},
    });
    const text = `${taskId} took over node id ${id} from ${previousTaskId} at version ${version + 1}`;
    return {
      node,
      event: this.event('taken-over', id, text, { version: version + 1, taskId, previousTaskId }),
    };
  }

  /** Everything, as of now. */
  snapshot(): ClusterSnapshot {
    const { size, durationMs, graceMs } = this.options;
    const idWidth = Math.max(8, Math.ceil(Math.log2(size + 8)));
    return {
      report: {
        store: 's3://orders-prod/leases',
        cluster: { size, durationMs, graceMs, idWidth, bootstrapped: true },
        nodes: this.nodes,
        discovery: this.discovery,
        allocation: null,
        draining: [],
        totals: null,
        page: null,
      },
      store: {
        state: 'ok',
        problem: null,
        latencyMs: 18.4,
        clockOffsetMs: [-420, 580],
        lookedAt: Date.now(),
      },
      tree: null,
      events: this.events,
    };
  }
}
