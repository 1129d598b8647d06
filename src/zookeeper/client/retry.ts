import { type Retry, type RetryOptions, retrying } from '../../core/base/retry.js';
import type { BoundSession } from './bound-session.js';
import {
  type CallOptions,
  ignoring,
  isFault,
  isUnknown,
  type TimeSources,
  TRANSIENT,
  type Znode,
  type ZooKeeper,
  ZooKeeperError,
} from './zookeeper.js';

// How calls are made again: while the connection is away, and while others are faster.

/** How often a step is made against the changes of others before it counts as a failure. */
const ROUNDS = 8;

/**
 * Retries a call that does no harm when it is made twice, while the connection is away: in one session, or
 * else in any.
 */
export const whileConnectionIsAway = (options: RetryOptions, session?: BoundSession): Retry =>
  retrying({
    ...options,
    mayPass: (error) =>
      isFault(error, ...TRANSIENT) && (session === undefined || error.fault !== 'session-expired'),
  });

/** Deletes a znode of this session until it is gone for certain, or the session is. Never rejects. */
export async function erase(
  { clock, random }: TimeSources,
  session: Pick<BoundSession, 'remove'>,
  path: string,
): Promise<void> {
  const mayPass = (error: unknown) =>
    isFault(error, 'connection-loss', 'timeout') ||
    (isUnknown(error) && !isFault(error, 'session-expired', 'closed'));
  await retrying({ clock, random, mayPass })(() => session.remove(path)).catch(() => undefined);
}

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

/**
 * Makes a step, which reads what it changes, until it resolves to a value: again where others were faster.
 *
 * @throws {ZooKeeperError} `contended` after eight rounds, and what `step` throws otherwise
 */
export async function inRounds<T>(path: string, step: () => Promise<T | undefined>): Promise<T> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const done = await step().catch(ignoring('bad-version', 'node-exists', 'no-node'));
    if (done !== undefined) return done;
  }
  throw busy(path);
}

/** The failure of a znode that others change as often as it is written. */
export const busy = (path: string) =>
  new ZooKeeperError(`${path} is being changed by others all the time`, 'contended', 'not-applied', path);

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
