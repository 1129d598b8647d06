import { NodeLeaseError } from '../../core/base/errors.js';

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
