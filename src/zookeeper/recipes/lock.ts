import type { ZooKeeper } from '../client/zookeeper.js';
import { Contest, waitForPredecessor } from './contest.js';
import type { LockHandle } from './lock-handle.js';
import { type RecipeOptions, recipeOn, type WaitOptions } from './recipe.js';

/** One contender for something in ZooKeeper. */
export interface ZooKeeperLock<H extends LockHandle = LockHandle> {
  /**
   * Waits until it is had. Not re-entrant: what is had has to be released or lost before it is asked for
   * again; a second object is another contender.
   *
   * @throws {WaitTimeoutError} others hold it for the whole time, or with `timeoutMs: 0` now
   * @throws {RecipeError} `already-held`; `foreign-znode` where another recipe's znodes are under the path
   * @throws {ZooKeeperError} no connection in time, access denied, client closed
   * @throws `signal.reason`
   */
  acquire(options?: WaitOptions): Promise<H>;
}

/**
 * Mutual exclusion among all contenders of a path, first come, first served. Curator's InterProcessMutex and
 * LeaderSelector on the same path are contenders as well.
 *
 * @throws {ConfigError} where `path` is no absolute path below the root
 */
export function lock(zookeeper: ZooKeeper, path: string, options?: RecipeOptions): ZooKeeperLock {
  return new Contest(recipeOn(zookeeper, path, options), LOCK_RULES);
}

const NAME = 'lock-';

export const LOCK_RULES = { name: NAME, kinds: [NAME], blocker: waitForPredecessor };
