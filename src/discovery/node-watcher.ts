import type { Clock } from '../base/clock.js';
import { Listeners } from '../base/listeners.js';
import { CLUSTER_NODE_ID_OFFSET, nodeIdOf } from '../id/cluster-node-id.js';
import { UnreadableReports } from '../services/instance-codec.js';
import { REFUSED_AFTER_S } from '../zookeeper/first-reads.js';
import { FollowedTree } from '../zookeeper/followed-tree.js';
import type { SessionState } from '../zookeeper/session-state.js';
import type { Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { type Assignment, decodeAssignment } from './assignment.js';
import { NODES_PATH, parseHexPair } from './tree-paths.js';

/** Where a {@link NodeWatcher} looks, and whom it tells of what it cannot read. */
export interface NodeWatcherOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /**
   * Told of each znode among the nodes that cannot be understood, once while its problem is the same, with
   * the rest of the sentence "<path> …"; of 1,000 at the most. Must not throw and must not block.
   */
  readonly onUnreadable?: ((path: string, problem: string) => void) | undefined;
}

/** A cluster node id that is taken by a znode which does not tell by whom. */
export interface UnreadableNode {
  readonly path: string;
  readonly problem: string;
}

/**
 * Called with the cluster node ids whose nodes have come, changed or gone since the last call. Must not
 * throw.
 */
export type NodesListener = (changed: ReadonlySet<number>) => void;

/** A znode among the nodes, and what is known of it. */
interface Member {
  readonly path: string;
  readonly clusterNodeId: number;
  /** False once it has gone; true also while it is listed and has not been read yet. */
  present: boolean;
  /** What was read last, so that a write which changes nothing is no news. */
  data?: Buffer | undefined;
  assignment?: Assignment | undefined;
  unreadable?: UnreadableNode | undefined;
}

/** The problem of a znode whose watch tells nothing. */
const UNREAD = `has not let itself be read for ${REFUSED_AFTER_S} s`;

/**
 * The nodes in the discovery tree, and who holds them. It follows the tree until it is closed, across
 * sessions too.
 *
 * The tree mirrors the leases and decides nothing. Not guaranteed: that each change is seen, only that the
 * last one is; that everything has been read again when `stale` ends.
 */
export class NodeWatcher {
  /**
   * Resolves once the whole tree has been seen. Znodes that the servers refuse to let be read hold it up for
   * 5 seconds. Never rejects, and never resolves when closed before.
   */
  readonly ready: Promise<void>;

  readonly #nodes = new Map<number, Assignment>();
  readonly #unreadable = new Map<number, UnreadableNode>();
  /** There are several znodes of one id only if its hex digits are written in upper and lower case. */
  readonly #members = new Map<number, Member[]>();
  readonly #tree: FollowedTree;
  readonly #reports: UnreadableReports;
  readonly #listeners = new Listeners<ReadonlySet<number>>();
  readonly #forgetNodes: () => void;
  readonly #forgetSession: () => void;
  #changed = new Set<number>();
  #closed = false;
  #staleSince: number | undefined;

  constructor(private readonly options: NodeWatcherOptions) {
    const { zookeeper, clock, onUnreadable } = options;
    let onWhole = () => {};
    this.ready = new Promise((resolve) => {
      onWhole = () => resolve(this.#tell());
    });
    this.#tree = new FollowedTree({ zookeeper, clock, onWhole });
    this.#reports = new UnreadableReports(onUnreadable);
    this.#onSession(zookeeper.state);
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    // Without the groups there is nothing to go on with.
    this.#forgetNodes = this.#follow(NODES_PATH, (name) => this.#openGroup(name), false);
  }

  /**
   * Cluster node id → the assignment that stands there, further fields included, in no particular order. It
   * changes with the tree: copy it to keep it.
   */
  get nodes(): ReadonlyMap<number, Assignment> {
    return this.#nodes;
  }

  /** The cluster node ids that are taken by znodes which do not tell task, node id and version. */
  get unreadable(): ReadonlyMap<number, UnreadableNode> {
    return this.#unreadable;
  }

  /**
   * Undefined while the session is connected; otherwise since when it is not, in milliseconds on the
   * monotonic clock. What is told meanwhile is what was seen last.
   */
  get stale(): { readonly since: number } | undefined {
    return this.#staleSince === undefined ? undefined : { since: this.#staleSince };
  }

  /** Whether a znode stands at a cluster node id, readable or not. */
  isTaken(clusterNodeId: number): boolean {
    return this.#members.get(clusterNodeId)?.some(({ present }) => present) ?? false;
  }

  /** Node id → version, of every node that can be read: what a lease publishes as its `knownNodesMapping`. */
  knownVersions(): Record<number, number> {
    const versions: Record<number, number> = {};
    for (const { nodeId, version } of this.#nodes.values()) versions[nodeId] = version;
    return versions;
  }

  /**
   * Calls `listener` just before {@link ready} resolves, with whatever there is, and after changes from then
   * on, until the returned function is called. Changes in quick succession are told as one.
   */
  onChange(listener: NodesListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Ends all watches. What was seen last can still be asked for. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#tree.close();
    this.#forgetSession();
    this.#listeners.clear();
    this.#staleSince ??= this.options.clock.monotonic();
    this.#forgetNodes();
  }

  /**
   * @param isOptional whether the tree counts as seen also where the servers refuse to let the znode be read
   */
  #follow(path: string, open: (name: string) => (() => void) | undefined, isOptional: boolean): () => void {
    return this.#tree.children(path, open, () => {
      this.#reports.report(path, UNREAD);
      return isOptional;
    });
  }

  #openGroup(name: string): (() => void) | undefined {
    const path = `${NODES_PATH}/${name}`;
    const group = this.#parse(path, name, 'group');
    return group === undefined
      ? undefined
      : this.#follow(path, (index) => this.#openMember(path, group, index), true);
  }

  #openMember(groupPath: string, group: number, name: string): (() => void) | undefined {
    const path = `${groupPath}/${name}`;
    const index = this.#parse(path, name, 'node');
    const clusterNodeId = (group << 8) | (index ?? 0);
    // Lower ids are reserved for nodes without a lease.
    if (index === undefined || clusterNodeId < CLUSTER_NODE_ID_OFFSET) return undefined;
    const member: Member = { path, clusterNodeId, present: true };
    this.#members.set(clusterNodeId, [...(this.#members.get(clusterNodeId) ?? []), member]);
    const onRefused = () => {
      member.unreadable = { path, problem: UNREAD };
      this.#publish(clusterNodeId);
      return true;
    };
    const take = (znode: Znode | undefined) => {
      update(member, znode);
      this.#publish(clusterNodeId);
    };
    const close = this.#tree.data(path, take, onRefused);
    return () => {
      this.#forget(member);
      close();
    };
  }

  /** The number that a name stands for; reports one that stands for none. */
  #parse(path: string, name: string, what: 'group' | 'node'): number | undefined {
    const number = parseHexPair(name);
    if (number === undefined) this.#reports.report(path, `is not the name of a ${what}, two hex digits`);
    return number;
  }

  #forget({ clusterNodeId, path }: Member): void {
    // Kept when the watcher is closed, and given up when the znode has gone.
    if (this.#closed) return;
    const others = this.#members.get(clusterNodeId)?.filter((other) => other.path !== path) ?? [];
    put(this.#members, clusterNodeId, others.length > 0 ? others : undefined);
    this.#publish(clusterNodeId);
  }

  /** Updates what is known of one id from its znodes. */
  #publish(clusterNodeId: number): void {
    const members = this.#members.get(clusterNodeId) ?? [];
    const [assignment] = members
      .flatMap((member) => member.assignment ?? [])
      .sort((a, b) => b.version - a.version);
    const problems = members.flatMap((member) => member.unreadable ?? []);
    for (const { path, problem } of problems) this.#reports.report(path, problem);
    const unreadable = assignment === undefined ? problems[0] : undefined;
    if (this.#nodes.get(clusterNodeId) === assignment && this.#unreadable.get(clusterNodeId) === unreadable)
      return;
    put(this.#nodes, clusterNodeId, assignment);
    put(this.#unreadable, clusterNodeId, unreadable);
    const isFirst = this.#changed.size === 0;
    this.#changed.add(clusterNodeId);
    // Once for all changes in one packet of the server.
    if (this.#tree.isWhole && isFirst) queueMicrotask(() => this.#tell());
  }

  #tell(): void {
    const changed = this.#changed;
    this.#changed = new Set();
    this.#listeners.tell(changed);
  }

  #onSession(session: SessionState): void {
    if (session.status === 'connected') this.#staleSince = undefined;
    else this.#staleSince ??= this.options.clock.monotonic();
  }
}

/** Notes what a member's znode tells. Never throws. */
function update(member: Member, znode: Znode | undefined): void {
  const { path, data: before } = member;
  member.present = znode !== undefined;
  if (znode !== undefined && before?.equals(znode.data)) return;
  member.data = znode?.data;
  member.assignment = undefined;
  member.unreadable = undefined;
  if (znode === undefined) return;
  const nodeId = nodeIdOf(member.clusterNodeId);
  const assignment = decodeAssignment(znode.data) ?? claimOf(znode);
  if (assignment?.nodeId === nodeId) member.assignment = assignment;
  else if (assignment === undefined)
    member.unreadable = { path, problem: 'does not tell task, node id and version' };
  else
    member.unreadable = { path, problem: `stands for node id ${nodeId}, but tells of ${assignment.nodeId}` };
}

/**
 * A task that allocates an id by creating this znode writes its version, the number of that transaction, a
 * moment later.
 */
function claimOf({ data, stat }: Znode): Assignment | undefined {
  const version = Number(stat.createdZxid);
  const claim = decodeAssignment(data, version);
  return claim !== undefined && typeof claim.nonce === 'string' ? claim : undefined;
}

/** Sets a value, or deletes it where there is none. */
function put<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
