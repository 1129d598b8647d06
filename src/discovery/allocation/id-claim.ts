import { groupOf, indexOf, nodeIdOf } from '../../id/cluster-node-id.js';
import type { CallOptions, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { encodeAssignment } from '../assignment.js';
import { groupPath, hexPair } from '../tree-paths.js';
import type { SessionDeadline } from './session-deadline.js';

// The claim of a node id, `nodes/<GG>/<II>`: an ephemeral znode, so that no two tasks hold one node id (mutual exclusion), and its JSON, which says who
// holds the id. The transaction that made it is the fencing token.

/** A client in one session: every call fails as `session-expired` in any other one, so that nothing decided in one session is done in the next. */
export class BoundSession {
  /** The calls so far; one that makes parents counts as one. */
  requests = 0;

  constructor(
    private readonly zookeeper: ZooKeeper,
    readonly sessionId: string,
  ) {}

  readonly createWithParents: ZooKeeper['createWithParents'] = (path, data, mode, call) =>
    this.zookeeper.createWithParents(path, data, mode, this.#bound(call));
  readonly ensurePath: ZooKeeper['ensurePath'] = (path, call) => this.zookeeper.ensurePath(path, this.#bound(call));
  readonly read: ZooKeeper['read'] = (path, call) => this.zookeeper.read(path, this.#bound(call));
  readonly children: ZooKeeper['children'] = (path, call) => this.zookeeper.children(path, this.#bound(call));
  readonly setData: ZooKeeper['setData'] = (path, data, version, call) => this.zookeeper.setData(path, data, version, this.#bound(call));
  readonly remove: ZooKeeper['remove'] = (path, version, call) => this.zookeeper.remove(path, version, this.#bound(call));
  readonly multi: ZooKeeper['multi'] = (operations, call) => this.zookeeper.multi(operations, this.#bound(call));

  #bound(call: CallOptions | undefined): CallOptions {
    this.requests += 1;
    return { ...call, sessionId: this.sessionId };
  }
}

/** What a claim says of the task that made it. */
export interface Claimer {
  readonly taskId: string;
  /** Tells the claims of a tenure from those of all others, of earlier tenures of the same task too. */
  readonly nonce: string;
  /** Further fields of the znode's JSON. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A node id that is held by an ephemeral znode. */
export interface IdTenure {
  /** The leased one, 0 … 65527: the cluster node id less 8. */
  readonly nodeId: number;
  readonly path: string;
  /** The fencing token. */
  readonly version: number;
  /** How many bits of a unique id a node id takes, as the znode tells the others. */
  readonly idWidth: number;
  /** The last millisecond, by the leader's clock, in which others may have made ids with fewer bits than this id needs; 0 for none. */
  readonly floor: number;
  readonly claimer: Claimer;
  readonly session: BoundSession;
  /** Until when the session certainly lives. */
  readonly deadline: SessionDeadline;
}

/** Where the claim of a cluster node id stands. */
export function claimPath(clusterNodeId: number): string {
  return `${groupPath(groupOf(clusterNodeId))}/${hexPair(indexOf(clusterNodeId))}`;
}

/** What the claim is made with. The version is not known before the znode exists, and is written into it right after. */
export function claimData({ taskId, nonce, fields }: Claimer, clusterNodeId: number): string {
  return JSON.stringify({ ...fields, taskId, nodeId: nodeIdOf(clusterNodeId), version: undefined, nonce });
}

/** What the claim says during the tenure. */
export function tenureData({ nodeId, version, claimer: { taskId, nonce, fields } }: IdTenure, idWidth: number): string {
  return encodeAssignment({ ...fields, taskId, nodeId, version, idWidth, nonce });
}

/** Whether a claim was made in this session by this claimer, and still says so. */
export function isOurs({ stat, data }: Znode, sessionId: string, nonce: string): boolean {
  return stat.owner === sessionId && fieldsOf(data).nonce === nonce;
}

/**
 * The fencing token of a claim: ZooKeeper numbers its transactions over the whole ensemble, so a znode that is made later has a higher one.
 *
 * Not guaranteed: across an ensemble that was set up anew, which begins to count again.
 *
 * @throws {ZooKeeperError} `refused` where the number is beyond 2^53 - 1, after some two million elections of a leader
 */
export function versionOf(path: string, createdZxid: bigint): number {
  const version = Number(createdZxid);
  if (Number.isSafeInteger(version)) return version;
  const message = `${path}: the transaction id ${createdZxid} is too large for a version (at most ${Number.MAX_SAFE_INTEGER})`;
  throw new ZooKeeperError(message, { fault: 'refused', outcome: 'not-applied', path });
}

/** The fields of a znode's JSON object; none for anything else. Never throws. */
export function fieldsOf(data: Buffer | string): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(data.toString());
    return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
