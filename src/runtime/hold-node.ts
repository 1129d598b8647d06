import type { Announcement } from '../discovery/announcement.js';
import type { Discoverer, DiscovererOptions } from '../discovery/discoverer.js';
import type { Discovery, DiscoveryEvent, TenureOrigin } from '../discovery/discovery.js';
import type { Lease, LeaseListener } from '../lease/model/lease.js';
import type { NodeMonitor } from '../monitor/node-monitor.js';
import { type LeaseOptions, type LeaseSource, leaseFrom } from './lease-source.js';

/** How to reach ZooKeeper, and what to announce there. */
export type ZooKeeperAccess = Omit<DiscovererOptions, 'announcement' | 'clock' | 'random' | 'onEvent'> & Announcement;

/** What it takes to hold a node id. Names and defaults are those of `acquire()`, and of the settings of the command line. */
export interface HoldOptions extends LeaseOptions {
  readonly zookeeper?: ZooKeeperAccess | undefined;
  /** False to leave out what sends work here until `announceService` of the discovery is called. @default true */
  readonly announcesService?: boolean;
  /** Is told of everything that happens to the node id until it has been given back. */
  readonly monitor?: NodeMonitor | undefined;
  /** The lease has been renewed: told before all other listeners, on the engine's own time. Must neither throw nor block. */
  readonly onRenewed?: ((deadline: number) => void) | undefined;
  readonly onLeaseEvent?: LeaseListener | undefined;
  readonly onDiscoveryEvent?: ((event: DiscoveryEvent) => void) | undefined;
  /** Waits for a step of the end, at most `limitMs`; must not reject. @default waits without a limit */
  readonly limited?: (what: string, limitMs: number, step: Promise<void>) => Promise<void>;
}

/** How long taking the node out of the discovery tree may hold up the release, in milliseconds. */
const LEAVE_TIMEOUT_MS = 1_500;
/** How long the release may hold up the end, in milliseconds. */
const RELEASE_TIMEOUT_MS = 5_000;
/** How long the closing of the store may hold up the end, in milliseconds. */
const CLOSE_TIMEOUT_MS = 500;

/** A held node id with what was opened for it: the store, the session with ZooKeeper, the announcement. */
export interface HeldNode {
  readonly lease: Lease;
  /** Where the node id is announced; undefined without ZooKeeper. */
  readonly discovery: Discovery | undefined;
  /**
   * Takes the node out of the discovery tree, so that no work is sent to a node id that another task may have by then; gives the node id back;
   * closes what was opened for it.
   */
  end(how: NodeEnd): Promise<void>;
}

export interface NodeEnd {
  /** Whether no work is left that relies on the node id: only then may others have it (rule 8). */
  readonly workEnded: boolean;
  /** Whether to release the lease. @default `workEnded` */
  readonly release?: boolean;
}

/**
 * Acquires a node id, announces it, and keeps it until it is ended or lost: what the commands and `acquire()` have in common. Everything that it
 * loads is loaded when it is needed.
 *
 * @throws {ConfigError}, {StoreUnusableError}, {ZooKeeperError}, {AcquireTimeoutError} as `acquire()` does; the monitor has been told by then
 * @throws `signal.reason` when `signal` aborts first
 */
export async function holdNode(options: HoldOptions): Promise<HeldNode> {
  const { zookeeper, monitor, signal, announcesService, provider = 'store', limited = (_what, _limitMs, step) => step } = options;
  let discoverer: Discoverer | undefined;
  let source: LeaseSource | undefined;
  let origin: TenureOrigin = options.nodeId === undefined ? 'vacant' : 'static';
  const onEvent: LeaseListener = (event) => {
    if (event.type === 'renewed') options.onRenewed?.(event.deadline);
    else if (event.type === 'acquired') origin = event.from;
    monitor?.onLeaseEvent(event);
    options.onLeaseEvent?.(event);
  };
  const end = async ({ workEnded, release = workEnded }: NodeEnd) => {
    try {
      if (discoverer) await limited('leaving the discovery tree', LEAVE_TIMEOUT_MS, discoverer.leave());
    } finally {
      if (source && release) await limited('the release', RELEASE_TIMEOUT_MS, source.lease.release());
      if (source) await limited('closing the store', CLOSE_TIMEOUT_MS, source.close());
      // A node id that lives by the session is free as soon as that ends: while work may be left, the session has to expire.
      if (provider === 'store' || workEnded) await discoverer?.close();
    }
  };
  try {
    if (zookeeper !== undefined) discoverer = await openDiscoverer(zookeeper, options);
    await discoverer?.connected(signal);
    source = await leaseFrom(options, onEvent, discoverer);
    const { lease, leases, announcesNode } = source;
    const discovery = await discoverer?.start({ lease, origin, leases, announcesNode, announcesService }, signal);
    monitor?.hold(lease, discovery);
    return { lease, discovery, end };
  } catch (error) {
    // Before the release is told: what was never handed over has failed.
    monitor?.failed(error);
    await end({ workEnded: true });
    throw error;
  }
}

/** Begins to connect to ZooKeeper, while the node id is being acquired. */
async function openDiscoverer(zookeeper: ZooKeeperAccess, options: HoldOptions): Promise<Discoverer> {
  const { clock, random, monitor, onDiscoveryEvent } = options;
  const { Discoverer } = await import('../discovery/discoverer.js');
  const onEvent = (event: DiscoveryEvent) => {
    monitor?.onDiscoveryEvent(event);
    onDiscoveryEvent?.(event);
  };
  return new Discoverer({ ...zookeeper, announcement: zookeeper, clock, random, onEvent });
}
