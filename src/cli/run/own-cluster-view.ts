import { StoreSession } from '../../lease/session/store-session.js';
import type { ClusterView } from '../../monitor/cluster-view.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../../runtime/opened-store.js';
import type { Settings } from '../../settings/settings.js';
import { connectTo } from '../commands/zookeeper-command.js';
import type { Logger } from '../log/logger.js';
import type { Io } from '../terminal/io.js';
import { withTimeout } from '../terminal/with-timeout.js';

/** How long the closing of a connection may hold up the exit, in milliseconds. */
const CLOSE_LIMIT_MS = 500;

/** Whether a cluster can be seen from another thread or process: a fixed node id is leased nowhere, and only its holder sees `memory:`. */
export function isVisible({ nodeId, provider, store }: Settings): boolean {
  return nodeId === undefined && (provider === 'zookeeper' || store.kind !== 'memory');
}

/** The cluster, for the console. It has connections of its own, opened at the first request: no renewal of a lease waits for them. */
export class OwnClusterView {
  readonly #opened: (() => Promise<void>)[] = [];
  #view: Promise<ClusterView> | undefined;
  #closed = false;

  constructor(
    private readonly settings: Settings,
    private readonly io: Pick<Io, 'clock' | 'random'>,
    private readonly log: Pick<Logger, 'warn'>,
  ) {}

  /** One view for all requests; after a failure it is tried again. */
  open(): Promise<ClusterView> {
    this.#view ??= this.#open().catch(async (error: unknown) => {
      this.#view = undefined;
      await this.#disconnect();
      throw error;
    });
    return this.#view;
  }

  /** Ends it, and its connections. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#view?.catch(() => undefined);
    await this.#disconnect();
  }

  /** The view ends first, and then its connections. */
  async #disconnect(): Promise<void> {
    const { clock } = this.io;
    for (const close of this.#opened.splice(0).reverse()) {
      await withTimeout({ limitMs: CLOSE_LIMIT_MS, clock, log: this.log, what: 'closing a connection of the console' }, close());
    }
  }

  async #open(): Promise<ClusterView> {
    const { provider, zookeeper: toZooKeeper } = this.settings;
    const { clock, random } = this.io;
    const { ClusterFollower } = await import('../../monitor/cluster-follower.js');
    if (this.#closed) throw new Error('this command is ending');
    const zookeeper = toZooKeeper && (await connectTo(toZooKeeper, this.io));
    if (zookeeper) this.#opened.push(() => zookeeper.close());
    const store = provider === 'zookeeper' ? undefined : await openedStore(this.settings, this.io);
    if (store) this.#opened.push(() => store.close());
    const session = store && new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
    const view = new ClusterFollower({ clock, random, session, zookeeper, connect: toZooKeeper?.connect.text });
    this.#opened.push(() => view.close());
    return view;
  }
}
