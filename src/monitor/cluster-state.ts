import type { Clock } from '../base/clock.js';
import type { NodeStatus } from '../lease/operate/inspect.js';
import { type ClusterScan, older } from './cluster-reader.js';
import type { ClusterEvent, CurrentCluster, StoreHealth } from './cluster-view.js';
import type { DiscoveryReport } from './discovery-report.js';
import { leaseChanges } from './lease-changes.js';
import { problemOf, totalsOf } from './listed-cluster.js';
import { type DiscoveryStatusReport, nodeReport, reportOf, type StatusReport, withWrongVersions } from './status-report.js';

/** The result of a scan, and when it ended on the monotonic clock. */
interface Scanned {
  readonly scan: ClusterScan;
  readonly at: number;
}

/** A {@link ClusterEvent} without its number and time. */
type EventFacts = Pick<ClusterEvent, 'kind' | 'text'> & Partial<ClusterEvent>;

/** For how long the same report is given again, in milliseconds: many may ask at one time. */
const SAME_MS = 250;
/** How many events are kept. */
const EVENTS = 200;
const UNKNOWN: StoreHealth = { state: 'unknown', problem: null, latencyMs: null, clockOffsetMs: null, lookedAt: null };

/** What the last scans of a cluster have found, and what happened between them. */
export class ClusterState {
  #scanned: Scanned | undefined;
  #facts: Omit<CurrentCluster, 'report'> = { store: UNKNOWN, tree: null, events: [], revision: 0 };
  #discovery: DiscoveryStatusReport | null = null;
  #isOutdated = false;
  #report: { readonly report: StatusReport; readonly at: number } | undefined;

  constructor(private readonly clock: Pick<Clock, 'now' | 'monotonic'>) {}

  /** The node ids, as the last scan found them. */
  get nodes(): readonly NodeStatus[] {
    return this.#scanned?.scan.nodes ?? [];
  }

  /** Everything; without the cluster itself before the first scan has succeeded. */
  current(): CurrentCluster {
    if (this.#isOutdated) return { ...this.#facts, report: null, store: UNKNOWN, tree: null };
    return { ...this.#facts, report: this.#currentReport() };
  }

  /** What was found is too old to be shown, until the next scan has ended. */
  outdated(): void {
    this.#isOutdated = true;
  }

  /** A scan has succeeded. */
  onScan(scan: ClusterScan): void {
    const before = this.#scanned;
    const { latencyMs, clockOffsetMs } = scan;
    this.#scanned = { scan, at: this.clock.monotonic() };
    if (this.#facts.store.state === 'failing') this.#addEvents([{ kind: 'store-ok', text: 'the node ids can be looked at again' }]);
    if (before) this.#addEvents(eventsBetween(before, this.#scanned));
    this.#isOutdated = false;
    this.#change({ store: { state: 'ok', problem: null, latencyMs, clockOffsetMs, lookedAt: this.clock.now() } });
  }

  /** A scan has failed. What was found before stays as it was then. */
  onFailure(problem: string): void {
    const { store } = this.#facts;
    if (store.state !== 'failing') this.#addEvents([{ kind: 'store-failed', text: `the node ids cannot be looked at: ${problem}` }]);
    this.#isOutdated = false;
    this.#change({ store: { ...store, state: 'failing', problem } });
  }

  /**
   * A scan of the discovery tree has ended, well or not. Returns whether anything is different now.
   *
   * @param discovery how far the tree agrees with the leases; null where there is nothing to agree with
   */
  onTree(tree: DiscoveryReport | null, discovery: DiscoveryStatusReport | null): boolean {
    const isNewTree = JSON.stringify(tree) !== JSON.stringify(this.#facts.tree);
    const isNewDiscovery = JSON.stringify(discovery) !== JSON.stringify(this.#discovery);
    if (isNewTree) this.#facts = { ...this.#facts, tree };
    this.#discovery = discovery;
    if (isNewDiscovery) this.#change({});
    return isNewTree || isNewDiscovery;
  }

  #change(facts: Partial<CurrentCluster>): void {
    this.#facts = { ...this.#facts, ...facts, revision: this.#facts.revision + 1 };
    this.#report = undefined;
  }

  #addEvents(added: readonly EventFacts[]): void {
    const { events } = this.#facts;
    const at = this.clock.now();
    const first = (events.at(-1)?.id ?? 0) + 1;
    const numbered = added.map((each, index): ClusterEvent => {
      return { nodeId: null, version: null, taskId: null, previousTaskId: null, ...each, id: first + index, at };
    });
    if (added.length > 0) this.#facts = { ...this.#facts, events: [...events, ...numbered].slice(-EVENTS) };
  }

  /** The ages are those of now; what can no longer be read keeps the age that it had. */
  #currentReport(): StatusReport | null {
    if (this.#scanned === undefined) return null;
    const now = this.clock.monotonic();
    if (this.#report && now - this.#report.at <= SAME_MS) return this.#report.report;
    const { scan, at } = this.#scanned;
    const { nodes, hints, head } = scan;
    const sinceMs = this.#facts.store.state === 'ok' ? now - at : 0;
    const reports = withWrongVersions(nodes).map((node) =>
      nodeReport({ ...node, age: older(node.age, sinceMs) }, problemOf(node, hints?.cluster)),
    );
    const report = reportOf({ ...head, nodes: reports, discovery: this.#discovery, totals: hints ? totalsOf(nodes, hints) : null });
    this.#report = { report, at: now };
    return report;
  }
}

function eventsBetween({ scan: before, at }: Scanned, { scan: after, at: now }: Scanned): EventFacts[] {
  const between = { sinceMs: now - at, before: before.hints?.cluster, after: after.hints?.cluster };
  const nodes = between.before || between.after ? after.nodes : [...after.nodes, ...withoutZnodes(before.nodes, after.nodes)];
  return [...resized(between.before?.size, between.after?.size), ...leaseChanges(before.nodes, nodes, between)];
}

/** Where ZooKeeper alone gives out the node ids, one whose znode is gone has no holder, and keeps its version. */
function withoutZnodes(before: readonly NodeStatus[], after: readonly NodeStatus[]): NodeStatus[] {
  const present = new Set(after.map(({ id }) => id));
  const gone = before.filter(({ id }) => !present.has(id));
  return gone.map((node) => ({ ...node, state: 'released', taskId: undefined, idWidth: undefined, problem: undefined }));
}

function resized(before: number | undefined, size: number | undefined): EventFacts[] {
  if (before === undefined || before === size) return [];
  if (size === undefined) return [{ kind: 'resized', text: 'the cluster is gone: there are no node ids any more' }];
  return [{ kind: 'resized', text: `the cluster has ${size} node ids now, ${before} before` }];
}
