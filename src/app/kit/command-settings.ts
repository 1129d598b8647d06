import { STORE_SETTINGS } from '../../core/store/store-settings.js';
import type { SettingName } from '../settings/settings-table.js';

type Names = readonly SettingName[];

// Which commands have a setting: the rows name these.
const OF_LOG: Names = ['log-level', 'log-format'];
export const OF_STORE: Names = [...(Object.keys(STORE_SETTINGS) as SettingName[]), ...OF_LOG];
export const OF_ZOOKEEPER: Names = [
  'zookeeper',
  'zookeeper-auth',
  'zookeeper-tls',
  'zookeeper-ca',
  'zookeeper-cert',
  'zookeeper-key',
  'zookeeper-servername',
  'zookeeper-session-timeout',
  ...OF_LOG,
];
/** Of all that is about node ids. */
export const OF_NODE_IDS: Names = [...OF_STORE, ...OF_ZOOKEEPER, 'provider'];
/** Of the commands that may create a cluster. */
export const CREATING: Names = [...OF_NODE_IDS, 'nodes', 'duration', 'grace'];
/** Of the commands that acquire a node id. */
export const ACQUIRING: Names = [
  ...CREATING,
  'cluster',
  'task-id',
  'acquire-timeout',
  'wait-poll',
  'settings-interval',
  'sticky',
  'prefer-id',
  'sticky-wait',
];
/** Of the commands that have a console. */
export const OF_CONSOLE: Names = [
  'http',
  'bearer-token-file',
  'console-locks',
  'console-data',
  'config-root',
  'service-base-path',
];
/** Of the commands that hold a node id for other processes. */
export const HOLDING: Names = [
  ...ACQUIRING,
  ...OF_CONSOLE,
  'on-retire',
  'shards',
  'shard-stop-timeout',
  'node-id',
  'data-dir',
  'data-retention',
  'data-exclude',
  'data-copy',
  'data-local',
  'zookeeper-required',
  'ready-timeout',
  'service',
  'address',
  'port',
  'payload',
  'payload-type',
  'uri-spec',
  'announce',
  'check',
  'check-interval',
  'check-threshold',
];
/** Of the names that DNS answers. */
export const OF_DNS: Names = ['dns-domain', 'dns-ttl', 'dns-negative-ttl', 'dns-stale'];
/** Of the configuration of the command that is run. */
export const OF_CONFIG: Names = [
  'config',
  'on-config-change',
  'config-spread',
  'config-one-by-one',
  'config-snapshot',
  'config-required',
];
/** Of services. */
export const OF_SERVICES: Names = [...OF_ZOOKEEPER, 'service-base-path'];
