import { DATA_DIR_SETTINGS } from '../../core/data-dir/data-dir-settings.js';
import { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import { parseListenAddress } from '../../core/settings/listen-address.js';
import type { Setting } from '../../core/settings/setting.js';
import { choice, filePath, parsed, type SettingKind } from '../../core/settings/values.js';
import { STORE_SETTINGS } from '../../core/store/store-settings.js';
import { SHARDS_SETTINGS } from '../../node/shards/shards-settings.js';
import { ZOOKEEPER_TLS_SETTINGS } from '../../zookeeper/client/tls-settings.js';
import { parsePaths } from '../../zookeeper/client/znode-path.js';
import { CONFIG_SETTINGS } from '../../zookeeper/configuration/config-settings.js';
import { ANNOUNCING_SETTINGS, ZOOKEEPER_SETTINGS } from '../../zookeeper/discovery/discovery-settings.js';
import { DNS_SETTINGS } from '../dns/dns-settings.js';

const HTTP_SETTINGS = {
  http: {
    kind: parsed('host:port', parseListenAddress),
    default: '127.0.0.1:7070; for run nowhere',
    sentence: 'where to answer HTTP requests: health, metrics and more; port 0 is any that is free',
  },
  'bearer-token-file': {
    kind: filePath,
    default: 'no token is asked for',
    sentence: 'requests for more than health must send the token in this file; of use beyond loopback',
  },
  'console-locks': {
    kind: parsed('paths', parsePaths),
    needs: 'zookeeper',
    sentence: 'paths of ZooKeeper, with commas between, whose locks the console shows, with those below them',
  },
  'console-data': {
    kind: parsed('paths', parsePaths),
    needs: 'zookeeper',
    sentence:
      "roots of Monastery's shared data, with commas between, that the console shows, such as /monastery/root",
  },
} satisfies Readonly<Record<string, Setting>>;

const LOG_SETTINGS = {
  'log-level': {
    kind: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    sentence: 'how much is logged; stack traces from debug on',
  },
  'log-format': {
    kind: choice('json', 'pretty'),
    default: 'json, on a terminal pretty',
    sentence: 'how log lines look; pretty is for people',
  },
} satisfies Readonly<Record<string, Setting>>;

/** Every setting, by the headings of the help, in its order. */
const GROUPS = {
  Lease: LEASE_SETTINGS,
  Shards: SHARDS_SETTINGS,
  Store: STORE_SETTINGS,
  'Data directory': DATA_DIR_SETTINGS,
  ZooKeeper: ZOOKEEPER_SETTINGS,
  'Announced in ZooKeeper': ANNOUNCING_SETTINGS,
  'Configuration in ZooKeeper': CONFIG_SETTINGS,
  'TLS to ZooKeeper': ZOOKEEPER_TLS_SETTINGS,
  HTTP: HTTP_SETTINGS,
  DNS: DNS_SETTINGS,
  Logging: LOG_SETTINGS,
};

const ROWS = {
  ...LEASE_SETTINGS,
  ...SHARDS_SETTINGS,
  ...STORE_SETTINGS,
  ...DATA_DIR_SETTINGS,
  ...ZOOKEEPER_SETTINGS,
  ...ANNOUNCING_SETTINGS,
  ...CONFIG_SETTINGS,
  ...ZOOKEEPER_TLS_SETTINGS,
  ...HTTP_SETTINGS,
  ...DNS_SETTINGS,
  ...LOG_SETTINGS,
};

/** The settings, by their names on the command line: `task-id` is `--task-id` and `NODELEASE_TASK_ID`. */
export type SettingName = keyof typeof ROWS;

/** What the text of a setting is read as. */
export type SettingValue<Name extends SettingName> =
  (typeof ROWS)[Name]['kind'] extends SettingKind<infer Value> ? Value : never;

/** The kind of a setting, with the type of its value. */
export function kindOf<Name extends SettingName>(name: Name): SettingKind<SettingValue<Name>> {
  return ROWS[name].kind as SettingKind<SettingValue<Name>>;
}

/** The row of a setting. */
export function rowOf(name: SettingName): Setting {
  return ROWS[name];
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
export const SETTINGS: readonly NamedSetting[] = Object.entries(GROUPS).flatMap(([group, rows]) =>
  Object.entries<Setting>(rows).map(([name, row]) => ({ name: name as SettingName, group, ...row })),
);

/** The name of the environment variable of a setting. */
export function environmentName(name: SettingName): string {
  return `NODELEASE_${name.toUpperCase().replaceAll('-', '_')}`;
}
