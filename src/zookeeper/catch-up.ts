import type { CallOptions, ZooKeeper } from './zookeeper.js';
import { ignoring } from './zookeeper-error.js';

/**
 * Brings the server up to date with every write made before: after a change of servers it may lag behind.
 * Afterwards a write that was sent over a lost connection is visible, or will never be applied.
 */
export async function catchUp(
  session: Pick<ZooKeeper, 'multi'>,
  path: string,
  call: CallOptions,
): Promise<void> {
  // A transaction goes through the leader, even one that only checks.
  await session.multi([{ type: 'check', path }], call).catch(ignoring('no-node'));
}
