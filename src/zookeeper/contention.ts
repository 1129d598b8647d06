import type { CallOptions, Znode, ZooKeeper } from './zookeeper.js';
import { isFault, ZooKeeperError } from './zookeeper-error.js';

// Writes to znodes that others may write to as well.

/** How often a write is tried against others' changes before it counts as a failure. */
const ROUNDS = 8;

/**
 * Attempts again at once where another write came first.
 *
 * @param attempt reads, and writes under the condition of what it has read. Resolves to undefined to be made
 * again
 * @throws {ZooKeeperError} {@link busy}; what `attempt` throws
 */
export async function againstOthers<T>(path: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let round = 0; round < ROUNDS; round += 1) {
    try {
      const done = await attempt();
      if (done !== undefined) return done;
    } catch (error) {
      if (!isFault(error, 'node-exists', 'no-node', 'bad-version')) throw error;
    }
  }
  throw busy(path);
}

/** The failure of a znode that others change as often as it is written. */
export function busy(path: string): ZooKeeperError {
  const message = `${path} is being changed by others all the time`;
  return new ZooKeeperError(message, { fault: 'refused', outcome: 'not-applied', path });
}

/**
 * Has the server of a session catch up with every write made before: after a change of servers it may lag
 * behind. Afterwards a write that was sent over a lost connection is visible, or will never be applied.
 */
export async function catchUp(
  session: Pick<ZooKeeper, 'multi'>,
  path: string,
  call: CallOptions,
): Promise<void> {
  try {
    // A transaction goes through the leader, even one that only checks.
    await session.multi([{ type: 'check', path }], call);
  } catch (error) {
    if (!isFault(error, 'no-node')) throw error;
  }
}

/**
 * Makes the znode at a path an ephemeral one of this session with that data.
 *
 * @param znode what was read there, which is replaced
 */
export async function writeEphemeral(
  zookeeper: Pick<ZooKeeper, 'createWithParents' | 'multi' | 'setData'>,
  path: string,
  data: string,
  znode: Znode | undefined,
  call: CallOptions & { readonly sessionId: string },
): Promise<void> {
  if (znode === undefined) await zookeeper.createWithParents(path, data, 'ephemeral', call);
  else if (znode.stat.owner !== call.sessionId) {
    // In one transaction, so that no reader sees none.
    const create = { type: 'create', path, data, mode: 'ephemeral' } as const;
    await zookeeper.multi([{ type: 'remove', path, version: znode.stat.version }, create], call);
  } else if (znode.data.toString('utf8') !== data)
    await zookeeper.setData(path, data, znode.stat.version, call);
}
