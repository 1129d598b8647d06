import type { ZooKeeper } from '../client/zookeeper.js';
import { Contest, type ContestRules, waitForPredecessor } from './contest.js';
import type { ZooKeeperLock } from './lock.js';
import { type HeldZnode, type LockHandle, ZnodeHolder } from './lock-handle.js';
import { protectedPath } from './own-znode.js';
import { type Recipe, type RecipeOptions, recipeOn } from './recipe.js';

const READ = '__READ__';
const WRITE = '__WRIT__';
const KINDS = [READ, WRITE];

/**
 * A lock that any number of readers share. Readers wait for the writers before them, so that no writer waits
 * for ever: Curator's InterProcessReadWriteLock.
 *
 * @throws {ConfigError} where `path` is no absolute path below the root
 */
export function readLock(zookeeper: ZooKeeper, path: string, options?: RecipeOptions): ZooKeeperLock {
  const blocker: ContestRules['blocker'] = (ahead) => {
    const before = ahead.findLast((name) => name.includes(WRITE));
    return before === undefined ? undefined : { gone: before };
  };
  return new Contest(recipeOn(zookeeper, path, options), { name: READ, kinds: KINDS, blocker });
}

/** A write lock that is held. */
export interface WriteLockHandle extends LockHandle {
  /**
   * Lets other readers in, and no writer: the handle is that of a read lock from then on, in the writer's
   * place and with its token. The other way round does not exist: two readers would wait for each other.
   *
   * @throws {LockLostError}
   */
  downgrade(): Promise<void>;
}

/**
 * The lock of one writer, which excludes all others of the path.
 * @see readLock
 * @throws {ConfigError} where `path` is no absolute path below the root
 */
export function writeLock(
  zookeeper: ZooKeeper,
  path: string,
  options?: RecipeOptions,
): ZooKeeperLock<WriteLockHandle> {
  const recipe = recipeOn(zookeeper, path, options);
  return new Contest(recipe, { name: WRITE, kinds: KINDS, blocker: waitForPredecessor }, (held) => {
    // The read lock takes the writer's number: with a new number it would be behind the waiting writers.
    const number = held.path.slice(held.path.lastIndexOf(WRITE) + WRITE.length);
    return new WriteHolder(held, recipe, protectedPath(recipe, READ) + number);
  });
}

class WriteHolder extends ZnodeHolder implements WriteLockHandle {
  #downgrade: Promise<void> | undefined;

  constructor(
    held: HeldZnode,
    recipe: Recipe,
    private readonly readPath: string,
  ) {
    super(held, recipe);
  }

  downgrade(): Promise<void> {
    this.#downgrade ??= this.moveTo(this.readPath);
    return this.#downgrade;
  }
}
