import { anySignal } from '../../core/base/abort.js';
import { checked, whole } from '../../core/base/arguments.js';
import type { ZooKeeper } from '../client/zookeeper.js';
import { Contest, type ContestRules } from './contest.js';
import { LOCK_RULES, type ZooKeeperLock } from './lock.js';
import { type RecipeOptions, recipeOn } from './recipe.js';
import { inTime } from './waiting.js';

const LEASE = 'lease-';

export interface SemaphoreOptions extends RecipeOptions {
  /** How many may hold at a time, 1 … 1,000,000; the same for all users of the path. */
  readonly leases: number;
}

/**
 * One of a number of leases, first come, first served: Curator's InterProcessSemaphoreV2. Each object is one
 * contender for one lease: it has the lease once it has the lock of the semaphore, and there are no more leases
 * than allowed with it.
 *
 * @throws {ConfigError} where `path` is no absolute path below the root, or `leases` is out of range
 */
export function semaphore(zookeeper: ZooKeeper, path: string, options: SemaphoreOptions): ZooKeeperLock {
  const recipe = recipeOn(zookeeper, path, checked(options), { leases: whole(1, 1_000_000) });
  const { leases } = options;
  const blocker: ContestRules['blocker'] = ({ length }) => (length < leases ? undefined : 'children');
  const lock = new Contest({ ...recipe, path: `${path}/locks` }, LOCK_RULES);
  const rules = { name: LEASE, kinds: [LEASE], blocker };
  const lease = new Contest({ ...recipe, path: `${path}/leases` }, rules);
  return {
    async acquire(wait = {}) {
      // Before it waits behind others, who may wait for this very lease.
      lease.checkFree();
      return inTime(recipe, wait, 'could not be acquired', async ({ signal, isTry }) => {
        const timeoutMs = isTry ? 0 : undefined;
        for (;;) {
          const turn = await lock.acquire({ timeoutMs, signal });
          const either = anySignal(signal, turn.signal);
          try {
            return await lease.acquire({ timeoutMs, signal: either.signal });
          } catch (error) {
            // Without the lock it is behind the contenders that wait for it.
            if (error !== turn.signal.reason) throw error;
          } finally {
            either.release();
            // Its end is not waited for: it takes long where ZooKeeper is away.
            void turn.release();
          }
        }
      });
    },
  };
}
