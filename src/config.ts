export { ENDPOINTS_VARIABLE } from './settings/endpoints.js';
export { type LogFormat, type LogLevel, type RetirePolicy, readSettings, type Settings } from './settings/settings.js';
export { environmentName, SETTINGS, type SettingName } from './settings/settings-table.js';
export { announcingProblem, type ZooKeeperSettings } from './settings/zookeeper-settings.js';
