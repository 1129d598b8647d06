export { parseEndpointName } from '../settings/endpoints.js';
