import { checkArguments, checked, DATA, type Kinds, maybe } from '../../core/base/arguments.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { checkPath } from '../client/znode-path.js';
import type { TimeOptions, ZooKeeper, ZooKeeperContext } from '../client/zookeeper.js';

/** What all recipes take. */
export interface RecipeOptions extends TimeOptions {
  /**
   * What the recipe's own znodes say of their maker, for people; Curator writes the host's address there.
   * @default empty
   */
  readonly data?: string | undefined;
}

/** How long to wait, and for what. */
export interface WaitOptions {
  /** How long to wait for others, in milliseconds; 0 does not wait. @default no limit */
  readonly timeoutMs?: number | undefined;
  /** Gives up waiting, at once. */
  readonly signal?: AbortSignal | undefined;
}

/** One recipe on one path. */
export interface Recipe extends ZooKeeperContext {
  readonly path: string;
  readonly data: string;
}

/** @throws {ConfigError} where `path` is no absolute path below the root */
export function recipeOn(
  zookeeper: ZooKeeper,
  path: string,
  options: RecipeOptions = {},
  kinds: Kinds = {},
): Recipe {
  checkArguments({ zookeeper });
  checked(options, { data: maybe(DATA), ...kinds });
  checkPath(path, 'path', '/locks/report');
  const { clock = systemClock, random = systemRandom, data = '' } = options;
  return { zookeeper, path, clock, random, data };
}
