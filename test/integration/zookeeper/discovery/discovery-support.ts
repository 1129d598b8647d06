import { createClient } from 'node-zookeeper-client';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { encodeAssignment } from '../../../../src/zookeeper/discovery/layout.js';

const clients: ZooKeeperClient[] = [];

/** A client of this test's own, closed by {@link closeClients}. */
export function client(
  connect: string,
  options: { readonly auth?: string; readonly sessionTimeoutMs?: number } = {},
): ZooKeeperClient {
  const opened = openZooKeeper({ connect, clock: systemClock, random: systemRandom, ...options });
  clients.push(opened);
  return opened;
}

/** For `afterEach`. */
export async function closeClients(): Promise<void> {
  await Promise.all(clients.splice(0).map((each) => each.close()));
}

/** What a node with this id would announce. */
export function data(nodeId: number, version: number, more: Readonly<Record<string, unknown>> = {}): string {
  return encodeAssignment({ taskId: `task-${nodeId}`, nodeId, version, ...more });
}

/** The whole tree from a path on the servers downwards: paths, and for ephemeral ones their sessions. */
export async function wholeTree(zookeeper: ZooKeeperClient, path: string): Promise<string[]> {
  const names = await zookeeper.children(path);
  if (names === undefined) return [];
  const below = await Promise.all(names.map((name) => wholeTree(zookeeper, `${path}/${name}`)));
  return [path, ...below.flat()].sort();
}

/** The rights of ZooKeeper's access control lists. */
export const RIGHTS = { read: 1, write: 2, create: 4, delete: 8, admin: 16 } as const;

/** Lets all clients do these things with a znode, and nothing else, from now on. */
export async function restrict(
  connect: string,
  path: string,
  rights: readonly (keyof typeof RIGHTS)[],
): Promise<void> {
  const { ACL, Id } = await import('node-zookeeper-client');
  const library = createClient(connect, { sessionTimeout: 10_000, spinDelay: 50, retries: 0 });
  await new Promise<void>((resolve) => {
    library.once('connected', resolve);
    library.connect();
  });
  const permissions = rights.reduce((sum, right) => sum | RIGHTS[right], 0);
  const list = [new ACL(permissions, new Id('world', 'anyone'))];
  await new Promise<void>((resolve, reject) =>
    library.setACL(path, list, -1, (error) => (error ? reject(error) : resolve())),
  );
  library.close();
}
