import { checkArguments, checked, LEASE, listOf, OBJECT } from '../../core/base/arguments.js';
import type { Lease } from '../../core/lease/model/lease.js';
import {
  type ReconcileCall,
  type Reconciled,
  type ReconcileEvent,
  ReconcileLoop,
  type ReconcileState,
} from '../client/reconcile-loop.js';
import { catchUp, writeEphemeral } from '../client/retry.js';
import { type EventOptions, type Znode, type ZooKeeperContext, ZooKeeperError } from '../client/zookeeper.js';
import { checkLease } from '../services/registered-znode.js';
import { type Assignment, decodeAssignment, encodeAssignment, entryPath, type TreeEntry } from './layout.js';

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
export interface DiscoveryTreeOptions extends ZooKeeperContext, EventOptions<TreeEvent> {
  /** While it is not valid nothing is written: a lost node id does not return to the tree. */
  readonly lease: Pick<Lease, 'id' | 'version' | 'taskId' | 'isValid'>;
}

/** One znode that is announced. */
class AnnouncedZnode implements Reconciled {
  dirty = true;
  /** Undefined while it is being removed. */
  data: string | undefined;
  blockedBy: string | undefined;
  /** The session in which the path was read or written last; in any other it is most likely free. */
  #sessionId: string | undefined;
  /** The transaction of the znode that was reported to be in the way, so that it is done once. */
  #reported: bigint | undefined;

  constructor(
    readonly path: string,
    private readonly options: DiscoveryTreeOptions,
    private readonly onGone: (entry: AnnouncedZnode) => void,
  ) {}

  async step(call: ReconcileCall): Promise<boolean> {
    const { zookeeper, lease, onEvent } = this.options;
    const { path, data } = this;
    const { sessionId } = call;
    if (data === undefined) {
      // A creation without a reply, which a server that lags behind does not show yet, would stay for as long
      // as the session does.
      await catchUp(zookeeper, path, call);
      const left = await zookeeper.read(path, call);
      if (left?.stat.owner === sessionId) await zookeeper.remove(path, left.stat.version, call);
      if (this.data !== undefined) return false;
      this.onGone(this);
      return true;
    }
    // In a new session nothing of ours is there yet: it is written first, and read only if something is in
    // the way.
    const znode = this.#sessionId === sessionId ? await zookeeper.read(path, call) : undefined;
    this.#sessionId = sessionId;
    const obstacle = znode && this.#obstacle(znode, sessionId);
    this.blockedBy = obstacle?.problem;
    if (znode && obstacle) {
      if (this.#reported !== znode.stat.modifiedZxid) onEvent?.(obstacle.event);
      this.#reported = znode.stat.modifiedZxid;
      return true;
    }
    checkLease(lease, path);
    await writeEphemeral(zookeeper, path, data, znode, call);
    return true;
  }

  expects(znode: Znode | undefined, sessionId: string): boolean {
    if (this.data === undefined) return true;
    const isRight = znode?.stat.owner === sessionId && znode.data.toString('utf8') === this.data;
    return isRight || (this.blockedBy !== undefined && znode?.stat.modifiedZxid === this.#reported);
  }

  /** Why a znode at the path must not be replaced; undefined when it may be. */
  #obstacle(
    { data, stat }: Znode,
    sessionId: string,
  ): { readonly problem: string; readonly event: TreeEvent } | undefined {
    if (stat.owner === sessionId) return undefined;
    const { path } = this;
    const { taskId, version } = this.options.lease;
    const other = decodeAssignment(data);
    const blocked = (problem: string) => ({ problem, event: { type: 'blocked', path, problem } as const });
    if (other === undefined) return blocked(`${path} holds something that names no version`);
    if (other.version < version || (other.version === version && other.taskId === taskId)) return undefined;
    if (other.version === version)
      return blocked(`${path} is announced by task ${other.taskId} under the same version ${version}`);
    const theirs = `task ${other.taskId} under version ${other.version}`;
    const problem = `${path} is announced by ${theirs}, above our ${version}`;
    return { problem, event: { type: 'superseded', path, by: other } };
  }
}

/**
 * The entries that one task announces in the discovery tree, kept in memory and restored after every change
 * of the wanted entries, of the session, and of the znodes.
 *
 * A znode of an earlier session, or of an earlier holder of the node id, is replaced only if its version is
 * lower than ours. A znode that is replaced between our read and our write may be removed with it; its
 * owner's watch then restores it, so the highest version ends up in the tree.
 */
export class DiscoveryTree {
  readonly #entries = new Map<string, AnnouncedZnode>();
  readonly #loop: ReconcileLoop;
  #withdrawn = false;

  /** @param shared a loop that its owner closes. @default its own, which reports to `onEvent` */
  constructor(
    private readonly options: DiscoveryTreeOptions,
    private readonly shared?: ReconcileLoop,
  ) {
    const { zookeeper, clock, random } = checked(options, { lease: LEASE });
    checkArguments({ zookeeper, clock, random });
    this.#loop = shared ?? new ReconcileLoop({ ...options, name: 'the discovery tree' });
  }

  /** Whether all announced entries are in the tree. */
  get state(): ReconcileState {
    return this.#loop.state;
  }

  /**
   * Calls `listener` with every new state, until the returned function is called. Not with the present one.
   * Listeners must not throw.
   */
  onState(listener: (state: ReconcileState) => void): () => void {
    return this.#loop.onState(listener);
  }

  /**
   * Announces an entry, or changes its data. Returns at once; the tree follows.
   *
   * @param fields the fields of the znode's JSON in addition to task, node id and version
   * @throws {ConfigError} when a name cannot be a znode's
   */
  register(entry: TreeEntry, fields: Readonly<Record<string, unknown>> = {}): void {
    checkArguments({ entry, fields });
    if (this.#withdrawn)
      throw new ZooKeeperError('announcements have been withdrawn', 'closed', 'not-applied');
    const { id: nodeId, taskId, version } = this.options.lease;
    const path = entryPath(entry, nodeId);
    const data = encodeAssignment({ ...fields, taskId, nodeId, version });
    const onGone = (znode: AnnouncedZnode) => {
      this.#entries.delete(path);
      this.#loop.forget(znode);
    };
    const announced = this.#entries.get(path) ?? new AnnouncedZnode(path, this.options, onGone);
    this.#entries.set(path, announced);
    announced.data = data;
    this.#loop.reconcile(announced);
  }

  /**
   * Takes an entry back. Returns at once; the tree follows.
   *
   * @throws {ConfigError} when a name cannot be a znode's
   */
  unregister(entry: TreeEntry): void {
    this.#unregister(this.#entries.get(entryPath(entry, this.options.lease.id)));
  }

  /**
   * Waits until unregistered entries are gone, or one of them is registered again, or the tree is closed.
   *
   * @returns whether all of them are known to be gone after that time
   * @throws {ConfigError} when a name cannot be a znode's
   */
  async untilUnregistered(entries: readonly TreeEntry[], timeoutMs: number): Promise<boolean> {
    checkArguments({ entries, timeoutMs }, { entries: listOf(OBJECT) });
    const paths = entries.map((entry) => entryPath(entry, this.options.lease.id));
    return this.#gone(paths, timeoutMs);
  }

  /** Follows nothing any more. The znodes stay until their session ends. Idempotent. */
  async close(): Promise<void> {
    this.#withdrawn = true;
    for (const entry of this.#entries.values()) this.#loop.forget(entry);
    if (this.shared === undefined) await this.#loop.close();
  }

  /**
   * Withdraws everything for good: removes what this session announced, now or when the connection returns,
   * until the tree is closed.
   *
   * @returns whether everything is known to be gone, after `timeoutMs` at most
   */
  async withdraw(timeoutMs: number): Promise<boolean> {
    checkArguments({ timeoutMs });
    this.#withdrawn = true;
    for (const entry of this.#entries.values()) this.#unregister(entry);
    return this.#gone([...this.#entries.keys()], timeoutMs);
  }

  #unregister(entry: AnnouncedZnode | undefined) {
    if (entry === undefined) return;
    entry.data = undefined;
    this.#loop.reconcile(entry);
  }

  async #gone(paths: readonly string[], timeoutMs: number) {
    const isDecided = (path: string) => {
      const entry = this.#entries.get(path);
      return entry === undefined || entry.data !== undefined;
    };
    await this.#loop.until(() => paths.every(isDecided), timeoutMs);
    return paths.every((path) => !this.#entries.has(path));
  }
}
