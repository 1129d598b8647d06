import { checkArguments, checked, whole } from '../../core/base/arguments.js';
import { CLUSTER_NODE_ID_OFFSET, nodeIdOf } from '../../core/id/cluster-node-id.js';
import { type Followed, FollowedZnodes, type ViewContext } from '../client/children-view.js';
import type { Znode } from '../client/zookeeper.js';
import { type OnUnreadable, UnreadableReports } from '../services/instance/instance-codec.js';
import { type Assignment, decodeAssignment, NODES_PATH, parseHexPair } from './layout.js';

/** Options of {@link NodeWatcher}. */
export interface NodeWatcherOptions extends ViewContext {
  /**
   * Called with each unreadable znode among the nodes, once while its problem is the same, with the rest of
   * the sentence "<path> …"; for 1,000 at most. Must not throw and must not block.
   */
  readonly onUnreadable?: OnUnreadable | undefined;
}

/** A cluster node id that is taken by a znode which does not say by whom. */
export interface UnreadableNode {
  readonly path: string;
  readonly problem: string;
}

/** The content of a znode among the nodes. */
interface Seen {
  /** The data that it was read from: a write that changes nothing is no news. */
  readonly data?: Buffer;
  readonly assignment?: Assignment | undefined;
  readonly unreadable?: UnreadableNode;
}

/**
 * The nodes in the discovery tree, and their holders. It follows the tree until it is closed, across
 * sessions, too.
 *
 * The tree mirrors the leases and decides nothing. Not guaranteed: that each change is seen, only that the
 * last one is.
 *
 * `onChange` passes the cluster node ids whose nodes have come, changed or gone since the last call.
 */
export class NodeWatcher extends FollowedZnodes<Seen, ReadonlySet<number>> {
  readonly #nodes = new Map<number, Assignment>();
  readonly #unreadable = new Map<number, UnreadableNode>();
  /** There are several znodes of one id only if its hex digits are written in upper and lower case. */
  readonly #seen = new Map<number, readonly Seen[]>();
  readonly #reports: UnreadableReports;
  #changed = new Set<number>();
  #hasReported = false;

  constructor(options: NodeWatcherOptions) {
    const { zookeeper, clock, onUnreadable } = checked(options);
    checkArguments({ zookeeper, clock });
    super({
      zookeeper,
      clock,
      path: NODES_PATH,
      follow: (path, depth) => this.#followed(path, depth),
      decode: (path, znode, before) => (before?.data?.equals(znode.data) ? before : this.#read(path, znode)),
      unreadable: (path, problem) => this.#unread(path, problem),
      onValue: (path, seen, before) => this.#update(path, seen, before),
      onChange: () => this.#report(),
    });
    this.#reports = new UnreadableReports(onUnreadable);
    this.view.start();
  }

  /**
   * Cluster node id → its assignment, further fields included, in no particular order. It changes with the
   * tree: copy it to keep it.
   */
  get nodes(): ReadonlyMap<number, Assignment> {
    return this.#nodes;
  }

  /** The cluster node ids that are taken by znodes which do not name task, node id and version. */
  get unreadable(): ReadonlyMap<number, UnreadableNode> {
    return this.#unreadable;
  }

  /** Whether a znode was seen at a cluster node id, readable or not. */
  isTaken(clusterNodeId: number): boolean {
    checkArguments({ clusterNodeId }, { clusterNodeId: whole(0) });
    return this.#seen.has(clusterNodeId);
  }

  /** Node id → version, of every readable node: a lease publishes it as its `knownNodesMapping`. */
  knownVersions(): Record<number, number> {
    const versions: Record<number, number> = {};
    for (const { nodeId, version } of this.#nodes.values()) versions[nodeId] = version;
    return versions;
  }

  #followed(path: string, depth: number): Followed | undefined {
    if (depth === 0) return 'children';
    if (depth === 1 && parseHexPair(path.slice(NODES_PATH.length + 1)) !== undefined) return 'children';
    const clusterNodeId = clusterNodeIdAt(path);
    if (clusterNodeId === undefined)
      this.#unread(path, `is not the name of a ${depth === 1 ? 'group' : 'node'}, two hex digits`);
    // Lower ids are reserved for nodes without a lease.
    return (clusterNodeId ?? 0) < CLUSTER_NODE_ID_OFFSET ? undefined : 'data';
  }

  /** Never throws. */
  #read(path: string, { data, stat }: Znode): Seen {
    const nodeId = nodeIdOf(clusterNodeIdAt(path) as number);
    const assignment = decodeAssignment(data) ?? claimOf({ data, stat });
    if (assignment?.nodeId === nodeId) return { data, assignment };
    const problem =
      assignment === undefined
        ? 'does not tell task, node id and version'
        : `stands for node id ${nodeId}, but names ${assignment.nodeId}`;
    return { data, ...this.#unread(path, problem) };
  }

  #unread(path: string, problem: string): Seen {
    this.#reports.report(path, problem);
    return { unreadable: { path, problem } };
  }

  /** Updates the state of one id from its znodes. */
  #update(path: string, seen: Seen | undefined, before: Seen | undefined) {
    const clusterNodeId = clusterNodeIdAt(path);
    if (clusterNodeId === undefined) return;
    const others = this.#seen.get(clusterNodeId)?.filter((each) => each !== before) ?? [];
    const all = seen === undefined ? others : [...others, seen];
    put(this.#seen, clusterNodeId, all.length === 0 ? undefined : all);
    const [assignment] = all.flatMap((each) => each.assignment ?? []).sort((a, b) => b.version - a.version);
    const [unreadable] = assignment === undefined ? all.flatMap((each) => each.unreadable ?? []) : [];
    if (this.#nodes.get(clusterNodeId) === assignment && this.#unreadable.get(clusterNodeId) === unreadable)
      return;
    put(this.#nodes, clusterNodeId, assignment);
    put(this.#unreadable, clusterNodeId, unreadable);
    this.#changed.add(clusterNodeId);
  }

  #report() {
    const changed = this.#changed;
    if (changed.size === 0 && this.#hasReported) return;
    this.#hasReported = true;
    this.#changed = new Set();
    this.notify(changed);
  }
}

/** Undefined for the path of a group. */
function clusterNodeIdAt(path: string): number | undefined {
  const [group, index] = path
    .slice(NODES_PATH.length + 1)
    .split('/')
    .map(parseHexPair);
  return group === undefined || index === undefined ? undefined : (group << 8) | index;
}

/**
 * A task that allocates an id by creating this znode writes its version, the number of that transaction, a
 * moment later.
 */
export function claimOf({ data, stat }: Znode): Assignment | undefined {
  const version = Number(stat.createdZxid);
  const claim = decodeAssignment(data, version);
  return claim !== undefined && typeof claim.nonce === 'string' ? claim : undefined;
}

/** Sets a value, or deletes it where there is none. */
function put<K, V>(map: Map<K, V>, key: K, value: V | undefined) {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
