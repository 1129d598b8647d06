import { onAbort, withTimeout } from '../../core/base/abort.js';
import { checkArguments, checked, having, maybe, oneOf, TEXT } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import type { ReconcileEvent, ReconcileState } from '../client/reconcile-loop.js';
import type { EventOptions, MultiOperation, TimeOptions, ZooKeeper } from '../client/zookeeper.js';
import {
  type AnnouncedNode,
  announceNode,
  decodeNode,
  type KnownNode,
  LEAVE_TIMEOUT_MS,
  leaveLost,
} from './announced-node.js';
import { SharedMap, SharedScalar, SharedSet } from './collections.js';
import { Contributions } from './contributions.js';
import type { Kind, Lifespan } from './data-report.js';
import { type DataCall, type DataContext, Datum } from './datum.js';
import {
  checkAddress,
  checkRoot,
  DEFAULT_ROOT,
  HASHED_PATHS,
  KINDS,
  nodesFolder,
  type PathStrategy,
} from './layout.js';
import { NodeSupervisor, type SupervisorOptions } from './node-supervisor.js';
import { Replica, type Replicated } from './replica.js';
import type { SharedValue } from './scalar-codec.js';
import { SharedList } from './shared-list.js';

/** Where the shared data is, and how. */
export interface SharedDataOptions extends TimeOptions, EventOptions<ReconcileEvent> {
  /** `nodes` and `data` are below it. @default /monastery/root */
  readonly root?: string | undefined;
  /** Which znodes data has; the same for all nodes of a cluster. @default Monastery's hashes */
  readonly paths?: PathStrategy | undefined;
}

/** Which datum is opened. */
export interface OpenOptions extends DataCall {
  /** @default '' */
  readonly scope?: string | undefined;
  /** @default that of the present datum, and `persistent` for a new one */
  readonly lifespan?: Lifespan | undefined;
}

type Followed = Pick<Replica<Replicated>, 'close' | 'closed'>;

/** Data that all nodes below one root share, in Monastery's layout. Closing it leaves the client open. */
export class SharedData {
  readonly root: string;
  /** @internal */
  readonly context: DataContext;
  /** @internal */
  readonly contributions: Contributions;
  readonly #nodes = new Set<AnnouncedNode>();
  #supervisor: NodeSupervisor | undefined;
  readonly #open = new Set<Followed>();

  /** @see sharedData */
  constructor(zookeeper: ZooKeeper, options: SharedDataOptions = {}) {
    checkArguments({ zookeeper });
    const {
      root = DEFAULT_ROOT,
      paths = HASHED_PATHS,
      clock = systemClock,
      random = systemRandom,
      onEvent,
    } = checked(options, {
      paths: maybe(having('a strategy with datum() and element()', 'datum', 'element')),
    });
    this.root = checkRoot(root);
    this.context = { zookeeper, clock, random, root, paths };
    this.contributions = new Contributions(this.context, onEvent);
  }

  /** How far ZooKeeper has the ephemeral data that this client contributes. */
  get state(): ReconcileState {
    return this.contributions.state;
  }

  /**
   * Resolves to whether ZooKeeper has all ephemeral data of this client, and nothing that was removed, within
   * that time.
   */
  synced(call?: DataCall): Promise<boolean> {
    return this.contributions.synced(call);
  }

  /**
   * Opens a datum: reads of what kind it is, and begins to follow it. It is made by the first write.
   *
   * @throws {SharedDataError} `kind-clash`, `foreign-znode` @throws {ConfigError} @throws {ZooKeeperError}
   * `timeout`, access denied, client closed
   */
  scalar<V extends SharedValue = SharedValue>(name: string, options?: OpenOptions): Promise<SharedScalar<V>> {
    return this.#openDatum(SharedScalar<V>, 'scalar', name, options);
  }

  /** As {@link scalar}. */
  set<V extends SharedValue = SharedValue>(name: string, options?: OpenOptions): Promise<SharedSet<V>> {
    return this.#openDatum(SharedSet<V>, 'set', name, options);
  }

  /** As {@link scalar}. */
  list<V extends SharedValue = SharedValue>(name: string, options?: OpenOptions): Promise<SharedList<V>> {
    return this.#openDatum(SharedList<V>, 'list', name, options);
  }

  /** As {@link scalar}. */
  map<K extends SharedValue = SharedValue, V extends SharedValue = SharedValue>(
    name: string,
    options?: OpenOptions,
  ): Promise<SharedMap<K, V>> {
    return this.#openDatum(SharedMap<K, V>, 'map', name, options);
  }

  /**
   * Removes a datum with all of its elements. Ephemeral ones are made again by their nodes. Resolves to false
   * where there is none.
   */
  async remove(name: string, options: Omit<OpenOptions, 'lifespan'> = {}): Promise<boolean> {
    const { scope = '', ...call } = checked(options);
    const address = checkAddress({ name, scope });
    const data = KINDS.map((kind) => new Datum(this.context, { address, kind, lifespan: 'persistent' }));
    const byPath = new Map(data.map((datum) => [datum.path, datum]));
    let isAny = false;
    for (const datum of byPath.values()) {
      const isRemoved = await datum.attempted('it could not be removed', call, async (attempt) => {
        const znode = await attempt.session.read(datum.path, attempt.call);
        if (znode === undefined) return attempt.answer(attempt.mayBeDone);
        datum.found(znode);
        const names = (await attempt.session.children(datum.path, attempt.call)) ?? [];
        const removals = names.map(
          (each): MultiOperation => ({ type: 'remove', path: `${datum.path}/${each}` }),
        );
        for (let from = 0; from < names.length; from += REMOVED_AT_ONCE)
          await datum.multi(attempt, removals.slice(from, from + REMOVED_AT_ONCE));
        return (await attempt.session.remove(datum.path, -1, attempt.call)) || attempt.mayBeDone;
      });
      isAny ||= isRemoved;
    }
    return isAny;
  }

  /**
   * Announces a node; `data` is what it says of itself, by default nothing.
   * @param stopping (internal) once it has aborted none is announced any more, but for one under way
   * @throws {ZooKeeperError} `timeout`, access denied, client closed
   */
  async announce(
    options: DataCall & { readonly data?: string | undefined } = {},
    stopping?: AbortSignal,
  ): Promise<AnnouncedNode> {
    const { data = '', ...call } = checked(options, { data: maybe(TEXT) });
    const node = await announceNode(this.context, data, call, stopping);
    this.#nodes.add(node);
    node.onState(({ status }) => status === 'disconnected' && this.#nodes.delete(node));
    return node;
  }

  /**
   * Keeps a node announced, one for this object: from now on its ephemeral data goes with that node.
   *
   * @throws {ConfigError} for a wrong option, and where a node is supervised already
   */
  supervise(options: SupervisorOptions = {}): NodeSupervisor {
    const supervised = this.#supervisor?.state.status;
    if (supervised !== undefined && supervised !== 'stopped')
      throw new ConfigError('supervise', supervised, 'no other supervisor of this object');
    this.#supervisor = new NodeSupervisor(this, options);
    return this.#supervisor;
  }

  /** Follows the nodes that are announced, by their ids. */
  nodes(): Replica<KnownNode> {
    return this.#opened(
      new Replica({ ...this.context, path: nodesFolder(this.root), of: 'children', decode: decodeNode }),
    );
  }

  /**
   * Follows nothing any more, and takes its nodes and ephemeral data away. Resolves within a few seconds.
   * Never rejects. Idempotent.
   */
  async close(): Promise<void> {
    await this.#supervisor?.stop();
    for (const each of this.#open) each.close();
    await Promise.all([
      this.contributions.close(),
      ...[...this.#nodes].map((node) => node.leave()),
      withTimeout(this.context.clock, LEAVE_TIMEOUT_MS, leaveLost(this.context)),
    ]);
  }

  async #openDatum<D extends Followed>(
    Opened: new (datum: Datum, contributions: Contributions) => D,
    kind: Kind,
    name: string,
    options?: OpenOptions,
  ): Promise<D> {
    return this.#opened(new Opened(await this.#datum(kind, name, options), this.contributions));
  }

  #opened<T extends Followed>(handle: T): T {
    this.#open.add(handle);
    onAbort(handle.closed, () => this.#open.delete(handle));
    return handle;
  }

  async #datum(kind: Kind, name: string, options: OpenOptions = {}): Promise<Datum> {
    const {
      scope = '',
      lifespan,
      ...call
    } = checked(options, {
      lifespan: maybe(oneOf('persistent', 'ephemeral')),
    });
    const address = checkAddress({ name, scope });
    const datum = new Datum(this.context, { address, kind, lifespan: lifespan ?? 'persistent' });
    const znode = await datum.attempted(
      'it could not be read',
      call,
      async (attempt) => (await attempt.session.read(datum.path, attempt.call)) ?? attempt.answer(undefined),
    );
    const found = lifespan ?? (znode ? datum.found(znode).lifespan : 'persistent');
    const opened = new Datum(this.context, { address, kind, lifespan: found });
    opened.check(znode);
    return opened;
  }
}

const REMOVED_AT_ONCE = 1_000;

/** Shared data on an open client. @throws {ConfigError} for a root that is no path */
export function sharedData(zookeeper: ZooKeeper, options?: SharedDataOptions): SharedData {
  return new SharedData(zookeeper, options);
}
