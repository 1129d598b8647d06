import { ConfigError } from '../base/errors.js';
import { textOf } from './fields.js';

/**
 * Loads a package that only the users of one kind of store install.
 *
 * @param url the store's, for the message
 * @throws {ConfigError} that says what to install, when it is missing
 */
export async function optionalPackage<T>(name: string, url: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (
      !/^(ERR_)?MODULE_NOT_FOUND$/.test(textOf(error, 'code') ?? '') ||
      !textOf(error, 'message')?.includes(name)
    )
      throw error;
    throw new ConfigError(
      'store',
      url,
      `the package ${name} beside nodelease for this store (npm install ${name})`,
    );
  }
}
