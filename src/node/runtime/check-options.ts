import { ConfigError } from '../../core/base/errors.js';
import { checkKnown } from '../../core/base/option-check.js';
import { checkPlain } from '../../core/base/plain-text.js';
import { DATA_DIR_SETTINGS } from '../../core/data-dir/data-dir-settings.js';
import { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import type { Setting } from '../../core/settings/setting.js';
import { ETCD_SETTINGS } from '../../core/store/etcd/etcd-settings.js';
import { STORE_SETTINGS } from '../../core/store/store-settings.js';
import { ZOOKEEPER_TLS_SETTINGS } from '../../zookeeper/client/tls-settings.js';
import { ANNOUNCING_SETTINGS, ZOOKEEPER_SETTINGS } from '../../zookeeper/discovery/discovery-settings.js';

/** The settings that are options of the library as well. */
const ROWS = [
  LEASE_SETTINGS,
  STORE_SETTINGS,
  ETCD_SETTINGS,
  DATA_DIR_SETTINGS,
  ZOOKEEPER_SETTINGS,
  ANNOUNCING_SETTINGS,
  ZOOKEEPER_TLS_SETTINGS,
].flatMap((rows): Setting[] => Object.values(rows));

/** Where options are: those of `acquire()` itself, or those of one of its options. */
type Place = '' | 'zookeeper.' | 'etcd.' | 'dataDir.';

/**
 * Checks that all options are known, and those of the settings' table by their kinds. Types that the compiler
 * sees to are not checked.
 *
 * @param others the names of the options that are not in the table
 * @throws {ConfigError} that names the option
 */
export function checkOptions(options: object, place: Place, others: readonly string[]): void {
  const settings = ROWS.flatMap(({ option = '', ...row }) => {
    const name = option.slice(place.length);
    return option.startsWith(place) && name !== '' && !name.includes('.') ? [{ ...row, name, option }] : [];
  });
  checkKnown(options, [...settings.map(({ name }) => name), ...others], place.slice(0, -1) || undefined);
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
}
