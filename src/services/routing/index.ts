export type { InstancePicker } from './instance-target.js';
export type { RoutingOptions, ServiceHosts } from './routing-options.js';
export { type ComposableDispatcher, type FetchDispatcher, serviceDispatcher } from './service-dispatcher.js';
export { type ServiceInterceptor, serviceInterceptor } from './service-interceptor.js';
export { type ProvidersByHost, type ServiceLookupOptions, serviceLookup } from './service-lookup.js';
export { type ServiceRequestOptions, serviceRequestOptions } from './service-request-options.js';
