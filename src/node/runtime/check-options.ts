import { checkKnown, checkPlain, OBJECT } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import type { SettingRows } from '../../core/settings/setting.js';
import { STORE_SETTINGS } from '../../core/store/store-settings.js';
import { STORES } from '../../core/store/stores.js';
import { ZOOKEEPER_TLS_SETTINGS } from '../../zookeeper/client/tls-settings.js';
import { ANNOUNCING_SETTINGS, ZOOKEEPER_SETTINGS } from '../../zookeeper/discovery/discovery-settings.js';

/** The settings that are options of the library as well. */
const ROWS: SettingRows = {
  ...LEASE_SETTINGS,
  ...STORE_SETTINGS,
  ...ZOOKEEPER_SETTINGS,
  ...ANNOUNCING_SETTINGS,
  ...ZOOKEEPER_TLS_SETTINGS,
};

/**
 * Checks that all options are known, and those of the settings' table by their kinds. Types that the compiler
 * sees to are not checked.
 *
 * @param place where the options are: `zookeeper.`, or '' for those of `acquire()` itself
 * @param others the names of the options that are not in the table
 * @param rows those of a product that has options elsewhere
 * @throws {ConfigError} that names the option
 */
export function checkOptions(options: object, place: string, others: readonly string[], rows = ROWS): void {
  const settings = Object.values(rows).flatMap(({ option = '', ...row }) => {
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
  for (const name of ofStores)
    if (OBJECT.is(given[name])) checkOptions(given[name] as object, `${name}.`, []);
}
