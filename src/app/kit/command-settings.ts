import { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import { STORE_SETTINGS } from '../../core/store/stores.js';
import { ZOOKEEPER_TLS_SETTINGS } from '../../zookeeper/client/tls-settings.js';
import { HTTP_SETTINGS } from '../http/http-settings.js';
import { namesOf, type SettingName } from '../settings/settings-table.js';

type Names = readonly SettingName[];

// Which commands have a setting: the rows name these. The groups of the settings' table say the rest.
const OF_LOG: Names = ['log-level', 'log-format'];
export const OF_STORE: Names = [...namesOf(STORE_SETTINGS), ...OF_LOG];
export const OF_ZOOKEEPER: Names = [
  'zookeeper',
  'zookeeper-auth',
  'zookeeper-session-timeout',
  ...namesOf(ZOOKEEPER_TLS_SETTINGS),
  ...OF_LOG,
];
/** Of all that is about node ids. */
export const OF_NODE_IDS: Names = [...OF_STORE, ...OF_ZOOKEEPER, 'provider'];
/** Of the commands that may create a cluster. */
export const CREATING: Names = [...OF_NODE_IDS, 'nodes', 'duration', 'grace'];
/** Of the commands that hold a node id for other processes. */
const OF_HOLDING: Names = ['on-retire', 'node-id', 'zookeeper-required', 'ready-timeout'];
/** Of the commands that acquire a node id. */
export const ACQUIRING: Names = [
  ...OF_NODE_IDS,
  ...namesOf(LEASE_SETTINGS).filter((name) => !OF_HOLDING.includes(name)),
];
/** Of the commands that have a console. */
export const OF_CONSOLE: Names = [...namesOf(HTTP_SETTINGS), 'config-root', 'service-base-path'];
export const HOLDING: Names = [...ACQUIRING, ...OF_CONSOLE, ...OF_HOLDING];
/** Of services. */
export const OF_SERVICES: Names = [...OF_ZOOKEEPER, 'service-base-path'];
