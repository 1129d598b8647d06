import { checkArguments } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { checkKnown } from '../../core/base/option-check.js';
import { checkPlain } from '../../core/base/plain-text.js';
import { DATA_DIR_SETTINGS } from '../../core/data-dir/data-dir-settings.js';
import { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import type { Setting } from '../../core/settings/setting.js';
import { STORE_SETTINGS } from '../../core/store/store-settings.js';
import { ACCESS, STORES } from '../../core/store/stores.js';
import { ZOOKEEPER_TLS_SETTINGS } from '../../zookeeper/client/tls-settings.js';
import { ANNOUNCING_SETTINGS, ZOOKEEPER_SETTINGS } from '../../zookeeper/discovery/discovery-settings.js';

/** The settings that are options of the library as well. */
const ROWS = [
  LEASE_SETTINGS,
  STORE_SETTINGS,
  DATA_DIR_SETTINGS,
  ZOOKEEPER_SETTINGS,
  ANNOUNCING_SETTINGS,
  ZOOKEEPER_TLS_SETTINGS,
].flatMap((rows): Setting[] => Object.values(rows));

/**
 * Checks that all options are known, and those of the settings' table by their kinds. Types that the compiler
 * sees to are not checked.
 *
 * @param place where the options are: `zookeeper.`, or '' for those of `acquire()` itself
 * @param others the names of the options that are not in the table
 * @throws {ConfigError} that names the option
 */
export function checkOptions(options: object, place: string, others: readonly string[]): void {
  const settings = ROWS.flatMap(({ option = '', ...row }) => {
    const name = option.slice(place.length);
    return option.startsWith(place) && name !== '' && !name.includes('.') ? [{ ...row, name, option }] : [];
  });
  const ofStores = place === '' ? STORES.flatMap(({ own }) => own?.option ?? []) : [];
  checkKnown(
    options,
    [...settings.map(({ name }) => name), ...ofStores, ...others],
    place.slice(0, -1) || undefined,
  );
  const given = options as Readonly<Record<string, unknown>>;
  for (const { name, option, kind, needs, secret, verbatim } of settings) {
    const value = given[name];
    if (value === undefined) continue;
    for (const text of verbatim ? [] : [value].flat())
      if (typeof text === 'string') checkPlain(text, option, secret && '…');
    kind.check?.(value, option);
    if (needs === 'sticky' && given.sticky === undefined)
      throw new ConfigError(option, value, 'the option sticky with it');
  }
  for (const name of ofStores) {
    const own = given[name];
    if (own === undefined) continue;
    checkArguments({ [name]: own }, ACCESS);
    checkOptions(own as object, `${name}.`, []);
  }
}
