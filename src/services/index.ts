// Service discovery in Curator's layout: registration, queries, caches, providers.

export type { DownPolicy } from './down-instances.js';
export { type DecodedInstance, decodeInstance, encodeInstance, type InstanceZnode } from './instance-codec.js';
export { fixedInstances, type InstanceSource } from './instance-source.js';
export { checkInstance, newInstance, type ServiceInstanceInit } from './new-instance.js';
export { NoInstanceError, type NoInstanceFacts } from './no-instance-error.js';
export { jsonPayload, type PayloadCodec } from './payload-codec.js';
export type { RegistrationEvent } from './registered-znode.js';
export { ServiceCache, type ServiceCacheOptions } from './service-cache.js';
export { type ServiceCall, ServiceDirectory, type ServiceDirectoryOptions } from './service-directory.js';
export { ServiceDiscovery, type ServiceDiscoveryOptions, type ServiceEvent } from './service-discovery.js';
export type { ServiceInstance, ServiceType, UriPart, UriSpec } from './service-instance.js';
export { DEFAULT_BASE_PATH } from './service-path.js';
export { type ProviderChoices, ServiceProvider, type ServiceProviderOptions } from './service-provider.js';
export { type SpringInstance, type SpringInstanceJson, springInstancePayload, springPayload } from './spring-payload.js';
export { type LeastRecentlyFailedOptions, leastRecentlyFailed } from './strategies/least-recently-failed.js';
export { parseStrategy, STRATEGY_NAMES } from './strategies/parse-strategy.js';
export type { ProviderStrategy, StrategyContext, StrategyFactory } from './strategies/provider-strategy.js';
export { random } from './strategies/random.js';
export { roundRobin } from './strategies/round-robin.js';
export { sticky } from './strategies/sticky.js';
export { type WeightedOptions, weighted } from './strategies/weighted.js';
export type { OnUnreadable, UnreadableReports } from './unreadable-reports.js';
export { buildUri, instanceUrl, parseUriSpec, type UriVariables } from './uri-spec.js';
