export { environmentName } from '../settings/settings-table.js';
