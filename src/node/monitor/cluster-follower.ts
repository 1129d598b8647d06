import { withTimeout } from '../../core/base/abort.js';
import { checkArguments, checked, FUNCTION, kind, maybe } from '../../core/base/arguments.js';
import type { Clock, RandomSource } from '../../core/base/clock.js';
import { Listeners } from '../../core/base/listeners.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import {
  type ClusterSnapshot,
  type LockReport,
  type NodeTenures,
  type ShardsReport,
  type TreeReport,
  UNKNOWN_STORE,
} from '../wire/cluster-snapshot.js';
import type { DiscoveryStatusReport, StatusReport } from '../wire/status-report.js';
import { scanAllocated } from './allocated-status.js';
import { ClusterReader } from './cluster-reader.js';
import { type FollowedParts, scanTree } from './discovery/discovery-comparison.js';
import { type LeaseScan, LeaseScans } from './lease-scans.js';
import { ScanLoop, treePauseMs } from './scan-loop.js';
import { tenuresOf } from './tenures.js';

/** The part of it that is known, without a wait. */
export interface CurrentCluster extends Omit<ClusterSnapshot, 'report'> {
  /** Null while the cluster has never been read, or if the last read is too old. */
  readonly report: StatusReport | null;
  /** Changes after each scan, and whenever the report changes in more than its ages. */
  readonly revision: number;
}

/** A cluster that is followed. Takes no part in the protocol. */
export interface ClusterView {
  /** Random, and different in every process: the numbers of events restart with it. */
  readonly epoch: string;
  /**
   * The current state: the last scan if it is fresh, otherwise a new one.
   *
   * @throws {StoreError} or {ZooKeeperError} when no scan ever succeeded
   * @throws `signal.reason`
   */
  snapshot(signal?: AbortSignal): Promise<ClusterSnapshot>;
  /** The known state at this moment. Unchanged parts are the same objects, except for the report. */
  current(): CurrentCluster;
  /** The tenures that the lease objects of these ids showed at the last scan; none before one. */
  tenures(ids: ReadonlySet<number>): readonly NodeTenures[];
  /**
   * Scans while there are listeners, and calls them at every possible change. They must not throw. The
   * returned function ends it.
   */
  follow(listener: () => void): () => void;
  /** Ends all scans. The store is closed by its owner. Idempotent. */
  close(): Promise<void>;
}

/** What a {@link ClusterFollower} follows: a store, the discovery tree, or both. */
export interface ClusterFollowerOptions {
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /** @default the operating system's */
  readonly random?: RandomSource | undefined;
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
  /** What is followed in ZooKeeper in addition to the discovery tree. @default nothing */
  readonly parts?: FollowedParts | undefined;
  /** Reads who owns which shard: `shardsReport` of `nodelease/shards`. @default shards are not followed */
  readonly shards?:
    | ((
        session: StoreSession,
        cluster: ClusterConfig,
        signal: AbortSignal,
      ) => Promise<ShardsReport | undefined>)
    | undefined;
  /**
   * Reads the locks of the store, every ten seconds while there are listeners, hundreds of them more rarely.
   * @default they are not followed
   */
  readonly locks?: ((signal: AbortSignal) => Promise<readonly LockReport[]>) | undefined;
}

/** For how long a snapshot waits for the discovery tree, in milliseconds. */
const TREE_TIMEOUT_MS = 1_000;
/** How long the same report is returned again, in milliseconds: there may be many callers at one time. */
const SAME_MS = 250;

/**
 * Follows a cluster in a store, or, without one, in ZooKeeper alone. It scans about once a second as long as
 * it has listeners, and once for a snapshot if the last scan is not fresh. A scan costs the store a LIST,
 * a GET for each lease that was written, a hundred at most, and in a cluster with shards a GET of their map. Locks
 * cost a LIST every ten seconds, and a GET for each that was written: ten in a second at most.
 *
 * Changes between two scans are reported as far as the scans show them: a holder of less than a second may
 * not be seen.
 */
export class ClusterFollower implements ClusterView {
  readonly epoch: string;
  readonly #clock: Clock;
  readonly #leases: LeaseScans;
  readonly #leaseLoop: ScanLoop;
  readonly #treeLoop: ScanLoop | undefined;
  readonly #locksLoop: ScanLoop | undefined;
  #locks: readonly LockReport[] | undefined;
  readonly #listeners = new Listeners<void>();
  readonly #closed = new AbortController();
  #tree: TreeReport | null = null;
  /** How far the tree agrees with the leases; null without leases or a tree. */
  #discovery: DiscoveryStatusReport | null = null;
  #revision = 0;
  /** Whether the result is too old to be shown, until the next scan has ended. */
  #isOutdated = false;
  #report:
    | { readonly report: StatusReport | null; readonly at: number; readonly revision: number }
    | undefined;

  /** @throws {TypeError} when neither a store nor ZooKeeper is given */
  constructor(options: ClusterFollowerOptions) {
    const {
      clock = systemClock,
      random = systemRandom,
      session,
      zookeeper,
      connect = zookeeper?.description ?? '',
      parts = {},
      shards,
      locks,
    } = checked(options, { shards: maybe(FUNCTION), locks: maybe(FUNCTION) });
    checkArguments({ parts });
    for (const [name, part] of Object.entries(parts))
      checkArguments({ [name]: part }, { [name]: maybe(FUNCTION) });
    if (session !== undefined) checkArguments({ session });
    if (zookeeper !== undefined) checkArguments({ zookeeper });
    this.epoch = random.hex(8);
    this.#clock = clock;
    const scan = session
      ? storeScan(session, clock, shards)
      : zookeeper && ((signal: AbortSignal) => scanAllocated(zookeeper, connect, clock, signal));
    if (!scan) throw new TypeError('expected a store or ZooKeeper to follow');
    this.#leases = new LeaseScans(scan, clock);
    this.#leaseLoop = new ScanLoop(
      (signal) => this.#scanLeases(signal),
      (tookMs) => this.#leases.pauseMs(tookMs),
      clock,
    );
    this.#locksLoop =
      locks &&
      new ScanLoop(
        async (signal) => {
          // What cannot be read stays as it was: the leases show that the store is failing.
          this.#locks = await locks(signal).catch(() => this.#locks);
          signal.throwIfAborted();
          this.#listeners.notify();
        },
        () => Math.max(10_000, 100 * (this.#locks?.length ?? 0)),
        clock,
      );
    if (!zookeeper) return;
    this.#treeLoop = new ScanLoop(
      async (signal) => {
        const nodes = () => this.#leases.nodes;
        const { report, status } = await scanTree(zookeeper, { connect, parts }, nodes, signal);
        // Without a store there are no leases to compare with.
        this.#onTree(report, session ? status : null);
      },
      (tookMs) => treePauseMs(this.#tree === null ? 0 : tookMs),
      clock,
    );
  }

  async snapshot(signal?: AbortSignal): Promise<ClusterSnapshot> {
    checked({ signal });
    signal?.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    const leases = this.#leaseLoop.isFresh ? undefined : this.#leaseLoop.next(signal);
    const loop = this.#treeLoop;
    // A short wait: the scan of the tree continues without the caller.
    const tree = loop && !loop.isFresh && withTimeout(this.#clock, TREE_TIMEOUT_MS, loop.next(signal));
    await Promise.all([leases, tree]);
    this.#closed.signal.throwIfAborted();
    const { report, revision, ...facts } = this.current();
    if (report === null) throw this.#leases.failure;
    return { report, ...facts };
  }

  current(): CurrentCluster {
    const { store, shards, events } = this.#leases;
    const revision = this.#revision;
    if (this.#isOutdated) return { store: UNKNOWN_STORE, tree: null, events, revision, report: null };
    const report = this.#currentReport();
    return { store, tree: this.#tree, events, revision, shards, locks: this.#locks, report };
  }

  tenures(ids: ReadonlySet<number>): readonly NodeTenures[] {
    checkArguments({ ids }, { ids: kind('a set of node ids', (value) => value instanceof Set) });
    return this.#leases.nodes.filter(({ id }) => ids.has(id)).map(tenuresOf);
  }

  follow(listener: () => void): () => void {
    if (this.#closed.signal.aborted) return () => undefined;
    if (this.#listeners.size === 0) {
      if (!this.#leaseLoop.isFresh) this.#isOutdated = true;
      if (!this.#treeLoop?.isFresh) [this.#tree, this.#discovery] = [null, null];
      if (!this.#locksLoop?.isFresh) this.#locks = undefined;
    }
    const loops = [this.#leaseLoop, this.#treeLoop, this.#locksLoop];
    const ends = [this.#listeners.add(listener), ...loops.map((loop) => loop?.use())];
    return () => {
      for (const end of ends) end?.();
    };
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#listeners.clear();
    await Promise.all([this.#leaseLoop.close(), this.#treeLoop?.close(), this.#locksLoop?.close()]);
  }

  async #scanLeases(signal: AbortSignal) {
    await this.#leases.scan(signal);
    this.#revision += 1;
    this.#isOutdated = false;
    this.#listeners.notify();
  }

  #onTree(tree: TreeReport | null, discovery: DiscoveryStatusReport | null) {
    const isNewTree = JSON.stringify(tree) !== JSON.stringify(this.#tree);
    const isNewDiscovery = JSON.stringify(discovery) !== JSON.stringify(this.#discovery);
    if (isNewTree) this.#tree = tree;
    this.#discovery = discovery;
    if (isNewDiscovery) this.#revision += 1;
    if (isNewTree || isNewDiscovery) this.#listeners.notify();
  }

  #currentReport() {
    const at = this.#clock.monotonic();
    const known = this.#report;
    if (known?.revision === this.#revision && at - known.at <= SAME_MS) return known.report;
    const report = this.#leases.report(this.#discovery);
    this.#report = { report, at, revision: this.#revision };
    return report;
  }
}

/** How to scan the leases in a store, and their shards. */
function storeScan(session: StoreSession, clock: Clock, shards: ClusterFollowerOptions['shards']) {
  const reader = new ClusterReader(session, clock);
  return async (signal: AbortSignal): Promise<LeaseScan> => {
    const scan = await reader.scan(signal);
    const { hints } = scan;
    return { ...scan, shards: hints && (await shards?.(session, hints.cluster, signal)) };
  };
}
