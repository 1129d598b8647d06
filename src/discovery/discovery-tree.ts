import type { Clock, RandomSource } from '../base/clock.js';
import type { Lease } from '../lease/model/lease.js';
import { catchUp } from '../services/registered-znode.js';
import {
  type ReconcileCall,
  type Reconciled,
  type ReconcileEvent,
  ReconcileLoop,
  type ReconcileState,
} from '../zookeeper/reconcile-loop.js';
import type { Watch, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { type Assignment, decodeAssignment, encodeAssignment } from './assignment.js';
import { entryPath, type TreeEntry } from './tree-paths.js';

/** How far the tree shows the announced entries. */
export type TreeState = ReconcileState;

/** Events of announcements, for logs. */
export type TreeEvent =
  | ReconcileEvent
  /**
   * Another task has announced the node id under a higher version, which is left alone: the lease decides.
   */
  | { readonly type: 'superseded'; readonly path: string; readonly by: Assignment }
  /** A znode at a path of ours has no lower version, and is left alone until it goes. */
  | { readonly type: 'blocked'; readonly path: string; readonly problem: string };

/** In whose name, and in which session, a {@link DiscoveryTree} announces. */
export interface DiscoveryTreeOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** While it is not valid nothing is written: a lost node id does not return to the tree. */
  readonly lease: Pick<Lease, 'id' | 'version' | 'taskId' | 'isValid'>;
  /** Must not throw and must not block. */
  readonly onEvent?: (event: TreeEvent) => void;
}

/** One thing that is announced. */
interface Announced extends Reconciled {
  data: string;
  wanted: boolean;
  /** The session in which the path was read or written last; in any other it is most likely free. */
  sessionId: string | undefined;
  /** Why the znode at the path is left alone; undefined while nothing is in the way. */
  blockedBy: string | undefined;
  /** The transaction of the znode that was reported to be in the way, so that it is done once. */
  reported: bigint | undefined;
  /** Opened after the first write or obstacle; its first read shows what happened since. */
  watch: Watch | undefined;
}

/** How often one entry is tried against others' changes before it counts as a failure. */
const ROUNDS = 8;

/**
 * The entries that one task announces in the discovery tree, kept in memory and restored after every change
 * of the wanted entries, of the session, and of the znodes.
 *
 * A znode of an earlier session, or of an earlier holder of the node id, is replaced only if its version is
 * lower than ours. A znode that is replaced between our read and our write may be removed with it; its
 * owner's watch then restores it, so the highest version ends up in the tree.
 */
export class DiscoveryTree {
  readonly #entries = new Map<string, Announced>();
  readonly #loop: ReconcileLoop<Announced>;
  #withdrawn = false;

  constructor(private readonly options: DiscoveryTreeOptions) {
    const { zookeeper, clock, random, onEvent } = options;
    this.#loop = new ReconcileLoop({
      ...{ zookeeper, clock, random, onEvent, name: 'the discovery tree' },
      items: () => this.#entries.values(),
      settle: (entry, call) => this.#settle(entry, call),
    });
  }

  /** Whether all announced entries are in the tree. */
  get state(): TreeState {
    return this.#loop.state;
  }

  /**
   * Calls `listener` with every new state, until the returned function is called. Not with the present one.
   * Listeners must not throw.
   */
  onState(listener: (state: TreeState) => void): () => void {
    return this.#loop.onState(listener);
  }

  /**
   * Announces an entry, or changes its data. Returns at once; the tree follows.
   *
   * @param fields the fields of the znode's JSON in addition to task, node id and version
   * @throws {ConfigError} when a name cannot be a znode's
   */
  put(entry: TreeEntry, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#loop.signal.throwIfAborted();
    if (this.#withdrawn)
      throw new ZooKeeperError('announcements have been withdrawn', {
        fault: 'closed',
        outcome: 'not-applied',
      });
    const { id: nodeId, taskId, version } = this.options.lease;
    const path = entryPath(entry, nodeId);
    const data = encodeAssignment({ ...fields, taskId, nodeId, version });
    const nowhere = {
      path,
      dirty: true,
      sessionId: undefined,
      blockedBy: undefined,
      reported: undefined,
      watch: undefined,
    };
    const announced = Object.assign(this.#entries.get(path) ?? nowhere, { data, wanted: true });
    this.#entries.set(path, announced);
    this.#loop.touched(announced);
  }

  /**
   * Takes an entry back. Returns at once; the tree follows.
   *
   * @throws {ConfigError} when a name cannot be a znode's
   */
  remove(entry: TreeEntry): void {
    const known = this.#entries.get(entryPath(entry, this.options.lease.id));
    if (known !== undefined) this.#loop.touched(Object.assign(known, { wanted: false }));
  }

  /**
   * Waits until entries that were taken back are gone, or one of them is wanted again, or the tree is closed.
   *
   * @returns whether all of them are known to be gone after that time
   * @throws {ConfigError} when a name cannot be a znode's
   */
  removed(entries: readonly TreeEntry[], timeoutMs: number): Promise<boolean> {
    const paths = entries.map((entry) => entryPath(entry, this.options.lease.id));
    return this.#gone(paths, timeoutMs);
  }

  /** Ends the loop. The znodes stay until their session ends. Idempotent. */
  async close(): Promise<void> {
    for (const { watch } of this.#entries.values()) watch?.close();
    await this.#loop.close();
  }

  /**
   * Withdraws everything for good: removes what this session announced, now or when the connection returns,
   * until the tree is closed.
   *
   * @returns whether everything is known to be gone, after `timeoutMs` at most
   */
  async withdraw(timeoutMs: number): Promise<boolean> {
    this.#withdrawn = true;
    for (const entry of this.#entries.values()) this.#loop.touched(Object.assign(entry, { wanted: false }));
    return this.#gone([...this.#entries.keys()], timeoutMs);
  }

  async #gone(paths: readonly string[], timeoutMs: number): Promise<boolean> {
    await this.#loop.until(() => paths.every((path) => this.#entries.get(path)?.wanted !== false), timeoutMs);
    return paths.every((path) => !this.#entries.has(path));
  }

  async #settle(entry: Announced, call: ReconcileCall): Promise<void> {
    const { zookeeper } = this.options;
    const { path } = entry;
    const { sessionId } = call;
    for (let round = 0; round < ROUNDS; round += 1) {
      // Whatever happens from here on makes it dirty again.
      entry.dirty = false;
      const { data } = entry;
      if (!entry.wanted) {
        // A creation without a reply may not be visible yet on a server that lags behind. It would exist as
        // long as the session does.
        await catchUp(zookeeper, path, call);
        const left = await zookeeper.read(path, call);
        if (left?.stat.owner === sessionId) await zookeeper.remove(path, left.stat.version, call);
        if (entry.wanted) continue;
        entry.watch?.close();
        this.#entries.delete(path);
        return;
      }
      if (entry.sessionId !== sessionId) {
        // No znode of ours exists yet in this session: it is written first, and read only if something is in
        // the way.
        entry.sessionId = sessionId;
        entry.blockedBy = undefined;
        if (await this.#write(entry, data, undefined, call)) return this.#watch(entry);
      }
      const znode = await zookeeper.read(path, call);
      const obstacle = znode === undefined ? undefined : this.#obstacle(path, znode, sessionId);
      entry.blockedBy = obstacle?.problem;
      if (obstacle !== undefined && znode !== undefined) {
        if (entry.reported !== znode.stat.modifiedZxid) this.options.onEvent?.(obstacle.event);
        entry.reported = znode.stat.modifiedZxid;
        return this.#watch(entry);
      }
      if (await this.#write(entry, data, znode, call)) return this.#watch(entry);
    }
    throw new ZooKeeperError(`${path} is being changed by others all the time`, {
      fault: 'refused',
      outcome: 'not-applied',
      path,
    });
  }

  #watch(entry: Announced): void {
    // After the tasks that wait for the entry.
    process.nextTick(() => {
      if (entry.watch !== undefined || this.#loop.signal.aborted || this.#entries.get(entry.path) !== entry)
        return;
      entry.watch = this.options.zookeeper.watchData(entry.path, (znode) => this.#onZnode(entry, znode));
    });
  }

  /**
   * Writes the wanted data in place of a znode without an obstacle. False when another write came first, and
   * the path must be read again.
   */
  async #write(
    { path }: Announced,
    data: string,
    znode: Znode | undefined,
    call: ReconcileCall,
  ): Promise<boolean> {
    const { zookeeper, lease } = this.options;
    // Between the loss of the lease and the withdrawal, or after a pause of the process.
    if (!lease.isValid())
      throw new ZooKeeperError(`${path}: the lease is not valid`, {
        fault: 'refused',
        outcome: 'not-applied',
        path,
      });
    try {
      if (znode === undefined) await zookeeper.createWithParents(path, data, 'ephemeral', call);
      else if (znode.stat.owner !== call.sessionId) {
        // In one transaction, so that no reader sees none.
        const { version } = znode.stat;
        const create = { type: 'create', path, data, mode: 'ephemeral' } as const;
        await zookeeper.multi([{ type: 'remove', path, version }, create], call);
      } else if (znode.data.toString('utf8') !== data)
        await zookeeper.setData(path, data, znode.stat.version, call);
      return true;
    } catch (error) {
      if (isFault(error, 'node-exists', 'no-node', 'bad-version')) return false;
      throw error;
    }
  }

  /** Why a znode at a path of ours must not be replaced; undefined when it may be. */
  #obstacle(
    path: string,
    { data, stat }: Znode,
    sessionId: string,
  ): { readonly problem: string; readonly event: TreeEvent } | undefined {
    if (stat.owner === sessionId) return undefined;
    const { taskId, version } = this.options.lease;
    const other = decodeAssignment(data);
    const blocked = (problem: string) => ({ problem, event: { type: 'blocked', path, problem } as const });
    if (other === undefined) return blocked(`${path} holds something that tells no version`);
    if (other.version < version || (other.version === version && other.taskId === taskId)) return undefined;
    if (other.version === version)
      return blocked(`${path} is announced by task ${other.taskId} under the same version ${version}`);
    const problem = `${path} is announced by task ${other.taskId} under version ${other.version}, above our ${version}`;
    return { problem, event: { type: 'superseded', path, by: other } };
  }

  /** A znode of ours has changed, or is seen for the first time. */
  #onZnode(entry: Announced, znode: Znode | undefined): void {
    const session = this.options.zookeeper.state;
    const right =
      session.status === 'connected' &&
      znode?.stat.owner === session.sessionId &&
      znode.data.toString('utf8') === entry.data;
    const obstructed = entry.blockedBy !== undefined && znode?.stat.modifiedZxid === entry.reported;
    if (right || obstructed || (znode === undefined && !entry.wanted)) return;
    this.#loop.touched(entry);
  }
}
