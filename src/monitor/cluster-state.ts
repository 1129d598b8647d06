import type { Clock } from '../base/clock.js';
import type { NodeStatus } from '../lease/operate/inspect.js';
import type { ClusterScan, ClusterSource } from './cluster-source.js';
import type { ClusterEvent, CurrentCluster, StoreHealth } from './cluster-view.js';
import type { DiscoveryStatus } from './discovery-comparison.js';
import type { DiscoveryReport } from './discovery-report.js';
import { type EventFacts, eventFacts, leaseChanges } from './lease-changes.js';
import { totalsOf } from './listed-cluster.js';
import { nodeReport, type ReportHead, type StatusReport, withKnownVersions } from './status-report.js';

/** The result of a scan, and when it ended on the monotonic clock. */
interface Scanned {
  readonly look: ClusterScan;
  readonly at: number;
}

/** For how long the same report is given again, in milliseconds: many may ask at one time. */
const SAME_MS = 250;
/** How many events are kept. */
const EVENTS = 200;
const UNKNOWN: StoreHealth = { state: 'unknown', problem: null, latencyMs: null, clockOffsetMs: null, lookedAt: null };

/** What the last scans of a cluster have found, and what happened between them. */
export class ClusterState {
  #scanned: Scanned | undefined;
  #head: ReportHead | undefined;
  #store = UNKNOWN;
  #tree: DiscoveryReport | null = null;
  #events: readonly ClusterEvent[] = [];
  #revision = 0;
  #isOutdated = false;
  #report: { readonly report: StatusReport; readonly at: number } | undefined;

  constructor(private readonly clock: Pick<Clock, 'now' | 'monotonic'>) {}

  /** The node ids, as the last scan found them. */
  get nodes(): readonly NodeStatus[] {
    return this.#scanned?.look.nodes ?? [];
  }

  /** Everything; without the cluster itself before the first scan has succeeded. */
  current(): CurrentCluster {
    const facts = { events: this.#events, revision: this.#revision };
    if (this.#isOutdated) return { report: null, store: UNKNOWN, tree: null, ...facts };
    return { report: this.#currentReport(), store: this.#store, tree: this.#tree, ...facts };
  }

  /** What was found is too old to be shown, until the next scan has ended. */
  outdated(): void {
    this.#isOutdated = true;
  }

  /** A scan has succeeded. */
  onScan(look: ClusterScan, source: Pick<ClusterSource, 'latencyMs' | 'clockOffsetMs'>, discovery?: DiscoveryStatus): void {
    const before = this.#scanned;
    const now: Scanned = { look, at: this.clock.monotonic() };
    this.#addEvents([
      ...(this.#store.state === 'failing' ? [{ kind: 'store-ok', text: 'the node ids can be looked at again' } as const] : []),
      ...(before ? factsBetween(before, now) : []),
    ]);
    this.#scanned = now;
    this.#isOutdated = false;
    this.#head = look.head(discovery);
    const [latencyMs, clockOffsetMs] = [source.latencyMs, source.clockOffsetMs()];
    this.#store = { state: 'ok', problem: null, latencyMs, clockOffsetMs, lookedAt: this.clock.now() };
    this.#changed();
  }

  /** A scan has failed. What was found before stays as it was then. */
  onFailure(problem: string): void {
    if (this.#store.state !== 'failing') this.#addEvents([{ kind: 'store-failed', text: `the node ids cannot be looked at: ${problem}` }]);
    this.#store = { ...this.#store, state: 'failing', problem };
    this.#isOutdated = false;
    this.#changed();
  }

  /** A scan of the discovery tree has ended, well or not. Returns whether anything is different now. */
  onTree(tree: DiscoveryReport | null, discovery: DiscoveryStatus | undefined): boolean {
    const head = this.#scanned?.look.head(discovery);
    const isNewTree = JSON.stringify(tree) !== JSON.stringify(this.#tree);
    const isNewHead = JSON.stringify(head) !== JSON.stringify(this.#head);
    if (isNewTree) this.#tree = tree;
    if (isNewHead) {
      this.#head = head;
      this.#changed();
    }
    return isNewTree || isNewHead;
  }

  #changed(): void {
    this.#report = undefined;
    this.#revision += 1;
  }

  #addEvents(facts: readonly EventFacts[]): void {
    const at = this.clock.now();
    const first = (this.#events.at(-1)?.id ?? 0) + 1;
    const added = facts.map((each, index): ClusterEvent => {
      return { id: first + index, at, nodeId: null, version: null, taskId: null, previousTaskId: null, ...each };
    });
    if (added.length > 0) this.#events = [...this.#events, ...added].slice(-EVENTS);
  }

  /** The ages are those of now; what can no longer be read keeps the age that it had. */
  #currentReport(): StatusReport | null {
    if (this.#scanned === undefined || this.#head === undefined) return null;
    const now = this.clock.monotonic();
    if (this.#report && now - this.#report.at <= SAME_MS) return this.#report.report;
    const { look, at } = this.#scanned;
    const sinceMs = this.#store.state === 'ok' ? now - at : 0;
    const reports = look.nodes.map((node) => nodeReport(aged(node, sinceMs), look.problemOf(node)));
    const nodes = withKnownVersions(reports, look.nodes);
    const totals = look.hints === undefined ? null : totalsOf(look.nodes, look.hints.cluster, look.hints.retired);
    const report = { ...this.#head, nodes, totals, page: null };
    this.#report = { report, at: now };
    return report;
  }
}

/** A node id a while later, as far as it has not been written since. */
function aged(node: NodeStatus, byMs: number): NodeStatus {
  return node.age === undefined ? node : { ...node, age: { min: node.age.min + byMs, max: node.age.max + byMs } };
}

function factsBetween({ look: before, at }: Scanned, { look, at: now }: Scanned): EventFacts[] {
  const problemOf = { before: before.problemOf, after: look.problemOf };
  const changes = leaseChanges(before.nodes, [...look.nodes, ...look.gone], { sinceMs: now - at, problemOf });
  return [...resized(before.size, look.size), ...changes.map(eventFacts)];
}

function resized(before: number | undefined, size: number | undefined): EventFacts[] {
  if (before === undefined || before === size) return [];
  if (size === undefined) return [{ kind: 'resized', text: 'the cluster is gone: there are no node ids any more' }];
  return [{ kind: 'resized', text: `the cluster has ${size} node ids now, ${before} before` }];
}
