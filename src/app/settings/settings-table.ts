import { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import { choice, type Setting, type SettingRows } from '../../core/settings/setting.js';
import type { GivenSettings, SettingGroup, ValueOf } from '../../core/settings/sources.js';
import { STORE_SETTINGS } from '../../core/store/store-settings.js';
import { ZOOKEEPER_TLS_SETTINGS } from '../../zookeeper/client/tls-settings.js';
import { ANNOUNCING_SETTINGS, ZOOKEEPER_SETTINGS } from '../../zookeeper/discovery/discovery-settings.js';
import { CONFIG } from '../configuration/config-settings.js';
import { DATA_DIRS } from '../data-dir/data-dir-settings.js';
import { DNS } from '../dns/dns-settings.js';
import { HTTP_SETTINGS } from '../http/http-settings.js';
import { SHARDS } from '../shards/shards-settings.js';

export { environmentName } from '../../core/settings/sources.js';

const LOG_SETTINGS = {
  'log-level': {
    kind: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    common: true,
    sentence: 'how much is logged; stack traces from debug on',
  },
  'log-format': {
    kind: choice('json', 'pretty'),
    default: 'json, on a terminal pretty',
    field: 'logFormat',
    common: true,
    sentence: 'how log lines look; pretty is for people',
  },
} as const satisfies SettingRows;

/** Every setting, by the headings of the help, in its order. */
const GROUPS = {
  Lease: { rows: LEASE_SETTINGS },
  Shards: SHARDS,
  Store: { rows: STORE_SETTINGS },
  'Data directory': DATA_DIRS,
  ZooKeeper: { rows: ZOOKEEPER_SETTINGS },
  'Announced in ZooKeeper': { rows: ANNOUNCING_SETTINGS, commands: ['run', 'serve'] },
  'Configuration in ZooKeeper': CONFIG,
  'TLS to ZooKeeper': { rows: ZOOKEEPER_TLS_SETTINGS },
  HTTP: { rows: HTTP_SETTINGS },
  DNS,
  Logging: { rows: LOG_SETTINGS },
} as const satisfies Readonly<Record<string, SettingGroup>>;

/** The row of each setting. */
export const ROWS = {
  ...LEASE_SETTINGS,
  ...SHARDS.rows,
  ...STORE_SETTINGS,
  ...DATA_DIRS.rows,
  ...ZOOKEEPER_SETTINGS,
  ...ANNOUNCING_SETTINGS,
  ...CONFIG.rows,
  ...ZOOKEEPER_TLS_SETTINGS,
  ...HTTP_SETTINGS,
  ...DNS.rows,
  ...LOG_SETTINGS,
};
type Rows = typeof ROWS;

/** What products read themselves, by the fields of the settings. */
const READERS = { ...SHARDS.read, ...DATA_DIRS.read, ...CONFIG.read };

/** The settings, by their names on the command line: `task-id` is `--task-id` and `NODELEASE_TASK_ID`. */
export type SettingName = keyof Rows;

/** What the text of a setting is read as. */
export type SettingValue<Name extends SettingName> = ValueOf<Rows[Name]>;

/** All settings, as one invocation has them. */
export type AllSettings = GivenSettings<Rows>;

type FieldOf<Row> = Row extends { readonly field: infer Field } | { readonly option: infer Field }
  ? Exclude<Field & string, `${string}.${string}`>
  : never;

/** The settings that are read by themselves, by their fields: the option of the library, or what the row says. */
export type PlainSettings = {
  readonly [Name in SettingName as FieldOf<Rows[Name]>]?: SettingValue<Name> | undefined;
};

/** See {@link READERS}. */
export type ReadSettings = {
  readonly [Field in keyof typeof READERS]?: ReturnType<(typeof READERS)[Field]>;
};

/** Reads the settings that stand alone. @throws {ConfigError} */
export function readPlain(all: AllSettings): PlainSettings {
  const fields = SETTINGS.flatMap(({ name, option, field = option }) =>
    field === undefined || field.includes('.') ? [] : [[field, all.read(name)]],
  );
  return Object.fromEntries(fields) as PlainSettings;
}

/** Reads what products read themselves. @throws {ConfigError} */
export function readByProducts(all: AllSettings): ReadSettings {
  return Object.fromEntries(Object.entries(READERS).map(([field, read]) => [field, read(all)]));
}

/** Defaults of settings, as their users would write them. */
export type SettingDefaults = { readonly [Name in SettingName]?: string };

/** A row with its name. */
export interface NamedSetting extends Setting {
  readonly name: SettingName;
  /** Its heading in the help. */
  readonly group: string;
}

/** Every setting, in the order of the help. */
export const SETTINGS: readonly NamedSetting[] = Object.entries<SettingGroup>(GROUPS).flatMap(
  ([group, { rows }]) => namesOf(rows).map((name) => ({ name, group, ...ROWS[name] })),
);

/** The settings that a command has since their groups say so. */
export function settingsOf(command: string): readonly SettingName[] {
  return Object.values<SettingGroup>(GROUPS).flatMap(({ rows, commands }) =>
    commands?.includes(command) ? namesOf(rows) : [],
  );
}

/** The names of settings. */
export function namesOf(rows: SettingGroup['rows']): readonly SettingName[] {
  return Object.keys(rows) as SettingName[];
}
