import { checkArguments, checked, DATA, type Kinds, maybe } from '../../core/base/arguments.js';
import { NodeLeaseError } from '../../core/base/errors.js';
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

/** Why a recipe cannot continue. */
export type RecipeFault =
  /**
   * The object holds already, or waits: these locks are not re-entrant. A second object is another contender.
   */
  | 'already-held'
  /**
   * The object does not hold what it is to give up: it never did, or its znode went with its session, or was
   * deleted.
   */
  | 'not-held'
  /** Under the recipe's path is a znode that is not the recipe's. */
  | 'foreign-znode'
  /** All numbers for the znodes under the path have been given out. */
  | 'exhausted'
  /** A znode has data that the recipe does not write. */
  | 'damaged'
  /** A write may have been carried out or not, and that cannot be found out any more. */
  | 'outcome-unknown';

/** A recipe that cannot continue, for another reason than ZooKeeper itself. */
export class RecipeError extends NodeLeaseError {
  readonly code = 'RECIPE_FAILED';

  /** @param path the znode that it is about, within the chroot */
  constructor(
    message: string,
    readonly fault: RecipeFault,
    readonly path: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** @param what the unknown outcome, as the beginning of a sentence: "whether …" */
export function outcomeUnknown(path: string, what: string, cause: unknown): RecipeError {
  return new RecipeError(`${what} is unknown: the reply was lost`, 'outcome-unknown', path, cause);
}

/** @param expected what may be under this recipe's path */
export function foreignZnode(path: string, name: string, expected: string): RecipeError {
  const text = `${path} has a child ${JSON.stringify(name)}, which is not of this recipe: expected ${expected}`;
  return new RecipeError(text, 'foreign-znode', path);
}
