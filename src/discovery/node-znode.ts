import { nodeIdOf } from '../id/cluster-node-id.js';
import type { Znode } from '../zookeeper/zookeeper.js';
import { type Assignment, decodeAssignment } from './assignment.js';

/** What is known of a znode among the nodes. Its data are kept, so that a write which changes nothing is no news. */
export type NodeZnode =
  /** It is listed, and has not been read yet. */
  | { readonly status: 'unread' }
  | { readonly status: 'absent' }
  | { readonly status: 'assigned'; readonly data: Buffer; readonly assignment: Assignment }
  /** It stands there and does not tell by whom; `problem` is the rest of the sentence "<path> …". */
  | { readonly status: 'unreadable'; readonly data: Buffer | undefined; readonly problem: string };

/** What a znode tells of a cluster node id, or the very object that was known `before` where that has not changed. Never throws. */
export function readNodeZnode(clusterNodeId: number, znode: Znode | undefined, before: NodeZnode): NodeZnode {
  if (znode === undefined) return { status: 'absent' };
  const { data } = znode;
  if ((before.status === 'assigned' || before.status === 'unreadable') && before.data?.equals(data)) return before;
  const assignment = decodeAssignment(data) ?? claimOf(znode);
  if (assignment === undefined) return { status: 'unreadable', data, problem: 'does not tell task, node id and version' };
  const nodeId = nodeIdOf(clusterNodeId);
  if (assignment.nodeId === nodeId) return { status: 'assigned', data, assignment };
  return { status: 'unreadable', data, problem: `stands for node id ${nodeId}, but tells of ${assignment.nodeId}` };
}

/** Who has allocated the id by making this very znode writes the version, which is its transaction's number, a moment later. */
function claimOf({ data, stat }: Znode): Assignment | undefined {
  const version = Number(stat.createdZxid);
  const claim = decodeAssignment(data, version);
  return claim !== undefined && typeof claim.nonce === 'string' ? claim : undefined;
}
