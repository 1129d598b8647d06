export { type WriteAccess, writeAccess } from './access.js';
export { type BearerToken, BearerTokenFile } from './bearer-token.js';
export { type DiscoveryAppOptions, discoveryApp } from './discovery-app.js';
export { DISCOVERY_OPENAPI } from './discovery-openapi.js';
export { type DiscoveryServer, type DiscoveryServerEvent, type DiscoveryServerOptions, startDiscoveryServer } from './discovery-server.js';
export { type HttpListener, type ListenOptions, listen } from './listen.js';
export {
  DEFAULT_LISTEN_ADDRESS,
  formatListenAddress,
  isLoopback,
  type ListenAddress,
  parseListenAddress,
} from './listen-address.js';
export type { OpenApiDocument } from './openapi.js';
export { type AnyInstance, type PooledProvider, ProviderPool, type ProviderPoolOptions } from './provider-pool.js';
