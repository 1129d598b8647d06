import { BoundSession } from '../client/bound-session.js';
import { catchUp } from '../client/retry.js';
import { ignoring, type ZooKeeper } from '../client/zookeeper.js';
import { type RecipeOptions, recipeOn, type WaitOptions } from './recipe.js';
import { inTime, untilData, withCallTimeout } from './waiting.js';

/**
 * A gate that is open unless a process has set it. It outlives that process. All methods may be given
 * `timeoutMs` and `signal`.
 */
export interface Barrier {
  /** Shuts it, also where it is shut already. @throws as {@link Barrier.remove} */
  set(options?: WaitOptions): Promise<void>;
  /**
   * Resolves once it is open: at once where it was never set.
   *
   * @throws {WaitTimeoutError} it was shut for the whole time, or with `timeoutMs: 0` is now
   * @throws {ZooKeeperError} no connection in time, access denied, client closed @throws `signal.reason`
   */
  wait(options?: WaitOptions): Promise<void>;
  /**
   * Opens it, also where it is open already. Gives up after 5 s by default; it may be opened, or
   * set, all the same then.
   *
   * @throws {WaitTimeoutError} no answer in time @throws {ZooKeeperError} no connection in time, access
   * denied, client closed @throws `signal.reason`
   */
  remove(options?: WaitOptions): Promise<void>;
}

/**
 * Holds all that wait at it until it is removed: Curator's DistributedBarrier.
 * @throws {ConfigError} where `path` is no absolute path below the root
 */
export function barrier(zookeeper: ZooKeeper, path: string, options?: RecipeOptions): Barrier {
  const recipe = recipeOn(zookeeper, path, options);
  return {
    set: (wait) =>
      inTime(recipe, withCallTimeout(wait), 'could not be set', async ({ retry }) => {
        const create = retry((call) => zookeeper.createWithParents(path, recipe.data, 'shared', call));
        await create.catch(ignoring('node-exists'));
      }),
    wait: (options = {}) =>
      inTime(recipe, options, 'was not removed', async (wait) => {
        // A server that refuses the session closes the connection, and the watch tries again for ever.
        await wait.retry(async (call) => {
          const { sessionId } = await zookeeper.whenConnected(call);
          const session = new BoundSession(zookeeper, sessionId);
          // Sent together: a session's reads come after its writes. Its server may lag behind the one that has
          // set it, also that of the next session.
          const [, shut] = await Promise.all([catchUp(session, path, call), session.read(path, call)]);
          if (shut) await untilData(wait, path, (znode) => znode === undefined, session);
        });
      }),
    remove: (wait) =>
      inTime(recipe, withCallTimeout(wait), 'could not be removed', async ({ retry }) => {
        await retry((call) => zookeeper.remove(path, undefined, call));
      }),
  };
}
