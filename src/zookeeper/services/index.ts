// Service discovery in Curator's layout: registration, queries, caches, providers.

export type { DownPolicy } from './down-instances.js';
export type { OnUnreadable, UnreadableReports } from './instance/instance-codec.js';
export {
  type DecodedInstance,
  decodeInstance,
  encodeInstance,
  type InstanceZnode,
} from './instance/instance-codec.js';
export {
  checkInstance,
  type InstanceSources,
  newInstance,
  type ServiceInstanceInit,
} from './instance/new-instance.js';
export {
  jsonPayload,
  type PayloadCodec,
  type SpringInstance,
  type SpringInstanceJson,
  springInstancePayload,
  springPayload,
} from './instance/payload-codec.js';
export type { ServiceInstance, ServiceType, UriPart, UriSpec } from './instance/service-instance.js';
export { buildUri, instanceUrl, parseUriSpec, type UriVariables } from './instance/uri-spec.js';
export type { RegistrationEvent } from './registered-znode.js';
export {
  fixedInstances,
  type InstanceSource,
  ServiceCache,
  type ServiceCacheOptions,
} from './service-cache.js';
export {
  type InstanceWithStat,
  type ServiceCall,
  ServiceDirectory,
  type ServiceDirectoryOptions,
} from './service-directory.js';
export { ServiceDiscovery, type ServiceDiscoveryOptions, type ServiceEvent } from './service-discovery.js';
export { DEFAULT_BASE_PATH } from './service-path.js';
export {
  NoInstanceError,
  type NoInstanceFacts,
  type ProviderChoices,
  ServiceProvider,
  type ServiceProviderOptions,
} from './service-provider.js';
export {
  type ProviderStrategy,
  parseStrategy,
  random,
  roundRobin,
  STRATEGY_NAMES,
  type StrategyContext,
  type StrategyFactory,
  sticky,
  type WeightedOptions,
  weighted,
} from './strategies.js';
