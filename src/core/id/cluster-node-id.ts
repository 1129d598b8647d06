import { ConfigError } from '../base/errors.js';

/** Cluster node ids 0 … 7 are reserved for ids that are given by hand; leased node ids begin above them. */
export const CLUSTER_NODE_ID_OFFSET = 8;

/** The highest cluster node id: 16 bits. */
export const MAX_CLUSTER_NODE_ID = 0xffff;
const MAX_NODE_ID = MAX_CLUSTER_NODE_ID - CLUSTER_NODE_ID_OFFSET;

/** The bits of a cluster node id below its group. */
const INDEX_BITS = 8;
const MAX_GROUP = MAX_CLUSTER_NODE_ID >> INDEX_BITS;

/**
 * The cluster node id, 8 … 65535, of a leased node id, 0 … 65527: the form in unique ids and in the discovery
 * tree.
 *
 * @throws {ConfigError} when the node id is no whole number, or out of range
 */
export function clusterNodeIdOf(nodeId: number): number {
  checkWhole('node id', nodeId, 0, MAX_NODE_ID, ` (cluster node ids end at ${MAX_CLUSTER_NODE_ID})`);
  return nodeId + CLUSTER_NODE_ID_OFFSET;
}

/**
 * The leased node id, 0 … 65527, of a cluster node id, 8 … 65535.
 *
 * @throws {ConfigError} when it is out of range, the reserved ids included
 */
export function nodeIdOf(clusterNodeId: number): number {
  checkWhole(
    'cluster node id',
    clusterNodeId,
    CLUSTER_NODE_ID_OFFSET,
    MAX_CLUSTER_NODE_ID,
    ' (lower ones are reserved)',
  );
  return clusterNodeId - CLUSTER_NODE_ID_OFFSET;
}

/** The group of a cluster node id, 0 … 255: its upper 8 bits. */
export function groupOf(clusterNodeId: number): number {
  return clusterNodeId >> INDEX_BITS;
}

/** The index of a cluster node id within its group, 0 … 255: its lower 8 bits. */
export function indexOf(clusterNodeId: number): number {
  return clusterNodeId & ((1 << INDEX_BITS) - 1);
}

/**
 * Number of bits that the cluster node ids of all groups up to this one take in a unique id. It is 8 for
 * group 0, one more for every doubling, and 16 from group 128 on.
 *
 * @param highestGroup 0 … 255
 * @throws {ConfigError} when it is out of range
 */
export function widthOfGroup(highestGroup: number): number {
  checkWhole('group', highestGroup, 0, MAX_GROUP);
  // 32 minus the leading zeros: the bits of the number itself, none for group 0.
  return INDEX_BITS + (32 - Math.clz32(highestGroup));
}

/**
 * @param why the rest of the sentence "expected a whole number from … to …"
 * @throws {ConfigError} when it is no whole number, or out of range
 */
export function checkWhole(label: string, value: number, min: number, max: number, why = ''): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new ConfigError(label, value, `a whole number from ${min} to ${max}${why}`);
}
