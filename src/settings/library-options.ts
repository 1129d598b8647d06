import { ConfigError } from '../base/errors.js';
import { SETTINGS } from './settings-table.js';

/** Where options stand: those of `acquire()` itself, or those of its option `zookeeper`. */
type Place = '' | 'zookeeper.';

/**
 * Checks that all options are known, and those of the settings' table by their kinds. Types that the compiler sees to are not checked.
 *
 * @param others the names of the options that do not stand in the table
 * @throws {ConfigError} that names the option
 */
export function checkOptions(options: object, place: Place, others: readonly string[]): void {
  const settings = SETTINGS.flatMap(({ option = '', kind }) => {
    const name = option.slice(place.length);
    return option.startsWith(place) && name !== '' && !name.includes('.') ? [{ name, option, kind }] : [];
  });
  const names = [...settings.map(({ name }) => name), ...others];
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new ConfigError(place === '' ? 'options' : 'zookeeper', unknown, `one of ${names.join(', ')}`);
  }
  for (const { name, option, kind } of settings) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined) kind.check?.(value, option);
  }
}
