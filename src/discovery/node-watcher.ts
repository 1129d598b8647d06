import type { Clock } from '../base/clock.js';
import { CLUSTER_NODE_ID_OFFSET, nodeIdOf } from '../id/cluster-node-id.js';
import { FirstReads, REFUSED_AFTER_S } from '../zookeeper/first-reads.js';
import { Listeners } from '../zookeeper/listeners.js';
import type { SessionState } from '../zookeeper/session-state.js';
import type { Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { type Assignment, decodeAssignment } from './assignment.js';
import { ChildMirror, type Closeable } from './child-mirror.js';
import { NODES_PATH, parseHexPair } from './tree-paths.js';

/** Where a {@link NodeWatcher} looks, and whom it tells of what it cannot read. */
export interface NodeWatcherOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /**
   * Told once of each znode among the nodes that cannot be understood, with the rest of the sentence "<path> …", and of 1,000 at the
   * most. Must not throw and must not block.
   */
  readonly onUnreadable?: ((path: string, problem: string) => void) | undefined;
}

/** A cluster node id that is taken by a znode which does not tell by whom. */
export interface UnreadableNode {
  readonly path: string;
  readonly problem: string;
}

/** Called with the cluster node ids whose nodes have come, changed or gone since the last call. Must not throw. */
export type NodesListener = (changed: ReadonlySet<number>) => void;

/** What is known of a znode among the nodes. Its data are kept, so that a write which changes nothing is no news. */
type NodeZnode =
  /** It is listed, and has not been read yet. */
  | { readonly status: 'unread' }
  | { readonly status: 'absent' }
  | { readonly status: 'assigned'; readonly data: Buffer; readonly assignment: Assignment }
  /** It stands there and does not tell by whom; `problem` is the rest of the sentence "<path> …". */
  | { readonly status: 'unreadable'; readonly data: Buffer | undefined; readonly problem: string };

interface Member extends Closeable {
  readonly path: string;
  readonly clusterNodeId: number;
  told: NodeZnode;
}

/** The problem of a znode whose watch tells nothing. */
const UNREAD = `has not let itself be read for ${REFUSED_AFTER_S} s`;
/** Maximum number of znodes that are reported: a tree full of others' znodes must not fill the log. */
const MAX_REPORTS = 1_000;

/**
 * The nodes in the discovery tree, and who holds them. It follows the tree until it is closed, across sessions too.
 *
 * The tree mirrors the leases and decides nothing. Not guaranteed: that each change is seen, only that the last one is; that everything has
 * been read again when `stale` ends.
 */
export class NodeWatcher {
  /**
   * Resolves once the whole tree has been seen. Znodes that the servers refuse to let be read hold it up for 5 seconds. Never rejects, and
   * never resolves when closed before.
   */
  readonly ready: Promise<void>;

  readonly #nodes = new Map<number, Assignment>();
  readonly #unreadable = new Map<number, UnreadableNode>();
  /** There are several znodes of one id only if its hex digits are written in upper and lower case. */
  readonly #members = new Map<number, Member[]>();
  readonly #reads: FirstReads;
  readonly #reported = new Set<string>();
  readonly #listeners = new Listeners<ReadonlySet<number>>();
  readonly #root: ChildMirror<Closeable>;
  readonly #forgetSession: () => void;
  #changed = new Set<number>();
  #telling = false;
  #closed = false;
  #staleSince: number | undefined;

  constructor(private readonly options: NodeWatcherOptions) {
    const { zookeeper, clock } = options;
    let becomeReady = () => {};
    this.ready = new Promise((resolve) => {
      becomeReady = resolve;
    });
    const onWhole = () => {
      this.#tell();
      becomeReady();
    };
    this.#reads = new FirstReads({ zookeeper, clock, onWhole });
    this.#onSession(zookeeper.state);
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    // Without the groups there is nothing to go on with.
    this.#reads.begin(NODES_PATH, () => {
      this.#report(NODES_PATH, UNREAD);
      return false;
    });
    this.#root = new ChildMirror({
      zookeeper,
      path: NODES_PATH,
      open: (name) => this.#openGroup(name),
      onTold: () => this.#reads.end(NODES_PATH),
    });
  }

  /**
   * Cluster node id → the assignment that stands there, further fields included, in no particular order. It changes with the tree: copy it
   * to keep it.
   */
  get nodes(): ReadonlyMap<number, Assignment> {
    return this.#nodes;
  }

  /** The cluster node ids that are taken by znodes which do not tell task, node id and version. */
  get unreadable(): ReadonlyMap<number, UnreadableNode> {
    return this.#unreadable;
  }

  /**
   * Undefined while the session is connected; otherwise since when it is not, in milliseconds on the monotonic clock. What is told
   * meanwhile is what was seen last.
   */
  get stale(): { readonly since: number } | undefined {
    return this.#staleSince === undefined ? undefined : { since: this.#staleSince };
  }

  /** Whether a znode stands at a cluster node id, readable or not. */
  isTaken(clusterNodeId: number): boolean {
    return this.#members.get(clusterNodeId)?.some(({ told }) => told.status !== 'absent') ?? false;
  }

  /** Node id → version, of every node that can be read: what a lease publishes as its `knownNodesMapping`. */
  knownVersions(): Record<number, number> {
    const versions: Record<number, number> = {};
    for (const { nodeId, version } of this.#nodes.values()) versions[nodeId] = version;
    return versions;
  }

  /**
   * Calls `listener` just before {@link ready} resolves, with whatever there is, and after changes from then on, until the returned
   * function is called. Changes in quick succession are told as one.
   */
  onChange(listener: NodesListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Ends all watches. What was seen last can still be asked for. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reads.close();
    this.#forgetSession();
    this.#listeners.clear();
    this.#staleSince ??= this.options.clock.monotonic();
    this.#root.close();
  }

  #openGroup(name: string): Closeable | undefined {
    const { zookeeper } = this.options;
    const path = `${NODES_PATH}/${name}`;
    const group = parseHexPair(name);
    if (group === undefined) return this.#report(path, 'is not the name of a group, two hex digits');
    this.#reads.begin(path, () => {
      this.#report(path, UNREAD);
      return true;
    });
    const members = new ChildMirror({
      zookeeper,
      path,
      open: (index) => this.#openMember(path, group, index),
      onTold: () => this.#reads.end(path),
    });
    const close = () => {
      members.close();
      this.#reads.end(path);
    };
    return { close };
  }

  #openMember(groupPath: string, group: number, name: string): Closeable | undefined {
    const path = `${groupPath}/${name}`;
    const index = parseHexPair(name);
    if (index === undefined) return this.#report(path, 'is not the name of a node, two hex digits');
    const clusterNodeId = (group << 8) | index;
    // Reserved for ids that are not leased.
    if (clusterNodeId < CLUSTER_NODE_ID_OFFSET) return undefined;
    const member: Member = { path, clusterNodeId, told: { status: 'unread' }, close: () => undefined };
    const spellings = this.#members.get(clusterNodeId);
    if (spellings === undefined) this.#members.set(clusterNodeId, [member]);
    else spellings.push(member);
    this.#reads.begin(path, () => {
      member.told = { status: 'unreadable', data: undefined, problem: UNREAD };
      this.#publish(clusterNodeId);
      return true;
    });
    const watch = this.options.zookeeper.watchData(path, (znode) => this.#onMember(member, znode));
    member.close = () => {
      watch.close();
      this.#forget(member);
    };
    return member;
  }

  #onMember(member: Member, znode: Znode | undefined): void {
    member.told = readNodeZnode(member.clusterNodeId, znode, member.told);
    this.#publish(member.clusterNodeId);
    this.#reads.end(member.path);
  }

  #forget(member: Member): void {
    // Kept when the watcher is closed, and given up when the znode has gone.
    if (this.#closed) return;
    const { clusterNodeId, path } = member;
    const others = this.#members.get(clusterNodeId)?.filter((other) => other !== member) ?? [];
    if (others.length > 0) this.#members.set(clusterNodeId, others);
    else this.#members.delete(clusterNodeId);
    this.#publish(clusterNodeId);
    this.#reads.end(path);
  }

  /** Updates what is known of one id from its znodes. */
  #publish(clusterNodeId: number): void {
    let assignment: Assignment | undefined;
    let unreadable: UnreadableNode | undefined;
    for (const { path, told } of this.#members.get(clusterNodeId) ?? []) {
      if (told.status === 'assigned' && !(assignment && assignment.version >= told.assignment.version)) assignment = told.assignment;
      if (told.status !== 'unreadable') continue;
      const known = this.#unreadable.get(clusterNodeId);
      unreadable = known?.path === path && known.problem === told.problem ? known : { path, problem: told.problem };
      this.#report(path, told.problem);
    }
    if (assignment !== undefined) unreadable = undefined;
    if (this.#nodes.get(clusterNodeId) === assignment && this.#unreadable.get(clusterNodeId) === unreadable) return;
    this.#nodes.delete(clusterNodeId);
    this.#unreadable.delete(clusterNodeId);
    if (assignment !== undefined) this.#nodes.set(clusterNodeId, assignment);
    else if (unreadable !== undefined) this.#unreadable.set(clusterNodeId, unreadable);
    this.#changed.add(clusterNodeId);
    this.#tellSoon();
  }

  /** Tells once of all changes in one packet of the server. */
  #tellSoon(): void {
    if (this.#telling || !this.#reads.whole) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      this.#tell();
    });
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

  #report(path: string, problem: string): undefined {
    if (this.#reported.has(path) || this.#reported.size >= MAX_REPORTS) return;
    this.#reported.add(path);
    this.options.onUnreadable?.(path, problem);
  }
}

/** What a znode tells of a cluster node id; the same object as `before` if it has not changed. Never throws. */
function readNodeZnode(clusterNodeId: number, znode: Znode | undefined, before: NodeZnode): NodeZnode {
  if (znode === undefined) return { status: 'absent' };
  const { data } = znode;
  if ((before.status === 'assigned' || before.status === 'unreadable') && before.data?.equals(data)) return before;
  const assignment = decodeAssignment(data) ?? claimOf(znode);
  if (assignment === undefined) return { status: 'unreadable', data, problem: 'does not tell task, node id and version' };
  const nodeId = nodeIdOf(clusterNodeId);
  if (assignment.nodeId === nodeId) return { status: 'assigned', data, assignment };
  return { status: 'unreadable', data, problem: `stands for node id ${nodeId}, but tells of ${assignment.nodeId}` };
}

/** A task that allocates an id by creating this znode writes its version, the number of that transaction, a moment later. */
function claimOf({ data, stat }: Znode): Assignment | undefined {
  const version = Number(stat.createdZxid);
  const claim = decodeAssignment(data, version);
  return claim !== undefined && typeof claim.nonce === 'string' ? claim : undefined;
}
