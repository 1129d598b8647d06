export { type InstancePicker, type KeyOwners, ownerOf } from './instance-target.js';
export {
  type ProvidersByHost,
  type ServiceLookupOptions,
  type ServiceRequestOptions,
  serviceLookup,
  serviceRequestOptions,
} from './node-requests.js';
export type { RoutingOptions, ServiceHosts } from './routing-options.js';
export {
  type ComposableDispatcher,
  type FetchDispatcher,
  type ServiceInterceptor,
  serviceDispatcher,
  serviceInterceptor,
} from './service-dispatcher.js';
