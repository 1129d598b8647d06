import { anySignal } from '../base/abort.js';
import { ConfigError } from '../base/errors.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { Contest, type ContestRules } from './contest.js';
import { LOCK_RULES, type ZooKeeperLock } from './lock.js';
import type { LockHandle } from './lock-handle.js';
import { type Recipe, type RecipeOptions, recipeOn, type WaitOptions } from './recipe.js';
import { inTime } from './waiting.js';

const LEASE = 'lease-';

export interface SemaphoreOptions extends RecipeOptions {
  /** How many may hold at a time, 1 … 1,000,000; the same for all users of the path. */
  readonly leases: number;
}

/**
 * One of a number of leases, first come, first served: Curator's InterProcessSemaphoreV2. Each object is one
 * contender for one lease.
 *
 * @throws {ConfigError} where `path` is no absolute path below the root, or `leases` is out of range
 */
export function semaphore(
  zookeeper: ZooKeeper,
  path: string,
  { leases, ...options }: SemaphoreOptions,
): ZooKeeperLock {
  if (!Number.isInteger(leases) || leases < 1 || leases > 1_000_000)
    throw new ConfigError('leases', leases, 'a whole number, 1 to 1000000');
  return new Semaphore(recipeOn(zookeeper, path, options), leases);
}

/**
 * The contender with the lock of the semaphore has a lease once there are no more leases than allowed with
 * it.
 */
class Semaphore implements ZooKeeperLock {
  readonly #lock: Contest;
  readonly #lease: Contest;

  constructor(
    private readonly recipe: Recipe,
    leases: number,
  ) {
    const blocker: ContestRules['blocker'] = ({ length }) => (length < leases ? undefined : 'children');
    this.#lock = new Contest({ ...recipe, path: `${recipe.path}/locks` }, LOCK_RULES);
    this.#lease = new Contest(
      { ...recipe, path: `${recipe.path}/leases` },
      { name: LEASE, kinds: [LEASE], blocker },
    );
  }

  async acquire(options: WaitOptions = {}): Promise<LockHandle> {
    // Before it waits behind others, who may wait for this very lease.
    this.#lease.checkFree();
    return inTime(this.recipe, options, 'could not be had', ({ signal, isTry }) =>
      this.#acquire(signal, isTry ? 0 : undefined),
    );
  }

  async #acquire(signal: AbortSignal | undefined, timeoutMs: 0 | undefined): Promise<LockHandle> {
    for (;;) {
      const lock = await this.#lock.acquire({ timeoutMs, signal });
      const waiting = anySignal(signal, lock.signal);
      try {
        return await this.#lease.acquire({ timeoutMs, signal: waiting.signal });
      } catch (error) {
        // Without the lock it is behind the contenders that wait for it.
        if (!lock.signal.aborted || error !== lock.signal.reason) throw error;
      } finally {
        waiting.release();
        // Its end is not waited for: it takes long where ZooKeeper is away.
        void lock.release();
      }
    }
  }
}
