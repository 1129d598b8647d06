import { onAbort } from '../../core/base/abort.js';
import { checkArguments, checked, LEASE, OBJECT } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { notify } from '../../core/base/listeners.js';
import { shareAnswer } from '../../core/base/share-answer.js';
import type { Lease, LeaseEvent } from '../../core/lease/model/lease.js';
import type { ClusterStatus } from '../../core/lease/operate/inspect.js';
import { type Reconciled, ReconcileLoop, type ReconcileState } from '../client/reconcile-loop.js';
import { closedError, isFault, type ZooKeeper, type ZooKeeperContext } from '../client/zookeeper.js';
import { jsonPayload } from '../services/instance/payload-codec.js';
import type { ServiceInstance } from '../services/instance/service-instance.js';
import type { RegistrationEvent } from '../services/registered-znode.js';
import { ServiceDiscovery, type ServiceEvent } from '../services/service-discovery.js';
import { type Announcement, announcedFields, routingEntries, routingInstance } from './announcement.js';
import { DiscoveryTree, type TreeEvent } from './discovery-tree.js';
import { type IdWidth, watchIdWidth } from './id-width.js';
import { NodeWatcher } from './node-watcher.js';
import { awaitReadiness, type Readiness, type ReadinessEvent } from './readiness.js';

/** How a tenure began, as in the `acquired` event; `static` for an id that is not leased. */
export type TenureOrigin = Extract<LeaseEvent, { type: 'acquired' }>['from'] | 'static';

/** Events of discovery, for logs. */
export type DiscoveryEvent =
  | TreeEvent
  /** A znode that cannot be understood. */
  | Extract<ServiceEvent, { type: 'unreadable' }>
  /** Events of the registration for Curator's readers. */
  | { readonly type: 'service'; readonly event: RegistrationEvent }
  /** On the way to being ready. */
  | { readonly type: 'readiness'; readonly event: ReadinessEvent }
  | { readonly type: 'ready'; readonly readiness: Extract<Readiness, { ready: true }> };

/**
 * Options of a {@link Discovery}: a lease, and its own session. The client is closed with the discovery: its
 * session may have no other znodes.
 */
export interface DiscoveryOptions extends ZooKeeperContext {
  readonly lease: Lease;
  readonly origin: TenureOrigin;
  readonly announcement: Announcement;
  /** False if the node id's allocator maintains the node id's own znode. */
  readonly announcesNode: boolean;
  /**
   * False to delay the announcement of the service and its endpoints, which send work here, until
   * {@link Discovery.announceService}.
   * @default true
   */
  readonly announcesService?: boolean | undefined;
  /**
   * Reads the leases, to learn who knows this node's version; undefined where there are none, and so nothing
   * to wait for.
   */
  readonly leases: (() => Promise<ClusterStatus | undefined>) | undefined;
  /** How long readiness waits for the others, in milliseconds. */
  readonly readyTimeoutMs: number;
  /** Must not block. One that throws has its error surface as an uncaught one, and does no harm here. */
  readonly onEvent?: ((event: DiscoveryEvent) => void) | undefined;
}

/** How long an announcement may take to be withdrawn by itself, in milliseconds. */
const LEAVE_TIMEOUT_MS = 1_000;

/**
 * A node in the discovery tree for as long as it holds its lease: its announcements, its knowledge of other
 * nodes, and whether they know of it.
 *
 * The lease decides. When it is lost, the session with ZooKeeper is ended in the same tick, and with it every
 * znode, in one request. If the node id itself lives by the session, everything else is withdrawn instead.
 * While ZooKeeper is away, the node continues its work, `state` is `degraded`, and the tree is restored on
 * its return.
 */
export class Discovery {
  /** The announcements of this node; further entries may be added. */
  readonly tree: DiscoveryTree;
  /**
   * The registration for Curator's readers; more may be registered, and services be found. Persistent
   * instances, which would outlive the lease, are refused.
   */
  readonly services: ServiceDiscovery<unknown>;
  /** The nodes of the tree. */
  readonly nodes: NodeWatcher;
  /** The bits that a node id takes in a unique id, by the groups there are. */
  readonly idWidth: IdWidth;
  /** Settles once this node may take work: see {@link Readiness}. Never rejects. */
  readonly ready: Promise<Readiness>;
  #readiness: Readiness | undefined;
  /** Of the tree and the services. */
  readonly #loop: ReconcileLoop;
  /** Says that the instance cannot be registered at all. */
  #refusal: Reconciled | undefined;
  /** What is registered at present for clients that send work here. */
  #instance: ServiceInstance | undefined;
  #serviceAnnounced = false;
  /** Whether nothing is announced any more. */
  #left = false;
  readonly #ending = new AbortController();
  #forgetLease = () => {};
  readonly #closed = shareAnswer(() => this.#close());

  constructor(private readonly options: DiscoveryOptions) {
    const { zookeeper, lease, clock, random, readyTimeoutMs } = checked(options, {
      lease: LEASE,
      announcement: OBJECT,
    });
    checkArguments({ zookeeper, clock, random, readyTimeoutMs });
    const own = { zookeeper, lease, clock, random, onEvent: this.#emit };
    this.#loop = new ReconcileLoop({ ...own, name: 'the discovery' });
    this.tree = new DiscoveryTree(own, this.#loop);
    this.services = new ServiceDiscovery<unknown>(
      {
        ...own,
        basePath: options.announcement.basePath,
        payload: jsonPayload,
        onEvent: (event) => {
          const isOfService =
            event.type === 'superseded' || event.type === 'restored' || event.type === 'mixed-payloads';
          this.#emit(isOfService ? { type: 'service', event } : event);
        },
      },
      this.#loop,
    );
    this.nodes = new NodeWatcher({
      zookeeper,
      clock,
      onUnreadable: (path, problem) => this.#emit({ type: 'unreadable', path, problem }),
    });
    this.idWidth = watchIdWidth(zookeeper, lease.id);
    this.nodes.onChange(() => this.#publishKnown());
    this.ready = this.#becomeReady();
    try {
      if (options.announcesNode) this.tree.register({ kind: 'node' }, announcedFields(options.announcement));
      if (options.announcesService !== false) this.announceService();
      // A wrong instance fails now, also where it is announced later.
      else this.#newInstance();
    } catch (error) {
      void this.close();
      throw error;
    }
    // An allocated node id is free for other tasks as soon as the session ends. So the session must not end
    // before the work.
    this.#forgetLease = onAbort(
      lease.signal,
      () => void (options.announcesNode ? this.close() : this.leave()),
    );
  }

  /** The session with ZooKeeper; it ends with the discovery. */
  get zookeeper(): ZooKeeper {
    return this.options.zookeeper;
  }

  /** Whether the announcements of this node are in the tree, and its registration for Curator's readers. */
  get state(): ReconcileState {
    return this.#loop.state;
  }

  /** True while this node holds its lease and may take work; whether the tree shows it does not count. */
  get isReady(): boolean {
    return this.#readiness?.ready === true && this.options.lease.isValid();
  }

  /**
   * Resolves when all announced entries are in the tree.
   *
   * @throws {ZooKeeperError} `timeout` when they are not within `timeoutMs`, with the reason; `closed` when
   * this ends before
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async synced(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const isSynced = () => this.state.status === 'synced';
    if (!(await this.#loop.until(isSynced, timeoutMs, signal)))
      throw this.#loop.late('not in the discovery tree', timeoutMs);
  }

  /**
   * Announces the entries that send work here: service, endpoints, and Curator's instance. Returns at once;
   * ZooKeeper follows. No effect once this node has left.
   */
  announceService(): void {
    if (this.#left || this.#serviceAnnounced) return;
    this.#serviceAnnounced = true;
    for (const [entry, fields] of routingEntries(this.options.announcement))
      this.tree.register(entry, fields);
    this.#instance = this.#newInstance();
    if (this.#instance === undefined) return;
    this.services.register(this.#instance).catch((error: unknown) => {
      // Whatever else fails is tried again, and is a reason of the services for being degraded.
      const isRefused = error instanceof ConfigError || isFault(error, 'mixed-payloads');
      if (!isRefused || !this.#serviceAnnounced) return;
      const { message: blockedBy } = error;
      const path = error instanceof ConfigError ? error.setting : (error.path ?? '');
      if (this.#refusal) this.#loop.forget(this.#refusal);
      this.#refusal = { path, blockedBy, dirty: true, step: async () => true };
      this.#loop.reconcile(this.#refusal);
    });
  }

  /**
   * Withdraws the entries that send work here; the node id stays announced. They may be announced again.
   *
   * @returns whether they are known to be gone, after `timeoutMs` at most. False at once without a
   * connection; they are removed when there is one
   */
  async withdrawService(timeoutMs: number): Promise<boolean> {
    const entries = routingEntries(this.options.announcement).map(([entry]) => entry);
    if (this.#serviceAnnounced) {
      this.#serviceAnnounced = false;
      if (this.#refusal) this.#loop.forget(this.#refusal);
      for (const entry of entries) this.tree.unregister(entry);
    }
    const withinMs = this.zookeeper.state.status === 'connected' ? timeoutMs : 0;
    const unregistered = this.#instance && this.services.unregister(this.#instance, { timeoutMs: withinMs });
    const gone = await Promise.allSettled([this.tree.untilUnregistered(entries, withinMs), unregistered]);
    return gone[0].status === 'fulfilled' && gone[0].value && gone[1].status === 'fulfilled';
  }

  /**
   * The same as {@link close}, but leaves a session by which the node id itself lives: for before its
   * release.
   */
  async leave(): Promise<void> {
    this.#left = true;
    if (this.options.announcesNode) return this.close();
    // If it takes longer, it continues as long as the session exists.
    await Promise.all([this.tree.withdraw(LEAVE_TIMEOUT_MS), this.services.withdraw(LEAVE_TIMEOUT_MS)]);
  }

  /**
   * Takes this node out of the tree and ends the session. Resolves when that is done, or soon after if no
   * server answers; never rejects.
   */
  close(): Promise<void> {
    return this.#closed();
  }

  async #close() {
    // First, and in this tick: the process may be about to exit.
    const ended = this.options.zookeeper.close();
    this.#left = true;
    this.#ending.abort(closedError('the discovery', 'unknown'));
    this.#forgetLease();
    this.nodes.close();
    this.idWidth.close();
    await Promise.all([ended, this.tree.close(), this.services.close(), this.#loop.close(), this.ready]);
  }

  readonly #emit = (event: DiscoveryEvent): void => {
    if (this.options.onEvent !== undefined) notify(this.options.onEvent, event);
  };

  #newInstance() {
    const { announcement, lease, clock, random } = this.options;
    return routingInstance(announcement, lease, { clock, random });
  }

  /** Publishes with the next renewal which versions this node knows, its own whatever the tree says. */
  #publishKnown() {
    const { lease } = this.options;
    // Versions begin with 1. The tree may be open to all, and what is published in the lease outlives it.
    const known = Object.entries(this.nodes.knownVersions()).filter(([, version]) => version > 0);
    lease.setKnownNodes({ ...Object.fromEntries(known), [lease.id]: lease.version });
  }

  async #becomeReady() {
    const { lease, origin, leases, readyTimeoutMs: timeoutMs, clock, random } = this.options;
    const readiness = await awaitReadiness({
      ...{ lease, origin, leases, clock, random, timeoutMs, signal: this.#ending.signal },
      onEvent: (event) => this.#emit({ type: 'readiness', event }),
    });
    this.#readiness = readiness;
    if (readiness.ready) this.#emit({ type: 'ready', readiness });
    return readiness;
  }
}
