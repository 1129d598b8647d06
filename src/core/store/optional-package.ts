import { ConfigError } from '../base/errors.js';
import { textOf } from '../base/fields.js';

/** Whether an import failed since this package is not installed, and not one of its own imports. */
export function isNotInstalled(name: string, error: unknown): boolean {
  return (
    /^(ERR_)?MODULE_NOT_FOUND$/.test(textOf(error, 'code') ?? '') &&
    textOf(error, 'message')?.includes(name) === true
  );
}

/**
 * Handles the failed import of a package that only the users of one kind of store install. Belongs into the
 * `.catch()` of the `import()` itself: there bundlers see that the package is optional.
 *
 * @param url the store's, for the message
 * @throws {ConfigError} that says what to install, when the package is missing
 */
export function requiredBy(url: string, name: string): (error: unknown) => never {
  return (error) => {
    if (!isNotInstalled(name, error)) throw error;
    throw new ConfigError(
      'store',
      url,
      `the package ${name} next to nodelease for this store (npm install ${name})`,
    );
  };
}
