import { ConfigError } from '../../core/base/errors.js';

/** Keeps out stale holders at the receiving end. */
export interface Fence {
  /** The greatest token that was let through; 0 for none. */
  readonly newest: bigint;
  /**
   * False where a greater token was let through before: the sender holds its lock no more.
   * @throws {ConfigError} where the token is not above 0
   */
  pass(token: bigint): boolean;
}

/**
 * A fence for one lock, in this process's memory: a receiver that writes elsewhere keeps the newest token
 * with its data, in the same transaction (docs/zookeeper/recipes.md).
 *
 * @param newest the greatest token so far, where it was kept
 */
export function createFence(newest = 0n): Fence {
  if (typeof newest !== 'bigint' || newest < 0n)
    throw new ConfigError('newest', newest, 'a fencing token: a bigint of at least 0');
  let last = newest;
  return {
    get newest() {
      return last;
    },
    pass(token) {
      if (typeof token !== 'bigint' || token <= 0n)
        throw new ConfigError('token', token, 'a fencing token: a bigint above 0');
      if (token < last) return false;
      last = token;
      return true;
    },
  };
}
