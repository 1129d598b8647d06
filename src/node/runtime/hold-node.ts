import { resolve } from 'node:path';
import { withTimeout } from '../../core/base/abort.js';
import { ConfigError } from '../../core/base/errors.js';
import type { DataDirOptions } from '../../core/data-dir/data-dir-options.js';
import type { PreparedDataDir } from '../../core/data-dir/prepare.js';
import type { Lease, LeaseListener } from '../../core/lease/model/lease.js';
import { refuseLock } from '../../core/store/lock-url.js';
import { parseStoreUrl } from '../../core/store/stores.js';
import { parseConnectString } from '../../zookeeper/client/connect-string.js';
import type { Announcement } from '../../zookeeper/discovery/announcement.js';
import type { Discoverer, DiscovererOptions } from '../../zookeeper/discovery/discoverer.js';
import type { Discovery, DiscoveryEvent, TenureOrigin } from '../../zookeeper/discovery/discovery.js';
import { type LeaseSource, leaseSource, type SourceOptions } from './lease-source.js';
import type { NodeMonitor } from './node-monitor.js';

/** How to reach ZooKeeper, and what to announce there. */
type ZooKeeperAccess = Omit<DiscovererOptions, 'announcement' | 'clock' | 'random' | 'onEvent'> &
  Announcement;

/**
 * Options of {@link holdNode}. Names and defaults are those of `acquire()`, and of the settings of the
 * command line.
 */
export interface HoldOptions extends SourceOptions {
  readonly zookeeper?: ZooKeeperAccess | undefined;
  /** Prepared before the node is announced, and before it counts as held. */
  readonly dataDir?: DataDirOptions | undefined;
  /**
   * False to delay the announcement of the service, which attracts work, until `announceService` of the
   * discovery is called.
   * @default true
   */
  readonly announcesService?: boolean;
  /** Receives all events of the node id until it has been released. */
  readonly monitor?: NodeMonitor | undefined;
  /**
   * Called at each renewal before all other listeners, within the engine's own call. Must neither throw nor
   * block.
   */
  readonly onRenewed?: ((deadline: number) => void) | undefined;
  readonly onLeaseEvent?: LeaseListener | undefined;
  readonly onDiscoveryEvent?: ((event: DiscoveryEvent) => void) | undefined;
  /**
   * Waits for a step of the end, at most `limitMs`; must not reject.
   * @default no report if it takes longer
   */
  readonly limited?: (what: string, limitMs: number, step: Promise<void>) => Promise<void>;
}

/** The value of `sticky` for a key that is in the root of the data directory. */
const STICKY_FILE = 'file';
/** How long the removal of the node from the discovery tree may delay the release, in milliseconds. */
const LEAVE_TIMEOUT_MS = 1_500;
/** How long the end of the data directory may delay the end, in milliseconds. */
const MARK_TIMEOUT_MS = 1_000;
/** How long the release may delay the end, in milliseconds. */
const RELEASE_TIMEOUT_MS = 5_000;
/** How long closing the store may delay the end, in milliseconds. */
const CLOSE_TIMEOUT_MS = 500;

/** A held node id and all that was opened for it: the store, the session with ZooKeeper, the announcement. */
export interface HeldNode {
  readonly lease: Lease;
  /** Where the node id is announced; undefined without ZooKeeper. */
  readonly discovery: Discovery | undefined;
  /** The absolute path of the data directory; undefined without one. */
  readonly dataDir: string | undefined;
  /** Whether that directory was made from an older version. */
  readonly dataRestored: boolean | undefined;
  /**
   * Removes the node from the discovery tree, so that no work is sent to a node id that another task may hold
   * by then. Then it releases the node id, and closes all that was opened for it.
   */
  end(how: NodeEnd): Promise<void>;
}

interface NodeEnd {
  /** Whether no work is left that relies on the node id: only then may another task hold it (rule 8). */
  readonly workEnded: boolean;
  /** Whether to end the lease. One that knows of work that has not ended is left to expire. @default `workEnded` */
  readonly release?: boolean;
}

/**
 * Acquires a node id, announces it, and keeps it until it is ended or lost. The commands and `acquire()`
 * share this. Modules are loaded when they are needed.
 *
 * @throws {ConfigError}, {StoreUnusableError}, {ZooKeeperError}, {AcquireTimeoutError}, {DataDirError},
 * {LeaseLostError} as `acquire()` does; the monitor has been notified by then
 * @throws `signal.reason` when `signal` aborts first
 */
export async function holdNode(options: HoldOptions): Promise<HeldNode> {
  const { zookeeper, monitor, clock, signal, announcesService, provider = 'store' } = options;
  // A lock's place is probed elsewhere.
  if (provider === 'store' && options.nodeId === undefined && !options.probed)
    refuseLock(typeof options.store === 'string' ? options.store : options.store.url);
  const { limited = (_what, limitMs, step) => withTimeout(clock, limitMs, step) } = options;
  let discoverer: Discoverer | undefined;
  let source: LeaseSource | undefined;
  let lease: Lease | undefined;
  let data: PreparedDataDir | undefined;
  let origin: TenureOrigin = options.nodeId === undefined ? 'vacant' : 'static';
  const onEvent: LeaseListener = (event) => {
    if (event.type === 'renewed') options.onRenewed?.(event.deadline);
    else if (event.type === 'acquired') origin = event.from;
    monitor?.onLeaseEvent(event);
    options.onLeaseEvent?.(event);
  };
  /** Does not wait for a file system that does not answer: the node id is held until then, and `rest` follows. */
  const afterMark = async (rest: () => Promise<void>) => {
    // After a loss, own work may be left.
    if (data === undefined || !lease?.isValid()) return rest();
    let isSettled = false;
    const marked = data.end().then(() => {
      isSettled = true;
    });
    const ended = marked.then(rest);
    ended.catch(() => undefined);
    await limited('marking the end of the data directory', MARK_TIMEOUT_MS, marked);
    if (isSettled) await ended;
  };
  const end = async ({ workEnded, release = workEnded }: NodeEnd) => {
    try {
      if (discoverer) await limited('leaving the discovery tree', LEAVE_TIMEOUT_MS, discoverer.leave());
    } finally {
      const rest = async () => {
        if (lease && release) await limited('the release', RELEASE_TIMEOUT_MS, lease.release());
        if (source?.close) await limited('closing the store', CLOSE_TIMEOUT_MS, source.close());
        // A node id that depends on the session is free as soon as the session ends. While work may be left,
        // the session must expire.
        if (provider === 'store' || workEnded) await discoverer?.close();
      };
      // A mark that is written after the release could declare linked files as unused although a process
      // writes to them.
      await (release && workEnded ? afterMark(rest) : rest());
    }
  };
  try {
    if (zookeeper !== undefined) discoverer = await openDiscoverer(zookeeper, options);
    await discoverer?.connected(signal);
    source = await leaseSource({ ...options, sticky: await stickyKey(options) }, discoverer);
    const { leases, announcesNode = true } = source;
    lease = await source.acquire(onEvent);
    if (options.dataDir) {
      monitor?.waits(`node id ${lease.id} has been acquired, and its data directory is being prepared`);
      const { prepareDataDir } = await import('../../core/data-dir/prepare.js');
      const store = givesOutIds(options);
      // The lease is renewed meanwhile.
      data = await prepareDataDir({ ...options.dataDir, lease, store, clock, signal });
    }
    const dataDir = data?.path;
    const discovery = await discoverer?.start(
      { lease, origin, leases, announcesNode, announcesService },
      signal,
    );
    monitor?.hold(lease, discovery, dataDir);
    return { lease, discovery, dataDir, dataRestored: data?.restored, end };
  } catch (error) {
    // Before the release is reported: a node id that was never handed over counts as failed.
    monitor?.failed(error);
    await end({ workEnded: true });
    throw error;
  }
}

/**
 * The URL of the source of the node ids. The servers of ZooKeeper may change, their chroot may not. A folder is
 * absolute: in another working directory the same text is another store.
 */
function givesOutIds({ provider, store, zookeeper }: HoldOptions): string {
  if (provider !== 'zookeeper' || zookeeper === undefined) {
    const url = typeof store === 'string' ? parseStoreUrl(store).url : store.url;
    return url.replace(/^file:(.*)/s, (_, folder: string) => `file:${resolve(folder)}`);
  }
  const { connect } = zookeeper;
  const { chroot } = typeof connect === 'string' ? parseConnectString(connect, 'zookeeper') : connect;
  return `zookeeper:${chroot || '/'}`;
}

/** Begins to connect to ZooKeeper, while the node id is being acquired. */
async function openDiscoverer(zookeeper: ZooKeeperAccess, options: HoldOptions): Promise<Discoverer> {
  const { clock, random, monitor, onDiscoveryEvent } = options;
  const { Discoverer } = await import('../../zookeeper/discovery/discoverer.js');
  const onEvent = (event: DiscoveryEvent) => {
    monitor?.onDiscoveryEvent(event);
    onDiscoveryEvent?.(event);
  };
  return new Discoverer({ ...zookeeper, announcement: zookeeper, clock, random, onEvent });
}

/** The key; `file` is the key in the root of the data directory. */
async function stickyKey(options: HoldOptions): Promise<string | undefined> {
  const { sticky, dataDir, random, provider, nodeId } = options;
  if (sticky !== STICKY_FILE || provider === 'zookeeper' || nodeId !== undefined) return sticky;
  if (dataDir === undefined)
    throw new ConfigError('sticky', sticky, 'a data directory with it, which has the key');
  const { stickyKeyAt } = await import('../../core/data-dir/claim-root.js');
  return stickyKeyAt(dataDir.root, random);
}
