import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import {
  newInstance,
  type ServiceInstanceInit,
} from '../../../../src/zookeeper/services/instance/new-instance.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { buildUri } from '../../../../src/zookeeper/services/instance/uri-spec.js';
import type { JavaInstance } from '../../../support/peers/curator-peer.js';

/** An instance of ours; what is not given is of no matter. */
export function instanceOf<P = unknown>(init: Partial<ServiceInstanceInit<P>> = {}): ServiceInstance<P> {
  return newInstance<P>(
    { name: 'orders', id: 'ours', address: '10.0.0.7', port: 8080, ...init },
    { clock: systemClock, random: systemRandom },
  );
}

/** What Java may report of an instance of ours. */
export function asJava(instance: ServiceInstance, more: Partial<JavaInstance> = {}): JavaInstance {
  const { name, id, address, port, sslPort, payload, registrationTimeUTC, serviceType, uriSpec, enabled } =
    instance;
  return {
    ...{
      name,
      id,
      address: address ?? null,
      port: port ?? null,
      sslPort: sslPort ?? null,
      payload: payload ?? null,
    },
    payloadClass: null,
    ...{
      registrationTimeUTC,
      serviceType,
      url: uriSpec === undefined ? null : buildUri(uriSpec, instance),
      enabled,
    },
    ...more,
  };
}
