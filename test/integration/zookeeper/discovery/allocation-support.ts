import { expect, inject } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { TenureTime } from '../../../../src/core/lease/hold/tenure-time.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import { openZooKeeper, type ZooKeeperClient } from '../../../../src/zookeeper/client/index.js';
import { acquireFromZooKeeper } from '../../../../src/zookeeper/discovery/allocation/acquire-from-zookeeper.js';
import { killAll } from '../../../support/processes.js';

/** A lease whose time window is always known. */
type Held = Lease & { readonly tenureTime: TenureTime };

/** The clients of a test, the oldest first. */
export const clients: ZooKeeperClient[] = [];
const leases: Lease[] = [];
const ends: (() => Promise<unknown>)[] = [];
const failures: unknown[] = [];
process.on('unhandledRejection', (error) => failures.push(error));

/** A session of its own, closed by {@link endAll}. */
export function openSession(
  chroot: string,
  sessionTimeoutMs: number,
  connect = inject('zookeeper').connect,
): ZooKeeperClient {
  const client = openZooKeeper({
    connect: `${connect}${chroot}`,
    sessionTimeoutMs,
    clock: systemClock,
    random: systemRandom,
  });
  clients.push(client);
  return client;
}

/** A node id, released by {@link endAll}. */
export async function acquire(
  zookeeper: ZooKeeperClient,
  own: Partial<Parameters<typeof acquireFromZooKeeper>[0]> = {},
): Promise<Held> {
  const lease = await acquireFromZooKeeper({
    zookeeper,
    clock: systemClock,
    random: systemRandom,
    taskId: 'task',
    ...own,
  });
  leases.push(lease);
  return lease as Held;
}

/** Has {@link endAll} do this, too, after the clients are closed; the last first. */
export function atEnd(end: () => Promise<unknown>): void {
  ends.push(end);
}

/** For `afterEach`. Fails where a promise was rejected that no code awaited. */
export async function endAll(): Promise<void> {
  await killAll();
  await Promise.all(leases.splice(0).map((lease) => lease.release()));
  await Promise.all(clients.splice(0).map((client) => client.close()));
  for (const end of ends.splice(0).reverse()) await end();
  expect(failures.splice(0)).toEqual([]);
}
