import { ConfigError } from '../../core/base/errors.js';
import type { AcquireLeaseOptions } from '../../core/lease/acquire/acquire-lease.js';
import type { Lease, LeaseListener } from '../../core/lease/model/lease.js';
import type { ClusterStatus } from '../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import type { LeaseStore } from '../../core/store/lease-store.js';
import { storeKindOf } from '../../core/store/stores.js';
import type { Discoverer } from '../../zookeeper/discovery/discoverer.js';
import { openedStore, REQUEST_TIMEOUT_MS, type StoreOptions, storeAccess } from './opened-store.js';

/** Which node id to acquire, from where. Names and defaults are those of `acquire()`. */
export interface SourceOptions
  extends Omit<AcquireLeaseOptions, 'store' | 'onEvent'>,
    Omit<StoreOptions, 'store'> {
  /** A fixed node id. */
  readonly nodeId?: number | undefined;
  readonly provider?: 'store' | 'zookeeper' | undefined;
  /**
   * Used unless the node id is fixed, or comes from ZooKeeper. A store that is passed as an object is not
   * closed.
   */
  readonly store: string | LeaseStore;
  /** Where the lease is renewed: in this thread, or in a separate one. @default 'inline' */
  readonly keeper?: 'inline' | 'worker' | undefined;
  /** Whether the keeper's own thread ends a process that does not act on a loss in time. @default false */
  readonly killOnLoss?: boolean;
}

/** Where a node id comes from, and what was opened for it. */
export interface LeaseSource {
  readonly acquire: (onEvent: LeaseListener) => Promise<Lease>;
  /** Reads the leases; undefined if there are none. */
  readonly leases?: () => Promise<ClusterStatus | undefined>;
  /** Whether the discovery tree makes the node id's znode. @default true */
  readonly announcesNode?: boolean;
  /** Closes what was opened for it. */
  readonly close?: () => Promise<void>;
}

/** The source that the options name. */
export async function leaseSource(
  options: SourceOptions,
  discoverer: Discoverer | undefined,
): Promise<LeaseSource> {
  const { nodeId, provider, keeper, taskId, signal } = options;
  if (nodeId !== undefined) {
    const { staticLease } = await import('../../core/lease/hold/static-lease.js');
    signal?.throwIfAborted();
    return { acquire: async () => staticLease({ id: nodeId, taskId }) };
  }
  if (provider === 'zookeeper') return fromZooKeeper(options, discoverer as Discoverer);
  return keeper === 'worker' ? fromWorker(options) : fromStore(options);
}

/** A node id from a store, kept in this thread. */
async function fromStore(options: SourceOptions): Promise<LeaseSource> {
  const { store: given } = options;
  const isOwn = typeof given === 'string';
  const store = isOwn ? await openedStore({ ...options, store: given }, options) : given;
  const { acquireLease } = await import('../../core/lease/acquire/acquire-lease.js');
  return {
    acquire: (onEvent) => acquireLease({ ...options, store, onEvent }),
    leases: async () => inspect(await sessionOf(store, options)),
    close: async () => (isOwn ? store.close() : undefined),
  };
}

/** A node id from a store, renewed in a separate thread. */
async function fromWorker(options: SourceOptions): Promise<LeaseSource> {
  const { store, clock, random, signal, tracer, killOnLoss = false } = options;
  if (typeof store !== 'string' || storeKindOf(store)?.sharedBy === 'process') {
    throw new ConfigError(
      'store',
      typeof store === 'string' ? store : store.url,
      "the URL of a store outside this process when keeper is 'worker'",
    );
  }
  if (killOnLoss && process.pid === 1)
    throw new ConfigError(
      'keeper',
      'worker',
      'inline in process 1 of a container, which no thread of it can kill; or an init (docker run --init, initProcessEnabled)',
    );
  const { forThread } = await import('./worker/messages.js');
  const { acquireInWorker } = await import('./worker/worker-lease.js');
  const settings = { ...storeAccess(options), ...forThread(options), store, killOnLoss };
  // This thread's own connection, opened when it is first used.
  let second: Promise<StoreSession> | undefined;
  const session = () =>
    (second ??= openedStore({ ...options, store }, options).then((opened) => sessionOf(opened, options)));
  return {
    acquire: (emit) => acquireInWorker({ settings, clock, random, session, signal, tracer, emit }),
    leases: async () => inspect(await session()),
    close: async () => (await second)?.store.close(),
  };
}

/** A node id that is held as long as a session with ZooKeeper. */
async function fromZooKeeper(
  options: SourceOptions,
  { zookeeper, fields: data }: Discoverer,
): Promise<LeaseSource> {
  const { acquireFromZooKeeper } = await import(
    '../../zookeeper/discovery/allocation/acquire-from-zookeeper.js'
  );
  return {
    acquire: (onEvent) => acquireFromZooKeeper({ ...options, zookeeper, data, onEvent }),
    announcesNode: false,
  };
}

async function sessionOf(store: LeaseStore, { clock }: SourceOptions): Promise<StoreSession> {
  const { StoreSession } = await import('../../core/lease/session/store-session.js');
  return new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
}

async function inspect(session: StoreSession): Promise<ClusterStatus | undefined> {
  const { inspectCluster } = await import('../../core/lease/operate/inspect.js');
  return inspectCluster(session);
}
