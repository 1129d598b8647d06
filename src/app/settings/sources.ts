import { type Given, GivenSettings, type SettingSources } from '../../core/settings/sources.js';
import { type NamedSetting, ROWS, SETTINGS, type SettingName, type SettingValue } from './settings-table.js';

export { type Given, refuse, type SettingSources } from '../../core/settings/sources.js';

// As `GivenSettings` does, for all settings of the table.

export function findAll(sources: SettingSources, name: SettingName): readonly Given[] {
  return new GivenSettings(sources, ROWS).findAll(name);
}

export function find(sources: SettingSources, name: SettingName): Given | undefined {
  return new GivenSettings(sources, ROWS).find(name);
}

export function read<Name extends SettingName>(
  sources: SettingSources,
  name: Name,
): SettingValue<Name> | undefined {
  return new GivenSettings(sources, ROWS).read(name);
}

export function readOrDefault<Name extends SettingName>(
  sources: SettingSources,
  name: Name,
): SettingValue<Name> {
  return new GivenSettings(sources, ROWS).readOrDefault(name);
}

/**
 * The first of some settings that is given as a flag. A variable may be there for other programs; a flag is
 * meant for this one.
 */
export function firstFlag(
  sources: SettingSources,
  isOne: (setting: NamedSetting) => boolean,
): Given | undefined {
  const given = SETTINGS.filter(isOne).map(({ name }) => find(sources, name));
  return given.find((each) => each?.flag);
}
