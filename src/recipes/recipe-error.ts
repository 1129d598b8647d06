import { NodeLeaseError } from '../base/errors.js';

/** Why a recipe cannot go on. */
export type RecipeFault =
  /** The object holds already, or waits: these locks are not re-entrant. A second object is another contender. */
  | 'already-held'
  /** Under the recipe's path stands a znode that is not the recipe's. */
  | 'foreign-znode'
  /** A znode has data that the recipe does not write. */
  | 'damaged'
  /** A write may have been carried out or not, and that cannot be found out any more. */
  | 'outcome-unknown';

/** A recipe that cannot go on, for another reason than ZooKeeper itself. */
export class RecipeError extends NodeLeaseError {
  readonly code = 'RECIPE_FAILED';

  /** @param path the znode that it is about, within the chroot */
  constructor(
    message: string,
    readonly fault: RecipeFault,
    readonly path: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}
