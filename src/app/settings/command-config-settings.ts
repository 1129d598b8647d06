import type { SettingValue } from './settings-table.js';
import { find, read, readOrDefault, refuse, type SettingSources } from './sources.js';

/** The configuration of a command in ZooKeeper. */
export interface CommandConfigSettings {
  readonly name: SettingValue<'config'> & { readonly root?: string | undefined };
  /** What happens when it changes. @default ignore */
  readonly onChange: SettingValue<'on-config-change'>;
  /** Over how long the nodes spread it, in milliseconds, 0 to 86,400,000. @default 10000 */
  readonly spreadMs: number;
  /** Whether the nodes restart one after the other. */
  readonly oneByOne: boolean;
  /** The path of the file with a copy. */
  readonly snapshot?: string | undefined;
  /** Fails the start when ZooKeeper cannot be reached. */
  readonly required: boolean;
}

/** @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected */
export function readCommandConfig(sources: SettingSources): CommandConfigSettings | undefined {
  const given = find(sources, 'config');
  const name = read(sources, 'config');
  if (given === undefined || name === undefined) return undefined;
  // A variable too: without a word, the command would run without its configuration.
  if (find(sources, 'zookeeper') === undefined)
    refuse(given, '--zookeeper with it, with the servers that have it');
  const onChange = readOrDefault(sources, 'on-config-change');
  const oneByOne = read(sources, 'config-one-by-one') ?? false;
  if (oneByOne && onChange !== 'restart')
    refuse({ label: '--config-one-by-one', text: 'true' }, '--on-config-change restart with it');
  return {
    name: { ...name, root: read(sources, 'config-root') },
    onChange,
    oneByOne,
    snapshot: read(sources, 'config-snapshot'),
    spreadMs: readOrDefault(sources, 'config-spread'),
    required: read(sources, 'config-required') ?? false,
  };
}
