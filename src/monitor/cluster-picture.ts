import type { Clock } from '../clock.js';
import type { NodeStatus } from '../lease/inspect.js';
import { ClusterEvents, type EventFacts, factsOf } from './cluster-events.js';
import type { ClusterLook, ClusterSource } from './cluster-source.js';
import type { ClusterSnapshot, ClusterUpdate, StoreHealth } from './cluster-view.js';
import type { DiscoveryStatus } from './discovery-glance.js';
import type { DiscoveryReport } from './discovery-report.js';
import { withKnownVersions } from './known-versions.js';
import { leaseChanges } from './lease-changes.js';
import { totalsOf } from './lease-hints.js';
import { type NodeReport, nodeReport, type ReportHead } from './status-report.js';

/** A look, and what came of it. */
interface Seen {
  readonly look: ClusterLook;
  /** On the monotonic clock. */
  readonly at: number;
  readonly nodes: ReadonlyMap<number, NodeStatus>;
}

/** For how long a snapshot is told again, in milliseconds: many may ask at one time. */
const SAME_MS = 250;

/** What has been seen of a cluster. Each look is compared with the one before it; what is different now is the answer. */
export class ClusterPicture {
  readonly #events: ClusterEvents;
  #seen: Seen | undefined;
  #head: ReportHead | undefined;
  #store: StoreHealth = { state: 'unknown', problem: null, latencyMs: null, clockOffsetMs: null, lookedAt: null };
  #tree: DiscoveryReport | null = null;
  #snapshot: { readonly told: ClusterSnapshot; readonly at: number } | undefined;

  constructor(private readonly clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#events = new ClusterEvents(clock);
  }

  /** The node ids that are held. */
  held(): readonly NodeStatus[] {
    return this.#seen?.look.nodes.filter(({ state }) => state === 'held') ?? [];
  }

  /** Everything; for a moment the same object, as long as nothing is different. Undefined before the first look. */
  snapshot(): ClusterSnapshot | undefined {
    if (this.#seen === undefined || this.#head === undefined) return undefined;
    const now = this.clock.monotonic();
    if (this.#snapshot && now - this.#snapshot.at <= SAME_MS) return this.#snapshot.told;
    // What cannot be looked at is told as it was.
    const sinceMs = this.#store.state === 'ok' ? now - this.#seen.at : 0;
    const { hints, nodes: seen } = this.#seen.look;
    const nodes = this.#reports(
      this.#seen,
      seen.map((node) => aged(node, sinceMs)),
    );
    const totals = hints === undefined ? null : totalsOf(seen, hints.cluster, hints.retired);
    const told = { report: { ...this.#head, nodes, totals, page: null }, store: this.#store, tree: this.#tree, events: this.#events.list };
    this.#snapshot = { told, at: now };
    return told;
  }

  /** A look has ended well. */
  onLook(look: ClusterLook, source: Pick<ClusterSource, 'latencyMs' | 'clockOffsetMs'>, discovery?: DiscoveryStatus): ClusterUpdate[] {
    const before = this.#seen;
    const wasFailing = this.#store.state === 'failing';
    const seen = { look, at: this.clock.monotonic(), nodes: new Map(look.nodes.map((node) => [node.id, node])) };
    this.#seen = seen;
    this.#snapshot = undefined;
    this.#store = {
      state: 'ok',
      problem: null,
      latencyMs: source.latencyMs,
      clockOffsetMs: source.clockOffsetMs(),
      lookedAt: this.clock.now(),
    };
    const changed = [...look.nodes.filter((node) => isDifferent(before, look, node)), ...look.gone];
    const events = this.#events.add([
      ...(wasFailing ? [{ kind: 'store-ok', text: 'the node ids can be looked at again' } as const] : []),
      ...(before ? factsBetween(before, seen) : []),
    ]);
    return [
      { type: 'store', store: this.#store },
      ...this.#updateHead(discovery),
      ...(changed.length > 0 ? [{ type: 'nodes', nodes: this.#reports(seen, changed) } as const] : []),
      ...events.map((event) => ({ type: 'change', event }) as const),
    ];
  }

  /** A look has failed. What was seen before stays, as it was then. */
  onFailure(problem: string): ClusterUpdate[] {
    const wasFailing = this.#store.state === 'failing';
    this.#snapshot = undefined;
    this.#store = { ...this.#store, state: 'failing', problem };
    const events = wasFailing ? [] : this.#events.add([{ kind: 'store-failed', text: `the node ids cannot be looked at: ${problem}` }]);
    return [{ type: 'store', store: this.#store }, ...events.map((event) => ({ type: 'change', event }) as const)];
  }

  /** A look at the discovery tree has ended, well or not. */
  onTree(tree: DiscoveryReport | null, discovery: DiscoveryStatus | undefined): ClusterUpdate[] {
    const isNew = JSON.stringify(tree) !== JSON.stringify(this.#tree);
    if (isNew) {
      this.#tree = tree;
      this.#snapshot = undefined;
    }
    return [...(isNew ? [{ type: 'tree', tree } as const] : []), ...this.#updateHead(discovery)];
  }

  #updateHead(discovery: DiscoveryStatus | undefined): ClusterUpdate[] {
    if (this.#seen === undefined) return [];
    const report = this.#seen.look.head(discovery);
    if (JSON.stringify(report) === JSON.stringify(this.#head)) return [];
    this.#head = report;
    this.#snapshot = undefined;
    return [{ type: 'cluster', report }];
  }

  #reports({ look, nodes: all }: Seen, nodes: readonly NodeStatus[]): readonly NodeReport[] {
    const reports = nodes.map((node) => nodeReport(node, look.problemOf(node)));
    return withKnownVersions(reports, all);
  }
}

/** A node id a while later, as far as nobody has written it since. */
function aged(node: NodeStatus, byMs: number): NodeStatus {
  return node.age === undefined ? node : { ...node, age: { min: node.age.min + byMs, max: node.age.max + byMs } };
}

/** Whether a node id was written, or is in another state now. */
function isDifferent(before: Seen | undefined, look: ClusterLook, node: NodeStatus): boolean {
  const was = before?.nodes.get(node.id);
  if (before === undefined || was === undefined || look.written.has(node.id)) return true;
  return was.state !== node.state || before.look.problemOf(was) !== look.problemOf(node) || was.version !== node.version;
}

function factsBetween(before: Seen, { look, at }: Seen): EventFacts[] {
  const problemOf = { before: before.look.problemOf, after: look.problemOf };
  const changes = leaseChanges(before.look.nodes, [...look.nodes, ...look.gone], { sinceMs: at - before.at, problemOf });
  const resized = before.look.size !== undefined && look.size !== undefined && before.look.size !== look.size;
  return [
    ...(before.look.size !== undefined && look.size === undefined
      ? [{ kind: 'resized', text: 'the cluster is gone: there are no node ids any more' } as const]
      : []),
    ...(resized ? [{ kind: 'resized', text: `the cluster has ${look.size} node ids now, ${before.look.size} before` } as const] : []),
    ...changes.map(factsOf),
  ];
}
