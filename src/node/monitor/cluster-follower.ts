import { withTimeout } from '../../core/base/abort.js';
import { checkArguments, checked, FUNCTION, kind, listOf, maybe, TEXT } from '../../core/base/arguments.js';
import type { Clock, RandomSource } from '../../core/base/clock.js';
import { explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import type {
  ClusterEvent,
  ClusterSnapshot,
  NodeTenures,
  ShardsReport,
  StoreHealth,
} from '../wire/cluster-snapshot.js';
import type { DiscoveryStatusReport, StatusReport } from '../wire/status-report.js';
import type { TreeReport } from '../wire/tree-report.js';
import { scanAllocated } from './allocated-status.js';
import { ClusterReader, type ClusterScan, older } from './cluster-reader.js';
import type { ClusterView, CurrentCluster } from './cluster-view.js';
import { scanTree } from './discovery/discovery-comparison.js';
import { leaseChanges } from './lease-changes.js';
import { problemOf, totalsOf } from './listed-cluster.js';
import { PAUSE_FACTOR, ScanLoop, treePauseMs } from './scan-loop.js';
import { nodeReport, reportOf, withWrongVersions } from './status-report.js';
import { tenuresOf } from './tenures.js';

/** What a {@link ClusterFollower} follows: a store, the discovery tree, or both. */
export interface ClusterFollowerOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /**
   * The store that leases the node ids; undefined if ZooKeeper alone gives them out. The session is the
   * follower's own, and counts no other requests: any number of sessions may share one store.
   */
  readonly session?: StoreSession | undefined;
  /**
   * ZooKeeper, which announces the nodes, or gives out their ids. The caller closes it.
   * @default the discovery tree is not followed
   */
  readonly zookeeper?: Pick<ZooKeeper, 'description' | 'whenConnected' | 'children' | 'read'> | undefined;
  /** The name of ZooKeeper in reports: its connect string. @default its description */
  readonly connect?: string | undefined;
  /** The paths in ZooKeeper whose locks are followed, too. @default none */
  readonly locks?: readonly string[] | undefined;
  /** The roots of Monastery's shared data that is followed, too. @default none */
  readonly data?: readonly string[] | undefined;
  /** The parent of the configurations whose nodes are followed, too. @default none */
  readonly configRoot?: string | undefined;
  /** Reads who owns which shard: `shardsReport` of `nodelease/shards`. @default shards are not followed */
  readonly shards?: (
    session: StoreSession,
    cluster: ClusterConfig,
    signal: AbortSignal,
  ) => Promise<ShardsReport | undefined>;
}

/** Minimum time from the beginning of one scan to the beginning of the next, in milliseconds. */
const SCAN_MS = 1_000;
/**
 * The longest pause, in milliseconds: the first scan of a large cluster takes long, since it reads
 * everything, but later ones do not.
 */
const LONGEST_PAUSE_MS = 10_000;
/** For how long a snapshot waits for the discovery tree, in milliseconds. */
const TREE_TIMEOUT_MS = 1_000;
/** How long the same report is returned again, in milliseconds: there may be many callers at one time. */
const SAME_MS = 250;
/** How many events are kept. */
const EVENTS = 200;
const UNKNOWN: StoreHealth = {
  state: 'unknown',
  problem: null,
  latencyMs: null,
  clockOffsetMs: null,
  lookedAt: null,
};

/** The result of a scan, and when it ended on the monotonic clock. */
interface Scanned {
  readonly scan: ClusterScan;
  readonly at: number;
}

/** A {@link ClusterEvent} without its number and time. */
type EventFacts = Pick<ClusterEvent, 'kind' | 'text'> & Partial<ClusterEvent>;

/**
 * Follows a cluster in a store, or, without one, in ZooKeeper alone. It scans about once a second as long as
 * it has listeners, and once for a snapshot if the last scan is not fresh. A scan costs the store a LIST,
 * a GET for each lease that was written, a hundred at most, and in a cluster with shards a GET of their map.
 *
 * Changes between two scans are reported as far as the scans show them: a holder of less than a second may
 * not be seen.
 */
export class ClusterFollower implements ClusterView {
  readonly epoch: string;
  readonly #clock: Clock;
  readonly #read: (signal: AbortSignal) => Promise<ClusterScan>;
  readonly #readShards: (scan: ClusterScan, signal: AbortSignal) => Promise<ShardsReport | undefined>;
  readonly #leases: ScanLoop;
  readonly #tree: ScanLoop | undefined;
  readonly #listeners = new Listeners<void>();
  readonly #closed = new AbortController();
  #failure: unknown;
  /** How many scans have failed in a row. */
  #failures = 0;
  /** The result of the last successful scan. */
  #scanned: Scanned | undefined;
  #facts: Omit<CurrentCluster, 'report'> = { store: UNKNOWN, tree: null, events: [], revision: 0 };
  readonly #countsVersions: boolean;
  /** How far the tree agrees with the leases; null without leases or a tree. */
  #discovery: DiscoveryStatusReport | null = null;
  /** Whether the result is too old to be shown, until the next scan has ended. */
  #isOutdated = false;
  #report: { readonly report: StatusReport; readonly at: number } | undefined;

  /** @throws {TypeError} when neither a store nor ZooKeeper is given */
  constructor(options: ClusterFollowerOptions) {
    const paths = maybe(listOf(TEXT));
    const {
      clock,
      random,
      session,
      zookeeper,
      connect = zookeeper?.description ?? '',
      shards,
      ...shown
    } = checked(options, { locks: paths, data: paths, shards: maybe(FUNCTION) });
    checkArguments({ clock, random });
    if (session !== undefined) checkArguments({ session });
    if (zookeeper !== undefined) checkArguments({ zookeeper });
    this.epoch = random.hex(8);
    this.#clock = clock;
    this.#countsVersions = session !== undefined;
    const reader = session && new ClusterReader(session, clock);
    if (reader) this.#read = (signal) => reader.scan(signal);
    else if (zookeeper) this.#read = (signal) => scanAllocated(zookeeper, connect, clock, signal);
    else throw new TypeError('expected a store or ZooKeeper to follow');
    this.#readShards = async ({ hints }, signal) =>
      session && hints && shards?.(session, hints.cluster, signal);
    this.#leases = new ScanLoop((signal) => this.#scan(signal), clock);
    if (!zookeeper) return;
    this.#tree = new ScanLoop(async (signal) => {
      const begun = clock.monotonic();
      const { report, status } = await scanTree(
        zookeeper,
        { connect, ...shown },
        () => this.#scanned?.scan.nodes ?? [],
        signal,
      );
      // Without a store there are no leases to compare with.
      this.#onTree(report, session ? status : null);
      return treePauseMs(report === null ? 0 : clock.monotonic() - begun);
    }, clock);
  }

  async snapshot(signal?: AbortSignal): Promise<ClusterSnapshot> {
    checked({ signal });
    signal?.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    const leases = this.#leases.isFresh ? undefined : this.#leases.next(signal);
    // A short wait: the scan of the tree continues without the caller.
    const tree =
      this.#tree && !this.#tree.isFresh && withTimeout(this.#clock, TREE_TIMEOUT_MS, this.#tree.next(signal));
    await Promise.all([leases, tree]);
    this.#closed.signal.throwIfAborted();
    const { report, revision, ...facts } = this.current();
    if (report === null) throw this.#failure;
    return { report, ...facts };
  }

  current(): CurrentCluster {
    if (this.#isOutdated)
      return { ...this.#facts, report: null, store: UNKNOWN, tree: null, shards: undefined };
    return { ...this.#facts, report: this.#currentReport() };
  }

  tenures(ids: ReadonlySet<number>): readonly NodeTenures[] {
    checkArguments({ ids }, { ids: kind('a set of node ids', (value) => value instanceof Set) });
    return (this.#scanned?.scan.nodes ?? []).filter(({ id }) => ids.has(id)).map(tenuresOf);
  }

  follow(listener: () => void): () => void {
    if (this.#closed.signal.aborted) return () => undefined;
    if (this.#listeners.size === 0 && !this.#leases.isFresh) this.#isOutdated = true;
    const ends = [this.#listeners.add(listener), this.#leases.use(), this.#tree?.use()];
    return () => {
      for (const end of ends) end?.();
    };
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#listeners.clear();
    await Promise.all([this.#leases.close(), this.#tree?.close()]);
  }

  async #scan(signal: AbortSignal): Promise<number> {
    const begun = this.#clock.monotonic();
    try {
      const scan = await this.#read(signal);
      const shards = await this.#readShards(scan, signal);
      signal.throwIfAborted();
      this.#failures = 0;
      this.#onScan(scan, shards);
    } catch (error) {
      signal.throwIfAborted();
      this.#failure = error;
      this.#failures += 1;
      const { store } = this.#facts;
      const problem = explain(error);
      if (store.state !== 'failing')
        this.#addEvents([{ kind: 'store-failed', text: `the node ids cannot be looked at: ${problem}` }]);
      // The earlier result stays as it was.
      this.#change({ store: { ...store, state: 'failing', problem } });
    }
    this.#isOutdated = false;
    this.#listeners.notify();
    const took = this.#clock.monotonic() - begun;
    const pauseMs =
      this.#failures > 0
        ? SCAN_MS * 2 ** (this.#failures - 1)
        : Math.max(SCAN_MS - took, PAUSE_FACTOR * took);
    return Math.min(pauseMs, LONGEST_PAUSE_MS);
  }

  #onScan(scan: ClusterScan, read: ShardsReport | undefined): void {
    const before = this.#scanned;
    const { latencyMs, clockOffsetMs } = scan;
    this.#scanned = { scan, at: this.#clock.monotonic() };
    if (this.#facts.store.state === 'failing')
      this.#addEvents([{ kind: 'store-ok', text: 'the node ids can be looked at again' }]);
    const since = this.#facts.store.lookedAt;
    if (before) this.#addEvents(eventsBetween(before, this.#scanned, this.#countsVersions), since);
    this.#addEvents(scan.foreignChanges?.() ?? [], since);
    const { shards } = this.#facts;
    const isSame = read?.epoch === shards?.epoch && read?.problem === shards?.problem;
    this.#change({
      shards: isSame ? shards : read,
      store: { state: 'ok', problem: null, latencyMs, clockOffsetMs, lookedAt: this.#clock.now() },
    });
  }

  #onTree(tree: TreeReport | null, discovery: DiscoveryStatusReport | null): void {
    const isNewTree = JSON.stringify(tree) !== JSON.stringify(this.#facts.tree);
    const isNewDiscovery = JSON.stringify(discovery) !== JSON.stringify(this.#discovery);
    if (isNewTree) this.#facts = { ...this.#facts, tree };
    this.#discovery = discovery;
    if (isNewDiscovery) this.#change({});
    if (isNewTree || isNewDiscovery) this.#listeners.notify();
  }

  #change(facts: Partial<CurrentCluster>): void {
    this.#facts = { ...this.#facts, ...facts, revision: this.#facts.revision + 1 };
    this.#report = undefined;
  }

  #addEvents(added: readonly EventFacts[], since: number | null = null): void {
    const { events } = this.#facts;
    const at = this.#clock.now();
    const first = (events.at(-1)?.id ?? 0) + 1;
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
    if (added.length > 0) this.#facts = { ...this.#facts, events: [...events, ...numbered].slice(-EVENTS) };
  }

  /** The ages are current. A lease that can no longer be read keeps its last age. */
  #currentReport(): StatusReport | null {
    if (this.#scanned === undefined) return null;
    const now = this.#clock.monotonic();
    if (this.#report && now - this.#report.at <= SAME_MS) return this.#report.report;
    const { scan, at } = this.#scanned;
    const { nodes, hints, head } = scan;
    const sinceMs = this.#facts.store.state === 'ok' ? now - at : 0;
    const reports = withWrongVersions(nodes).map((node) =>
      nodeReport({ ...node, age: older(node.age, sinceMs) }, problemOf(node, hints?.cluster)),
    );
    const report = reportOf({
      ...head,
      nodes: reports,
      discovery: this.#discovery,
      totals: hints ? totalsOf(nodes, hints) : null,
    });
    this.#report = { report, at: now };
    return report;
  }
}

function eventsBetween(
  { scan: before, at }: Scanned,
  { scan: after, at: now }: Scanned,
  countsVersions: boolean,
): EventFacts[] {
  const between = {
    countsVersions,
    sinceMs: now - at,
    before: before.hints?.cluster,
    after: after.hints?.cluster,
  };
  const nodes =
    between.before || between.after
      ? after.nodes
      : [...after.nodes, ...withoutZnodes(before.nodes, after.nodes)];
  return [
    ...resized(between.before?.size, between.after?.size),
    ...leaseChanges(before.nodes, nodes, between),
  ];
}

/**
 * If ZooKeeper alone gives out the node ids, an id whose znode is gone has no holder, and keeps its version.
 */
function withoutZnodes(before: readonly NodeStatus[], after: readonly NodeStatus[]): NodeStatus[] {
  const present = new Set(after.map(({ id }) => id));
  const gone = before.filter(({ id }) => !present.has(id));
  return gone.map((node) => ({
    ...node,
    state: 'released',
    taskId: undefined,
    idWidth: undefined,
    problem: undefined,
  }));
}

function resized(before: number | undefined, size: number | undefined): EventFacts[] {
  if (before === undefined || before === size) return [];
  if (size === undefined)
    return [{ kind: 'resized', text: 'the cluster is gone: there are no node ids any more' }];
  return [{ kind: 'resized', text: `the cluster has ${size} node ids now, ${before} before` }];
}
