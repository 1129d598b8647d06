import { clusterNodeIdOf } from '../../src/core/id/cluster-node-id.js';
import type { EntryReport, TreeReport } from '../../src/node/wire/cluster-snapshot.js';
import type { NodeReport } from '../../src/node/wire/status-report.js';

/**
 * The discovery tree as it would be with these nodes, all of which offer `orders`, and some `billing`, and
 * which contend for one lock.
 */
export function scriptedTree(nodes: readonly NodeReport[]): TreeReport {
  const held = nodes.filter(({ state }) => state === 'held');
  const entry = ({ id, version, taskId }: NodeReport, path: string): EntryReport => ({
    path,
    nodeId: id,
    version,
    taskId,
    service: 'orders',
    address: `10.0.${id >> 8}.${id & 0xff}`,
    port: 8080,
    sessionId: '100000000000000a',
    data: null,
    problem: null,
  });
  const contender = ({ id, taskId }: NodeReport) => ({
    data: taskId ?? '',
    sessionId: null,
    token: `${4_711 + id}`,
    since: Date.now() - 90_000,
  });
  return {
    zookeeper: 'zk-1:2181,zk-2:2181,zk-3:2181/prod',
    path: '/discovery',
    exists: true,
    nodes: held.map((node) => ({
      clusterNodeId: clusterNodeIdOf(node.id),
      ...entry(node, `/discovery/nodes/${node.id}`),
    })),
    services: [
      {
        service: 'billing',
        nodes: held.slice(0, 1).map((node) => entry(node, `/discovery/servicetypes/billing/${node.id}`)),
      },
      {
        service: 'orders',
        nodes: held.map((node) => entry(node, `/discovery/servicetypes/orders/${node.id}`)),
      },
    ],
    endpoints: [
      {
        endpoint: 'orders-http',
        keys: [
          {
            key: '_',
            refs: held.map((node) => ({
              ref: `orders:${node.id}`,
              ...entry(node, `/discovery/endpoints/orders-http/_/${node.id}`),
            })),
          },
        ],
      },
    ],
    foreign: [],
    locks: [
      {
        path: '/locks/report',
        kind: 'lock',
        holders: held.slice(0, 1).map(contender),
        waiting: held.slice(1, 3).map(contender),
      },
    ],
  };
}
