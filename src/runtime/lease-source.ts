import { ConfigError } from '../base/errors.js';
import type { Discoverer } from '../discovery/discoverer.js';
import type { AcquireLeaseOptions } from '../lease/acquire/acquire-lease.js';
import type { Lease, LeaseListener } from '../lease/model/lease.js';
import type { ClusterStatus } from '../lease/operate/inspect.js';
import type { Settings } from '../settings/settings.js';
import type { LeaseStore } from '../store/lease-store.js';
import type { StoreUrl } from '../store/store-url.js';
import { openedStore, REQUEST_TIMEOUT_MS, type StoreOptions } from './opened-store.js';

/** Where a node id comes from, and how it is acquired and kept. */
export interface LeaseOptions extends Omit<AcquireLeaseOptions, 'store' | 'onEvent'>, Omit<StoreOptions, 'store'> {
  /** A fixed one. */
  readonly nodeId?: number | undefined;
  readonly provider?: Settings['provider'];
  /** Used unless the node id is fixed, or comes from ZooKeeper. One that is passed as an object is not closed. */
  readonly store: StoreUrl | string | LeaseStore;
  /** Where the lease is renewed: in this thread, or in one of its own. @default 'inline' */
  readonly keeper?: 'inline' | 'worker';
  /** Whether the keeper's own thread ends a process that does not act on a loss in time. @default false */
  readonly killOnLoss?: boolean;
}

/** A held node id, and what came with it. */
export interface LeaseSource {
  readonly lease: Lease;
  /** Reads the leases; undefined where there are none. */
  readonly leases?: () => Promise<ClusterStatus | undefined>;
  /** Whether the node id's znode is the discovery tree's to make. */
  readonly announcesNode: boolean;
  /** Closes what was opened for it. */
  readonly close: () => Promise<void>;
}

/** Acquires a node id from where the options say that it comes from. */
export async function leaseFrom(options: LeaseOptions, onEvent: LeaseListener, discoverer: Discoverer | undefined): Promise<LeaseSource> {
  const { nodeId, provider, keeper, taskId, signal } = options;
  if (nodeId !== undefined) {
    const { staticLease } = await import('../lease/hold/static-lease.js');
    signal?.throwIfAborted();
    return { lease: staticLease({ id: nodeId, taskId }), announcesNode: true, close: nothing };
  }
  if (provider === 'zookeeper') return fromZooKeeper(options, onEvent, discoverer as Discoverer);
  return keeper === 'worker' ? fromWorker(options, onEvent) : fromStore(options, onEvent);
}

/** A node id from a store, kept in this thread. */
async function fromStore(options: LeaseOptions, onEvent: LeaseListener): Promise<LeaseSource> {
  const { store: given } = options;
  const isOwn = isUrl(given);
  const store = isOwn ? await openedStore({ ...options, store: given }, options) : given;
  const close = async () => (isOwn ? store.close() : undefined);
  try {
    const { acquireLease } = await import('../lease/acquire/acquire-lease.js');
    const lease = await acquireLease({ ...options, store, onEvent });
    return { lease, leases: () => inspect(store, options), announcesNode: true, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A node id from a store, kept in a thread of its own. */
async function fromWorker(options: LeaseOptions, onEvent: LeaseListener): Promise<LeaseSource> {
  const { store, clock, signal, tracer, killOnLoss = false } = options;
  const storeUrl = typeof store === 'string' ? store : store.url;
  if (!isUrl(store) || storeUrl === 'memory:') {
    throw new ConfigError('store', storeUrl, "the URL of a store outside this process when keeper is 'worker'");
  }
  const { taskId, endpoint, region, nodes, durationMs, graceMs, acquireTimeoutMs, waitPollMs, settingsIntervalMs } = options;
  const wanted = { taskId, endpoint, region, nodes, durationMs, graceMs, acquireTimeoutMs, waitPollMs, settingsIntervalMs };
  const { acquireInWorker } = await import('./worker/worker-lease.js');
  const lease = await acquireInWorker({ settings: { ...wanted, store: storeUrl, killOnLoss }, clock, emit: onEvent, signal, tracer });
  // A connection of this thread's own, opened when the leases are first read.
  let second: Promise<LeaseStore> | undefined;
  const leases = async () => {
    second ??= openedStore({ ...options, store }, options);
    return inspect(await second, options);
  };
  return { lease, leases, announcesNode: true, close: async () => (await second)?.close() };
}

/** A node id that lasts as long as a session with ZooKeeper. */
async function fromZooKeeper(options: LeaseOptions, onEvent: LeaseListener, { zookeeper, fields }: Discoverer): Promise<LeaseSource> {
  const { acquireFromZooKeeper } = await import('../discovery/allocation/acquire-from-zookeeper.js');
  const lease = await acquireFromZooKeeper({ ...options, zookeeper, data: fields, onEvent });
  return { lease, announcesNode: false, close: nothing };
}

async function inspect(store: LeaseStore, { clock }: LeaseOptions): Promise<ClusterStatus | undefined> {
  const { inspectCluster } = await import('../lease/operate/inspect.js');
  const { StoreSession } = await import('../lease/session/store-session.js');
  return inspectCluster(new StoreSession(store, clock, REQUEST_TIMEOUT_MS));
}

function isUrl(store: LeaseOptions['store']): store is Exclude<LeaseOptions['store'], LeaseStore> {
  return typeof store === 'string' || !('read' in store);
}

async function nothing(): Promise<void> {}
