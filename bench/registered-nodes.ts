import { clusterNodeIdOf, groupOf } from '../src/core/id/cluster-node-id.js';
import type { ZooKeeper } from '../src/zookeeper/client/zookeeper.js';
import { encodeAssignment, entryPath, groupPath } from '../src/zookeeper/discovery/layout.js';

const AT_ONCE = 200;

/** Where the node with an id stands. */
export function nodePath(nodeId: number): string {
  return entryPath({ kind: 'node' }, nodeId);
}

/** What it announces there: about as much as a real one. */
export function nodeData(nodeId: number, version: number): string {
  return encodeAssignment({
    ...{ taskId: `task-${nodeId}-5f3a9c2e71b04d68`, nodeId, version },
    ...{ service: 'orders', address: `10.0.${nodeId >> 8}.${nodeId & 0xff}`, port: 8080 },
  });
}

/** Puts the nodes with the ids `from` to `to - 1` into the tree. */
export async function registerNodes(zookeeper: ZooKeeper, from: number, to: number): Promise<void> {
  for (let group = groupOf(clusterNodeIdOf(from)); group <= groupOf(clusterNodeIdOf(to - 1)); group += 1)
    await zookeeper.ensurePath(groupPath(group));
  for (let first = from; first < to; first += AT_ONCE) {
    const ids = Array.from({ length: Math.min(AT_ONCE, to - first) }, (_, i) => first + i);
    await Promise.all(ids.map((id) => zookeeper.create(nodePath(id), nodeData(id, 1), 'ephemeral')));
  }
}
