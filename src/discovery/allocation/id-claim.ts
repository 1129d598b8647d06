import type { Clock } from '../../clock.js';
import { groupOf, indexOf, nodeIdOf, widthOfGroup } from '../../id/cluster-node-id.js';
import type { Znode } from '../../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { encodeAssignment } from '../assignment.js';
import { groupPath, hexPair } from '../tree-paths.js';
import type { BoundCall, BoundSession } from './bound-session.js';
import { SessionProof } from './session-proof.js';

/** Who a znode of ours says that it is of. */
export interface Claimer {
  readonly taskId: string;
  /** Tells our znodes from those of anybody else, of earlier tenures of the same task too. */
  readonly nonce: string;
  /** Further fields of the znode's JSON. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A node id that is held by an ephemeral znode. */
export interface IdTenure {
  /** The leased one, 0 … 65527: the cluster node id less 8. */
  readonly nodeId: number;
  readonly path: string;
  /** The transaction that made the znode, as the fencing token. */
  readonly version: number;
  /** How many bits of a unique id a node id takes, as the znode tells the others. */
  readonly idWidth: number;
  /** The last millisecond, by the leader's clock, that others may have made ids in with fewer bits than this id needs; 0 for none. */
  readonly floor: number;
  readonly claimer: Claimer;
  readonly session: BoundSession;
  /** Until when the session lives. */
  readonly proof: SessionProof;
}

/** Where the znode of a cluster node id stands. */
export function claimPath(clusterNodeId: number): string {
  return `${groupPath(groupOf(clusterNodeId))}/${hexPair(indexOf(clusterNodeId))}`;
}

/** What the znode is made with. The version is not known before the znode exists, and is written into it right after. */
export function claimData({ taskId, nonce, fields }: Claimer, clusterNodeId: number): string {
  return JSON.stringify({ ...fields, taskId, nodeId: nodeIdOf(clusterNodeId), version: undefined, nonce });
}

/** What stands in the znode during the tenure. */
export function tenureData({ nodeId, version, claimer }: Pick<IdTenure, 'nodeId' | 'version' | 'claimer'>, idWidth: number): string {
  const { taskId, nonce, fields } = claimer;
  return encodeAssignment({ ...fields, taskId, nodeId, version, idWidth, nonce });
}

/** Whether a znode was made in this session by this claimer, and still says so. */
export function isOurs(znode: Znode, sessionId: string, nonce: string): boolean {
  if (znode.stat.owner !== sessionId) return false;
  try {
    return (JSON.parse(znode.data.toString('utf8')) as { nonce?: unknown } | null)?.nonce === nonce;
  } catch {
    return false;
  }
}

/** Removes a znode of ours, and nobody else's. Does nothing where there is none. */
export async function removeOurs(session: BoundSession, path: string, nonce: string, call?: BoundCall): Promise<void> {
  const znode = await session.read(path, call);
  if (znode !== undefined && isOurs(znode, session.sessionId, nonce)) await session.remove(path, znode.stat.version, call);
}

/**
 * The fencing token of a znode: ZooKeeper numbers its transactions over the whole ensemble, so a znode that is made later has a higher one.
 *
 * Not guaranteed: across an ensemble that was set up anew, which begins to count again.
 *
 * @throws {ZooKeeperError} `refused` where the number is beyond 2^53 - 1, after some two million elections of a leader
 */
export function versionOf(path: string, { stat: { createdZxid } }: Znode): number {
  const version = Number(createdZxid);
  if (Number.isSafeInteger(version)) return version;
  throw new ZooKeeperError(`${path}: the transaction id ${createdZxid} is too large for a version (at most ${Number.MAX_SAFE_INTEGER})`, {
    fault: 'refused',
    outcome: 'not-applied',
    path,
  });
}

/** What it takes to make a tenure of a znode that was claimed. */
export interface TenureStart {
  readonly session: BoundSession;
  readonly claimer: Claimer;
  readonly clock: Clock;
  readonly clusterNodeId: number;
  readonly idWidth: number;
  readonly floor: number;
  readonly znode: Znode;
  /** When the claim was sent, and when it was found to stand. */
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly timeoutMs: number;
}

/** @throws {ZooKeeperError} as {@link versionOf} */
export function tenureOf({ clusterNodeId, znode, sentAt, answeredAt, timeoutMs, ...start }: TenureStart): IdTenure {
  const { session, claimer, idWidth, floor } = start;
  const path = claimPath(clusterNodeId);
  const proof = new SessionProof(timeoutMs);
  proof.answered(sentAt, answeredAt);
  return { nodeId: nodeIdOf(clusterNodeId), path, version: versionOf(path, znode), idWidth, floor, claimer, session, proof };
}

/** The least width with which all ids of the groups up to this one, and this id, can be told apart. */
export function widthFor(clusterNodeId: number, highestGroup: number): number {
  return widthOfGroup(Math.max(highestGroup, groupOf(clusterNodeId)));
}
