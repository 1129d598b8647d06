import { StoreSession } from '../../core/lease/session/store-session.js';
import type { ClusterView } from '../../node/monitor/cluster-view.js';
import type { FollowedParts } from '../../node/monitor/discovery/discovery-comparison.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../../node/runtime/opened-store.js';
import type { Settings } from '../settings/settings.js';
import { connectTo } from './call.js';
import type { Logger } from './log/logger.js';
import type { Io } from './terminal/io.js';
import { withTimeout } from './terminal/with-timeout.js';

/** How long the closing of a connection may hold up the exit, in milliseconds. */
const CLOSE_LIMIT_MS = 500;

/**
 * Whether a cluster can be seen from another thread or process: a fixed node id is leased nowhere, and only
 * its holder sees `memory:`.
 */
export function isVisible({ nodeId, provider, store }: Settings): boolean {
  return nodeId === undefined && (provider === 'zookeeper' || store.kind !== 'memory');
}

/**
 * The cluster, for the console: one view for all requests, with its own connections. No renewal of a lease
 * waits for them.
 */
export function ownClusterView(
  settings: Settings,
  io: Pick<Io, 'clock' | 'random'>,
  log: Pick<Logger, 'warn'>,
) {
  const { provider, zookeeper: toZooKeeper } = settings;
  const { clock, random } = io;
  const opened: (() => Promise<void>)[] = [];
  let view: Promise<ClusterView> | undefined;
  let isClosed = false;
  const open = async () => {
    const { ClusterFollower } = await import('../../node/monitor/cluster-follower.js');
    const { shardsReport } = await import('../../node/shards/read-shards.js');
    if (isClosed) throw new Error('this command is ending');
    const zookeeper = toZooKeeper && (await connectTo(toZooKeeper, io));
    if (zookeeper) opened.push(() => zookeeper.close());
    const store = provider === 'zookeeper' ? undefined : await openedStore(settings, io);
    if (store) opened.push(() => store.close());
    const session = store && new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
    const connect = toZooKeeper?.connect.text;
    const follower = new ClusterFollower({
      clock,
      random,
      session,
      zookeeper,
      connect,
      parts: zookeeper && (await followedParts(settings)),
      shards: shardsReport,
    });
    opened.push(() => follower.close());
    return follower;
  };
  /** The view ends first, and then its connections. */
  const disconnect = async () => {
    for (const close of opened.splice(0).reverse()) {
      await withTimeout(
        { limitMs: CLOSE_LIMIT_MS, clock, log, what: 'closing a connection of the console' },
        close(),
      );
    }
  };
  return {
    /** Opens it at the first request; after a failure it is tried again. */
    open() {
      view ??= open().catch(async (error: unknown) => {
        view = undefined;
        await disconnect();
        throw error;
      });
      return view;
    },
    /** Ends it, and its connections. Never rejects. */
    async close() {
      isClosed = true;
      await view?.catch(() => undefined);
      await disconnect();
    },
  };
}

/** What the console shows of ZooKeeper in addition to the discovery tree. */
async function followedParts({ consoleLocks, consoleData, configRoot }: Settings): Promise<FollowedParts> {
  const { followedConfigurations } = await import('../../zookeeper/configuration/fleet.js');
  return {
    locks: consoleLocks && (await import('../../zookeeper/recipes/standings.js')).followedLocks(consoleLocks),
    data: consoleData && (await import('../../zookeeper/shared-data/report.js')).followedData(consoleData),
    configurations: followedConfigurations(configRoot),
  };
}
