import { StoreSession } from '../../core/lease/session/store-session.js';
import { locksUrl } from '../../core/store/lock-url.js';
import type { ClusterView } from '../../node/monitor/cluster-follower.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../../node/runtime/opened-store.js';
import { connectTo } from '../kit/call.js';
import type { Io } from '../kit/io.js';
import type { Logger } from '../kit/log/logger.js';
import { withTimeout } from '../kit/terminal/with-timeout.js';
import { followedOf } from '../products.js';
import type { Settings } from '../settings/settings.js';

/** How long the closing of a connection may hold up the exit, in milliseconds. */
const CLOSE_LIMIT_MS = 500;

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
    const { locksOf, ...followed } = await followedOf(settings);
    if (isClosed) throw new Error('this command is ending');
    const zookeeper = toZooKeeper && (await connectTo(toZooKeeper, io));
    if (zookeeper) opened.push(() => zookeeper.close());
    const sessionAt = async (url: string) => {
      const store = await openedStore({ ...settings, store: url }, io);
      opened.push(() => store.close());
      return new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
    };
    const session = provider === 'zookeeper' ? undefined : await sessionAt(settings.store);
    const locks = session && locksOf(await sessionAt(locksUrl(settings.store)));
    const connect = toZooKeeper?.connect.text;
    const follower = new ClusterFollower({
      clock,
      random,
      session,
      zookeeper,
      connect,
      locks,
      ...followed,
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
