export { parseDuration, parseHostPort, parseInteger } from '../settings/values.js';
