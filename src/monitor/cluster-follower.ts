import { withTimeout } from '../base/abort.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { explain } from '../base/errors.js';
import type { StoreSession } from '../lease/session/store-session.js';
import { notify } from '../zookeeper/listeners.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { scanAllocated } from './allocated-status.js';
import { ClusterReader, type ClusterScan } from './cluster-reader.js';
import { ClusterState } from './cluster-state.js';
import type { ClusterSnapshot, ClusterView, CurrentCluster } from './cluster-view.js';
import { scanTree } from './discovery-comparison.js';
import { PAUSE_FACTOR, ScanLoop } from './scan-loop.js';

/** What a {@link ClusterFollower} follows: a store, the discovery tree, or both. */
export interface ClusterFollowerOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /**
   * Where the node ids are leased from; undefined where ZooKeeper alone gives them out. A session of the follower's own, which counts no other
   * requests: any number of sessions may share one store.
   */
  readonly session?: StoreSession | undefined;
  /** Where the nodes are announced, or get their ids from. The caller closes it. @default the discovery tree is not followed */
  readonly zookeeper?: Pick<ZooKeeper, 'description' | 'whenConnected' | 'children' | 'read'> | undefined;
  /** What ZooKeeper is called in reports: its connect string. @default its description */
  readonly connect?: string | undefined;
}

/** From the beginning of one scan to that of the next, in milliseconds, at least. */
const SCAN_MS = 1_000;
/** The longest pause, in milliseconds: the first scan of a large cluster takes long, since it reads everything, and further ones do not. */
const LONGEST_PAUSE_MS = 10_000;
/** The pause after a scan of the tree, in multiples of its duration, and at least: the tree is one request for each znode. */
const TREE_PAUSE = { factor: 4, minMs: 2_000 };
/** For how long a snapshot waits for the discovery tree, in milliseconds. */
const TREE_TIMEOUT_MS = 1_000;

/**
 * Follows a cluster: in a store, or, without one, in ZooKeeper alone. It scans about once a second as long as it has listeners, and once for a
 * snapshot where the last scan is not fresh; a scan costs the store a LIST and a GET for each lease that was written, a hundred at most.
 *
 * What happens between two scans is told as far as they show it: a holder of less than a second may not be seen at all.
 */
export class ClusterFollower implements ClusterView {
  readonly epoch: string;
  readonly #clock: Clock;
  readonly #read: (signal: AbortSignal) => Promise<ClusterScan>;
  readonly #state: ClusterState;
  readonly #leases: ScanLoop;
  readonly #tree: ScanLoop | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #closed = new AbortController();
  #failure: unknown;
  /** How many scans have failed in a row. */
  #failures = 0;

  /** @throws {TypeError} when neither a store nor ZooKeeper is given */
  constructor({ clock, random, session, zookeeper, connect = zookeeper?.description ?? '' }: ClusterFollowerOptions) {
    this.epoch = random.hex(8);
    this.#clock = clock;
    this.#state = new ClusterState(clock);
    const reader = session && new ClusterReader(session, clock);
    if (reader) this.#read = (signal) => reader.scan(signal);
    else if (zookeeper) this.#read = (signal) => scanAllocated(zookeeper, connect, clock, signal);
    else throw new TypeError('expected a store or ZooKeeper to follow');
    this.#leases = new ScanLoop((signal) => this.#scan(signal), clock);
    if (!zookeeper) return;
    this.#tree = new ScanLoop(async (signal) => {
      const begun = clock.monotonic();
      const { report, status } = await scanTree(zookeeper, connect, () => this.#state.nodes, signal);
      // Without a store there are no leases to agree with.
      if (this.#state.onTree(report, session ? status : null)) this.#tell();
      return Math.max(TREE_PAUSE.minMs, report === null ? 0 : TREE_PAUSE.factor * (clock.monotonic() - begun));
    }, clock);
  }

  async snapshot(signal?: AbortSignal): Promise<ClusterSnapshot> {
    signal?.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    const leases = this.#leases.isFresh ? undefined : this.#leases.next(signal);
    // Not for long: the scan of the tree goes on without the caller.
    const tree = this.#tree && !this.#tree.isFresh && withTimeout(this.#clock, TREE_TIMEOUT_MS, this.#tree.next(signal));
    await Promise.all([leases, tree]);
    this.#closed.signal.throwIfAborted();
    const { report, revision, ...facts } = this.current();
    if (report === null) throw this.#failure;
    return { report, ...facts };
  }

  current(): CurrentCluster {
    return this.#state.current();
  }

  follow(listener: () => void): () => void {
    if (this.#closed.signal.aborted) return () => undefined;
    if (this.#listeners.size === 0 && !this.#leases.isFresh) this.#state.outdated();
    const own = () => listener();
    this.#listeners.add(own);
    const releases = [this.#leases.use(), this.#tree?.use()];
    return () => {
      this.#listeners.delete(own);
      for (const release of releases) release?.();
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
      signal.throwIfAborted();
      this.#state.onScan(scan);
      this.#failures = 0;
    } catch (error) {
      signal.throwIfAborted();
      this.#state.onFailure(explain(error));
      this.#failure = error;
      this.#failures += 1;
    }
    this.#tell();
    const took = this.#clock.monotonic() - begun;
    const pauseMs = this.#failures > 0 ? SCAN_MS * 2 ** (this.#failures - 1) : Math.max(SCAN_MS - took, PAUSE_FACTOR * took);
    return Math.min(pauseMs, LONGEST_PAUSE_MS);
  }

  #tell(): void {
    for (const listener of this.#listeners) notify(listener, undefined);
  }
}
