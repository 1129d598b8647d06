import type { Clock, RandomSource } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { systemClock, systemRandom } from '../base/system.js';
import type { ReconcileState } from '../zookeeper/reconcile-loop.js';
import type { MultiOperation, ZooKeeper } from '../zookeeper/zookeeper.js';
import { type AnnouncedNode, announceNode, decodeNode, type KnownNode } from './announced-node.js';
import { SharedMap, SharedScalar, SharedSet } from './collections.js';
import { type ContributionEvent, Contributions } from './contributions.js';
import { type DataCall, type DataContext, Datum } from './datum.js';
import { type DatumRecord, decodeRecord } from './datum-record.js';
import {
  checkAddress,
  checkRoot,
  DEFAULT_ROOT,
  dataFolder,
  HASHED_PATHS,
  KINDS,
  type Kind,
  type Lifespan,
  nodesFolder,
  type PathStrategy,
} from './layout.js';
import { NodeSupervisor, type SupervisorOptions } from './node-supervisor.js';
import { type Change, Replica } from './replica.js';
import type { SharedValue } from './scalar-codec.js';
import { SharedList } from './shared-list.js';

/** Where the shared data stand, and how. */
export interface SharedDataOptions {
  /** Below it stand `nodes` and `data`. @default /monastery/root */
  readonly root?: string | undefined;
  /** Which znodes data has; the same for all nodes of a cluster. @default Monastery's hashes */
  readonly paths?: PathStrategy | undefined;
  /** Told when this client's ephemeral data does not stand as it should, and when it does again. Must not throw and must not block. */
  readonly onEvent?: ((event: ContributionEvent) => void) | undefined;
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /** @default the operating system's */
  readonly random?: RandomSource | undefined;
}

/** Which datum is opened. */
export interface OpenOptions extends DataCall {
  /** @default '' */
  readonly scope?: string | undefined;
  /** @default that of the datum as it stands, and `persistent` for a new one */
  readonly lifespan?: Lifespan | undefined;
}

/** A datum as it stands in ZooKeeper. */
export interface DatumDescription extends Partial<DatumRecord> {
  /** The znode, within the chroot. */
  readonly path: string;
  /** How many elements a collection has, foreign znodes included. */
  readonly childCount: number;
  /** Why it is no shared data; undefined where it is. */
  readonly problem: string | undefined;
}

/** The nodes that are announced below a root, by their ids, kept up to date. */
export interface NodeList {
  /** In the order in which they were announced. */
  readonly nodes: readonly KnownNode[];
  /** Resolves once they have been read. */
  readonly ready: Promise<void>;
  readonly stale: { readonly since: number } | undefined;
  /** Tells of nodes that come and go. The returned function ends that. */
  onChange(listener: (changes: readonly Change<KnownNode>[]) => void): () => void;
  /** Ends the watch. */
  close(): void;
}

/** Data that all nodes below one root share, in Monastery's layout. Closing it leaves the client open. */
export class SharedData {
  readonly root: string;
  /** @internal */
  readonly context: DataContext;
  /** @internal */
  readonly contributions: Contributions;
  readonly #nodes = new Map<string, AnnouncedNode>();
  #supervisor: NodeSupervisor | undefined;
  readonly #open = new Set<{ close(): void }>();

  /** @see sharedData */
  constructor(zookeeper: ZooKeeper, options: SharedDataOptions = {}) {
    const { root = DEFAULT_ROOT, paths = HASHED_PATHS, clock = systemClock, random = systemRandom, onEvent } = options;
    this.root = checkRoot(root);
    this.context = { zookeeper, clock, random, root, paths };
    this.contributions = new Contributions(this.context, onEvent);
  }

  /** How far ZooKeeper has the ephemeral data that this client contributes. */
  get state(): ReconcileState {
    return this.contributions.state;
  }

  /** Resolves to whether ZooKeeper has all ephemeral data of this client, and nothing that was removed, within that time. */
  synced(call?: DataCall): Promise<boolean> {
    return this.contributions.synced(call);
  }

  /**
   * Opens a datum: reads of what kind it is, and begins to follow it. It is made by the first write.
   *
   * @throws {SharedDataError} `kind-clash`, `foreign-znode` @throws {ConfigError} @throws {ZooKeeperError} `timeout`, access denied, client closed
   */
  async scalar<V extends SharedValue = SharedValue>(name: string, options?: OpenOptions): Promise<SharedScalar<V>> {
    return this.#opened(new SharedScalar<V>(await this.#datum('scalar', name, options), this.contributions));
  }

  /** As {@link scalar}. */
  async set<V extends SharedValue = SharedValue>(name: string, options?: OpenOptions): Promise<SharedSet<V>> {
    return this.#opened(new SharedSet<V>(await this.#datum('set', name, options), this.contributions));
  }

  /** As {@link scalar}. */
  async list<V extends SharedValue = SharedValue>(name: string, options?: OpenOptions): Promise<SharedList<V>> {
    return this.#opened(new SharedList<V>(await this.#datum('list', name, options), this.contributions));
  }

  /** As {@link scalar}. */
  async map<K extends SharedValue = SharedValue, V extends SharedValue = SharedValue>(
    name: string,
    options?: OpenOptions,
  ): Promise<SharedMap<K, V>> {
    return this.#opened(new SharedMap<K, V>(await this.#datum('map', name, options), this.contributions));
  }

  /** What stands under a name; undefined for nothing. */
  async describe(name: string, { scope = '', ...call }: Omit<OpenOptions, 'lifespan'> = {}): Promise<DatumDescription | undefined> {
    const address = checkAddress({ name, scope });
    const paths = new Set(KINDS.map((kind) => new Datum(this.context, { address, kind, lifespan: 'persistent' }).path));
    for (const path of paths) {
      const found = await this.#describe(path, call);
      if (found) return found;
    }
    return undefined;
  }

  /** All data below the root, znodes that hold none included, in no particular order. */
  async describeAll(call: DataCall = {}): Promise<DatumDescription[]> {
    const found: DatumDescription[] = [];
    const folders = [dataFolder(this.root)];
    for (const folder of folders) {
      for (const name of await this.#children(folder, call)) {
        const each = await this.#describe(`${folder}/${name}`, call);
        // A path strategy may put data into folders.
        if (each?.problem === EMPTY && each.childCount > 0) folders.push(each.path);
        else if (each) found.push(each);
      }
    }
    return found;
  }

  /** Removes a datum with all of its elements. Ephemeral ones are made again by their nodes. Resolves to false where there is none. */
  async remove(name: string, options: Omit<OpenOptions, 'lifespan'> = {}): Promise<boolean> {
    const found = await this.describe(name, options);
    if (found?.address === undefined || !found.kind || !found.lifespan) return false;
    const datum = new Datum(this.context, { address: found.address, kind: found.kind, lifespan: found.lifespan });
    return datum.attempted('it could not be removed', options, async (attempt) => {
      const { session, call } = attempt;
      const names = (await session.children(datum.path, call)) ?? [];
      for (let from = 0; from < names.length; from += REMOVED_AT_ONCE) {
        const removals = names
          .slice(from, from + REMOVED_AT_ONCE)
          .map((each): MultiOperation => ({ type: 'remove', path: `${datum.path}/${each}` }));
        await datum.multi(attempt, removals);
      }
      return (await session.remove(datum.path, -1, call)) || attempt.mayBeDone;
    });
  }

  /** Announces a node. @param data what it says of itself. @default none @throws {ZooKeeperError} `timeout`, access denied, client closed */
  async announce({ data = '', ...call }: DataCall & { readonly data?: string } = {}): Promise<AnnouncedNode> {
    const node = await announceNode(this.context, data, new Set(this.#nodes.keys()), call);
    this.#nodes.set(node.path, node);
    node.onState(({ status }) => status === 'disconnected' && this.#nodes.delete(node.path));
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

  /** Follows the nodes that are announced. */
  nodes(): NodeList {
    const replica = new Replica({ ...this.context, path: nodesFolder(this.root), of: 'children', decode: decodeNode });
    return this.#opened({
      get nodes() {
        return [...replica.entries()].sort((a, b) => (a.id < b.id ? -1 : 1));
      },
      ready: replica.ready,
      get stale() {
        return replica.stale;
      },
      onChange: (listener) => replica.onChange(listener),
      close: () => replica.close(),
    });
  }

  /** Follows nothing any more, and takes its nodes and ephemeral data away. Resolves within a few seconds. Never rejects. Idempotent. */
  async close(): Promise<void> {
    await this.#supervisor?.stop();
    for (const each of this.#open) each.close();
    this.#open.clear();
    await Promise.all([this.contributions.close(), ...[...this.#nodes.values()].map((node) => node.leave())]);
  }

  #opened<T extends { close(): void }>(handle: T): T {
    this.#open.add(handle);
    return handle;
  }

  async #datum(kind: Kind, name: string, { scope = '', lifespan, ...call }: OpenOptions = {}): Promise<Datum> {
    const address = checkAddress({ name, scope });
    const datum = new Datum(this.context, { address, kind, lifespan: lifespan ?? 'persistent' });
    const { znode } = await datum.attempted('it could not be read', call, async (attempt) => ({
      znode: await attempt.session.read(datum.path, attempt.call),
    }));
    const found = lifespan ?? (znode && decodeRecord(znode.data)?.lifespan) ?? 'persistent';
    const opened = new Datum(this.context, { address, kind, lifespan: found });
    opened.check(znode);
    return opened;
  }

  async #describe(path: string, call: DataCall): Promise<DatumDescription | undefined> {
    const znode = await this.context.zookeeper.read(path, callOptions(call));
    if (znode === undefined) return undefined;
    const record = decodeRecord(znode.data);
    const { childCount } = znode.stat;
    if (record === undefined)
      return { path, childCount, problem: znode.data.length === 0 ? EMPTY : 'its data is no record of shared data' };
    const { address, kind, lifespan } = record;
    return { address, kind, lifespan, path, childCount, problem: undefined };
  }

  async #children(path: string, call: DataCall): Promise<readonly string[]> {
    return (await this.context.zookeeper.children(path, callOptions(call))) ?? [];
  }
}

const EMPTY = 'it has no data';
const REMOVED_AT_ONCE = 1_000;

const callOptions = ({ timeoutMs, signal }: DataCall) => ({ ...(timeoutMs !== undefined && { timeoutMs }), signal });

/** Shared data on an open client. @throws {ConfigError} for a root that is no path */
export function sharedData(zookeeper: ZooKeeper, options?: SharedDataOptions): SharedData {
  return new SharedData(zookeeper, options);
}
