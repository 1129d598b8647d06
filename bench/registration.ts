import { systemClock, systemRandom } from '../src/core/base/system.js';
import { staticLease } from '../src/core/lease/hold/static-lease.js';
import type { ZooKeeper } from '../src/zookeeper/client/zookeeper.js';
import { openZooKeeper } from '../src/zookeeper/client/zookeeper-client.js';
import { Discovery } from '../src/zookeeper/discovery/discovery.js';
import { DiscoveryTree } from '../src/zookeeper/discovery/discovery-tree.js';
import { PlainClient } from './plain-client.js';
import { nodeData, nodePath } from './registered-nodes.js';

const NODE_ID = 0;
const SERVICE = 'orders';
const ENDPOINTS = ['place', 'cancel'];
const WITHIN_MS = 5_000;

/**
 * The znodes of the node, its service, the service's instance for Curator's readers, and its two endpoints.
 */
export const ANNOUNCED_PATHS: readonly string[] = [
  nodePath(NODE_ID),
  `/services/${SERVICE}/task-bench`,
  `/discovery/servicetypes/${SERVICE}/${NODE_ID}`,
  ...ENDPOINTS.map((endpoint) => `/discovery/endpoints/${endpoint}/_/${SERVICE}:${NODE_ID}`),
];

/** How long it took, in milliseconds, counted from a session that stands and from nothing. */
export interface RegistrationTimes {
  readonly connectedMs: number;
  readonly wholeMs: number;
}

/** Registers the node with one bare request, and removes it again. */
export async function registerPlainly(client: PlainClient): Promise<number> {
  const begun = performance.now();
  await client.create(nodePath(NODE_ID), nodeData(NODE_ID, 1));
  const tookMs = performance.now() - begun;
  await client.remove(nodePath(NODE_ID));
  return tookMs;
}

/**
 * Announces the node in a new tree of a session that stands, until that is synced, and withdraws it again.
 */
export async function registerInTree(zookeeper: ZooKeeper): Promise<number> {
  const lease = staticLease({ id: NODE_ID, taskId: 'task-bench' });
  const begun = performance.now();
  const tree = new DiscoveryTree({ zookeeper, lease, clock: systemClock, random: systemRandom });
  const synced = new Promise<void>((resolve) => {
    tree.onState(({ status }) => {
      if (status === 'synced') resolve();
    });
  });
  tree.register({ kind: 'node' }, { service: SERVICE, address: '10.0.0.0', port: 8080 });
  await synced;
  const tookMs = performance.now() - begun;
  if (!(await tree.withdraw(WITHIN_MS))) throw new Error('the node could not be withdrawn');
  return tookMs;
}

/** A new session, and all of these znodes at a time, by the baseline. */
export async function announcePlainly(connect: string): Promise<RegistrationTimes> {
  const begun = performance.now();
  const client = await PlainClient.open(connect);
  const connected = performance.now();
  await Promise.all(ANNOUNCED_PATHS.map((path) => client.create(path, nodeData(NODE_ID, 1))));
  const announced = performance.now();
  await client.close();
  return { connectedMs: announced - connected, wholeMs: announced - begun };
}

/** A new session, and a discovery in it until everything is announced; it also begins to watch the tree. */
export async function announceByDiscovery(connect: string): Promise<RegistrationTimes> {
  const begun = performance.now();
  const zookeeper = openZooKeeper({ connect, clock: systemClock, random: systemRandom });
  await zookeeper.whenConnected();
  const connected = performance.now();
  const discovery = new Discovery({
    zookeeper,
    lease: staticLease({ id: NODE_ID, taskId: 'task-bench' }),
    origin: 'static',
    announcement: {
      service: SERVICE,
      ...{ address: '10.0.0.0', port: 8080 },
      endpoints: ENDPOINTS.map((endpoint) => ({ endpoint })),
    },
    announcesNode: true,
    leases: undefined,
    readyTimeoutMs: WITHIN_MS,
    clock: systemClock,
    random: systemRandom,
  });
  await discovery.synced(WITHIN_MS);
  const announced = performance.now();
  await discovery.close();
  return { connectedMs: announced - connected, wholeMs: announced - begun };
}
