import type { Clock, RandomSource } from '../clock.js';
import type { ClusterStatus } from '../lease/inspect.js';
import type { Lease, LeaseEvent } from '../lease/lease.js';
import { notify } from '../zookeeper/listeners.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { DiscoveryTree, type TreeEvent, type TreeState } from './discovery-tree.js';
import { type IdWidth, watchIdWidth } from './id-width.js';
import { NodeWatcher } from './node-watcher.js';
import { awaitReadiness, type Readiness, type ReadinessEvent } from './readiness.js';

/** How a tenure began, as the `acquired` event tells it; `static` for an id that is not leased. */
export type TenureOrigin = Extract<LeaseEvent, { type: 'acquired' }>['from'] | 'static';

/** What a node says of itself in the tree. */
export interface Announcement {
  /** The service that it is an instance of; a znode's name. @default none */
  readonly service?: string | undefined;
  /** Host name or IP address, without a port. @default none */
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  /** The endpoints that the service offers, with fields of their own. @default none */
  readonly endpoints?: readonly AnnouncedEndpoint[] | undefined;
}

/** What an announcement adds to the JSON of every znode. */
export function announcedFields({ service, address, port }: Announcement): Record<string, unknown> {
  return {
    ...(service !== undefined && { service }),
    ...(address !== undefined && { address }),
    ...(port !== undefined && { port }),
  };
}

/** An endpoint, under a key where several nodes implement it differently. */
export interface AnnouncedEndpoint {
  readonly endpoint: string;
  readonly key?: string | undefined;
  /** Stand in the znode's JSON. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
}

/** What happens to discovery, for logs. */
export type DiscoveryEvent =
  | TreeEvent
  /** A znode among the nodes that cannot be understood; reported once each. */
  | {
      readonly type: 'unreadable';
      readonly path: string;
      /** The rest of the sentence "<path> …". */
      readonly problem: string;
    }
  /** On the way to being ready. */
  | { readonly type: 'readiness'; readonly event: ReadinessEvent }
  | { readonly type: 'ready'; readonly readiness: Extract<Readiness, { ready: true }> };

export interface DiscoveryOptions {
  /** Is closed with the discovery: nobody else's znodes may stand in its session. */
  readonly zookeeper: ZooKeeper;
  readonly lease: Lease;
  readonly origin: TenureOrigin;
  readonly announcement: Announcement;
  /** False where the node id's own znode is looked after by whoever allocated it. */
  readonly announcesNode: boolean;
  /** Reads the leases, to learn who knows this node's version; undefined where there are none, and so nothing to wait for. */
  readonly leases: (() => Promise<ClusterStatus | undefined>) | undefined;
  /** How long readiness waits for the others, in milliseconds. */
  readonly readyTimeoutMs: number;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Must not block. One that throws has its error surface as an uncaught one, and does no harm here. */
  readonly onEvent?: ((event: DiscoveryEvent) => void) | undefined;
}

/** How long an announcement may take to be withdrawn by itself, in milliseconds. */
const LEAVE_LIMIT_MS = 1_000;

/**
 * A node in the discovery tree for as long as it holds its lease (DESIGN 7): what it announces, what it knows of the others, and whether
 * the others know of it.
 *
 * The lease decides. When it is lost, the session with ZooKeeper is ended in the same tick, and with it every znode, in one request; where
 * the node id itself lives by the session, everything else is withdrawn, and whoever ends the work closes it.
 * When ZooKeeper is away, the node works on, `state` says `degraded`, and the tree is made right on its return.
 */
export class Discovery {
  /** What this node announces; more may be put there. */
  readonly tree: DiscoveryTree;
  /** The nodes of the tree. */
  readonly nodes: NodeWatcher;
  /** The bits that a node id takes in a unique id, by the groups there are. */
  readonly idWidth: IdWidth;
  /** Settles once this node may take work: see {@link Readiness}. Never rejects. */
  readonly ready: Promise<Readiness>;
  readonly #emit: (event: DiscoveryEvent) => void;
  #readiness: Readiness | undefined;
  readonly #ending = new AbortController();
  readonly #forgetLease: () => void;
  #closing: Promise<void> | undefined;

  constructor(private readonly options: DiscoveryOptions) {
    const { zookeeper, lease, clock, random, onEvent = () => undefined } = options;
    const emit = (event: DiscoveryEvent) => notify(onEvent, event);
    this.#emit = emit;
    this.tree = new DiscoveryTree({ zookeeper, lease, clock, random, onEvent: emit });
    this.nodes = new NodeWatcher({ zookeeper, clock, onUnreadable: (path, problem) => emit({ type: 'unreadable', path, problem }) });
    this.idWidth = watchIdWidth(zookeeper, lease.id);
    // An allocated node id is free for others as soon as the session ends: that has to wait for the end of the work.
    const onLost = () => void (options.announcesNode ? this.close() : this.leave());
    lease.signal.addEventListener('abort', onLost, { once: true });
    this.#forgetLease = () => lease.signal.removeEventListener('abort', onLost);
    this.nodes.onChange(() => this.#tellKnown());
    this.ready = this.#becomeReady();
    try {
      this.#announce();
    } catch (error) {
      void this.close();
      throw error;
    }
    if (lease.signal.aborted) onLost();
  }

  /** The session with ZooKeeper; it ends with the discovery. */
  get zookeeper(): ZooKeeper {
    return this.options.zookeeper;
  }

  /** Whether what this node announces stands in the tree. */
  get state(): TreeState {
    return this.tree.state;
  }

  /** True while this node holds its lease and may take work; whether the tree shows it does not count. */
  get isReady(): boolean {
    return this.#readiness?.ready === true && this.options.lease.isValid();
  }

  /**
   * Resolves when everything announced stands in the tree.
   *
   * @throws {ZooKeeperError} `timeout` when it does not within `timeoutMs`, saying why; `closed` when this ends before
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async synced(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const { clock } = this.options;
    signal?.throwIfAborted();
    const over = new AbortController();
    const end = () => over.abort();
    signal?.addEventListener('abort', end, { once: true });
    let forget = () => {};
    const reached = new Promise<TreeState>((resolve) => {
      const look = (state: TreeState) => {
        if (state.status !== 'degraded') resolve(state);
      };
      forget = this.tree.onState(look);
      look(this.tree.state);
    });
    const late = clock.sleep(timeoutMs, over.signal).then(
      () => this.tree.state,
      () => this.tree.state,
    );
    const state = await Promise.race([reached, late]);
    forget();
    end();
    signal?.removeEventListener('abort', end);
    signal?.throwIfAborted();
    if (state.status === 'synced') return;
    const closed = state.status === 'closed';
    throw new ZooKeeperError(
      closed ? 'the discovery has been closed' : `not in the discovery tree after ${timeoutMs} ms: ${state.problem}`,
      {
        fault: closed ? 'closed' : 'timeout',
        outcome: 'unknown',
      },
    );
  }

  /**
   * Takes this node out of the tree, before its node id is given back. The session goes with it, unless the node id itself lives by it.
   * Resolves when that is done, or soon after where no server answers; never rejects.
   */
  async leave(): Promise<void> {
    if (this.options.announcesNode) await this.close();
    // Where it takes longer, the tree goes on with it as long as the session lasts.
    else await this.tree.withdraw(LEAVE_LIMIT_MS);
  }

  /** Takes this node out of the tree and ends the session. Resolves when that is done, or soon after where no server answers; never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // First of all, and in this very tick: the process may be about to exit, and the request has to be on its way by then.
    const ended = this.options.zookeeper.close();
    this.#ending.abort(new ZooKeeperError('the discovery has been closed', { fault: 'closed', outcome: 'unknown' }));
    this.#forgetLease();
    this.nodes.close();
    this.idWidth.close();
    await Promise.all([ended, this.tree.close(), this.ready]);
  }

  #announce(): void {
    const { announcement, announcesNode } = this.options;
    const { service, endpoints = [] } = announcement;
    const fields = announcedFields(announcement);
    if (announcesNode) this.tree.put({ kind: 'node' }, fields);
    if (service !== undefined) this.tree.put({ kind: 'service', service }, fields);
    for (const { endpoint, key, fields: more } of endpoints) {
      this.tree.put({ kind: 'endpoint', endpoint, key, service }, { ...fields, ...more });
    }
  }

  /** What goes into the lease with its next renewal; our own version among it, whatever the tree says. */
  #tellKnown(): void {
    const { lease } = this.options;
    // A version begins with 1. Anybody can write into a tree that is open to all, and what is told here outlives the tree.
    const known = Object.entries(this.nodes.knownVersions()).filter(([, version]) => version > 0);
    lease.setKnownNodes({ ...Object.fromEntries(known), [lease.id]: lease.version });
  }

  async #becomeReady(): Promise<Readiness> {
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
