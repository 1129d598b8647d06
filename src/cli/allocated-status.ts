import { readTenure } from '../discovery/allocation/evict-allocated.js';
import type { Assignment } from '../discovery/assignment.js';
import { NODES_PATH, parseHexPair } from '../discovery/tree-paths.js';
import { widthOfGroup } from '../id/cluster-node-id.js';
import type { NodeStatus } from '../lease/inspect.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { type DiscoveryEntry, readDiscovery } from './discovery-snapshot.js';

/** The node ids from ZooKeeper alone, as a look at the tree tells. */
export interface AllocatedStatus {
  /** The groups of 256 ids whose znodes exist, in ascending order; undefined while there is no tree for them. */
  readonly groups: readonly number[] | undefined;
  /** How many bits of a unique id a node id takes, by these groups. */
  readonly idWidth: number;
  /** The ids that stand in the tree, in ascending order. What a store would tell and ZooKeeper does not, age and expiry, is undefined. */
  readonly nodes: readonly NodeStatus[];
}

/**
 * Reads who holds which node id. Changes nothing.
 *
 * Not guaranteed: one instant for all; the znodes are read one after the other.
 *
 * @throws {ZooKeeperError} when there is no answer, or a group may not be read
 */
export async function inspectAllocated(zookeeper: ZooKeeper, signal?: AbortSignal): Promise<AllocatedStatus> {
  const names = await zookeeper.children(NODES_PATH, { signal });
  const groups = names
    ?.map(parseHexPair)
    .filter((group) => group !== undefined)
    .sort((a, b) => a - b);
  const snapshot = names && (await readDiscovery(zookeeper, NODES_PATH, signal));
  const nodes = snapshot?.entries.flatMap((entry) => (entry.place.kind === 'node' ? [nodeStatus(entry.place.nodeId, entry)] : [])) ?? [];
  return { groups, idWidth: widthOfGroup(groups?.at(-1) ?? 0), nodes: nodes.sort((a, b) => a.id - b.id) };
}

function nodeStatus(id: number, entry: DiscoveryEntry): NodeStatus {
  const { path, assignment, text, createdZxid, sessionId } = entry;
  const untold = { age: undefined, durationMs: undefined, timestamp: undefined, knownNodes: {}, idWidth: undefined };
  const tenure = text === undefined ? undefined : readTenure(text);
  // The number of the transaction is the fencing token, also in the first instant of a tenure, when the data does not say so yet.
  const version = tenure === undefined ? (assignment?.version ?? 0) : Number(createdZxid ?? 0);
  const facts = { ...untold, id, version, taskId: tenure?.taskId ?? assignment?.taskId };
  if (createdZxid !== undefined && sessionId === undefined) {
    return { ...facts, state: 'unreadable', problem: `persistent: goes with no session, remove ${path} by hand` };
  }
  if (tenure === undefined && assignment === undefined) return { ...facts, state: 'unreadable', problem: entry.problem };
  const wrongNode = assignment === undefined ? undefined : entry.problem;
  const state = tenure?.state ?? 'held';
  return { ...facts, state, idWidth: state === 'held' ? widthIn(assignment) : undefined, problem: wrongNode };
}

function widthIn(assignment: Assignment | undefined): number | undefined {
  const idWidth = assignment?.idWidth;
  return typeof idWidth === 'number' && Number.isInteger(idWidth) && idWidth > 0 ? idWidth : undefined;
}
