import type { AcquireOptions } from './acquire.js';
import type { Discoverer } from './discovery/discoverer.js';
import { ConfigError } from './errors.js';
import { acquireLease } from './lease/acquire-lease.js';
import { type ClusterStatus, inspectCluster } from './lease/inspect.js';
import type { Lease, LeaseListener } from './lease/lease.js';
import type { LeaseTracer } from './lease/lease-tracer.js';
import { StoreSession } from './lease/store-session.js';
import type { LeaseStore } from './store/lease-store.js';
import { openStore } from './store/open-store.js';
import { systemClock, systemRandom } from './system.js';

/** A held node id, and what came with it. */
export interface LeaseSource {
  readonly lease: Lease;
  /** Reads the leases, over a connection of its own where it has to; undefined where there are none. */
  readonly leases: (() => Promise<ClusterStatus | undefined>) | undefined;
  /** Whether the node id's znode is the discovery tree's to make. */
  readonly announcesNode: boolean;
  /** Closes what was opened for it. */
  readonly close: () => Promise<void>;
}

/** What every source needs beside the caller's options. */
export interface SourceOptions {
  readonly options: AcquireOptions;
  readonly store: string | LeaseStore;
  readonly taskId: string;
  readonly onEvent: LeaseListener;
  readonly tracer: LeaseTracer;
}

/** A node id from a store, kept in this thread. */
export async function acquireFromStore({ options, store, taskId, onEvent, tracer }: SourceOptions): Promise<LeaseSource> {
  const { nodes, durationMs, graceMs, acquireTimeoutMs, settingsIntervalMs, signal } = options;
  const wanted = { nodes, durationMs, graceMs, acquireTimeoutMs, settingsIntervalMs, ...(signal && { signal }) };
  const opened = typeof store === 'string' ? await open(store, options) : undefined;
  const used = opened ?? (store as LeaseStore);
  const close = async () => opened?.close();
  try {
    const lease = await acquireLease({ ...wanted, store: used, clock: systemClock, random: systemRandom, taskId, onEvent, tracer });
    return { lease, leases: () => inspectCluster(sessionOf(used, options)), announcesNode: true, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A node id from a store, kept in a thread of its own. */
export async function acquireFromWorker({ options, store, taskId, onEvent, tracer }: SourceOptions): Promise<LeaseSource> {
  if (typeof store !== 'string' || store.startsWith('memory:')) {
    throw new ConfigError(
      'store',
      typeof store === 'string' ? store : store.url,
      "the URL of a store outside this process when keeper is 'worker'",
    );
  }
  const {
    endpoint,
    region,
    nodes,
    durationMs,
    graceMs,
    acquireTimeoutMs,
    waitPollMs,
    settingsIntervalMs,
    signal,
    onLost = 'exit',
  } = options;
  const { acquireInWorker } = await import('./worker/worker-lease.js');
  const lease = await acquireInWorker({
    settings: {
      storeUrl: store,
      requestTimeoutMs: requestTimeout(durationMs),
      ...{
        endpoint,
        region,
        taskId,
        nodes,
        durationMs,
        graceMs,
        acquireTimeoutMs,
        waitPollMs,
        settingsIntervalMs,
        killOnLoss: onLost === 'exit',
      },
    },
    clock: systemClock,
    emit: onEvent,
    signal,
    tracer,
  });
  let second: Promise<LeaseStore> | undefined;
  const leases = async () => {
    second ??= open(store, options);
    return inspectCluster(sessionOf(await second, options));
  };
  return { lease, leases, announcesNode: true, close: async () => (await second)?.close() };
}

/** A node id that lasts as long as a session with ZooKeeper. */
export async function acquireFromSession(
  { options, taskId, onEvent, tracer }: SourceOptions,
  discoverer: Discoverer,
): Promise<LeaseSource> {
  const { acquireTimeoutMs, signal } = options;
  const { acquireFromZooKeeper } = await import('./discovery/allocation/acquire-from-zookeeper.js');
  const lease = await acquireFromZooKeeper({
    ...{ zookeeper: discoverer.zookeeper, data: discoverer.fields, clock: systemClock, random: systemRandom, taskId, onEvent },
    ...{ acquireTimeoutMs, signal, tracer },
  });
  return { lease, leases: undefined, announcesNode: false, close: async () => undefined };
}

function sessionOf(store: LeaseStore, { durationMs }: AcquireOptions): StoreSession {
  return new StoreSession(store, systemClock, requestTimeout(durationMs));
}

function open(url: string, { endpoint, region, durationMs, waitPollMs }: AcquireOptions): Promise<LeaseStore> {
  return openStore(url, {
    clock: systemClock,
    random: systemRandom,
    requestTimeoutMs: requestTimeout(durationMs),
    pollMs: waitPollMs,
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
  });
}

/** Below the renewal interval, whatever the cluster says later: the engine gives requests up by itself, sooner where it must. */
function requestTimeout(durationMs = 15_000): number {
  return Math.min(5_000, durationMs / 3);
}
