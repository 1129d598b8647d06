import { ConfigError } from '../../../core/base/errors.js';
import { isObject } from '../../../core/base/fields.js';
import { checkInstance } from '../../../zookeeper/services/instance/new-instance.js';
import { checkPayloadClass } from '../../../zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../zookeeper/services/instance/service-instance.js';
import { shortened } from '../../../zookeeper/services/shortened.js';

/**
 * An instance as Curator's discovery server writes it. Its clients fail where address or payload is
 * missing, and expect no port that is null: what is undefined is left out of the JSON. Not among Curator's
 * fields: `uriSpec`, so that what is read can be written back, and `enabled` where it is false.
 */
export function instanceJson(instance: ServiceInstance) {
  const { address = null, payload = null, enabled } = instance;
  return { ...instance, address, payload, enabled: enabled ? undefined : false };
}

/**
 * The instance that a request wants to be registered; unknown fields are ignored, as Curator's server does,
 * and null is as good as absent. Of its payload only the class is checked here, the rest when it is written.
 *
 * @param json the body, parsed
 * @param place the names in the path, and when the request comes, in milliseconds since the Unix epoch
 * @throws {ConfigError} naming the field, the value and what was expected
 */
export function instanceOf(
  json: unknown,
  { name, id, now }: { readonly name: string; readonly id: string; readonly now: number },
): ServiceInstance {
  if (!isObject(json)) throw new ConfigError('the body', shortened(json), 'a JSON object');
  const fields: Readonly<Record<string, unknown>> = Object.fromEntries(
    Object.entries(json).filter(([, value]) => value !== null),
  );
  if (fields.name !== name) throw wrong('name', fields, `${JSON.stringify(name)}, as in the path`);
  if (fields.id !== id) throw wrong('id', fields, `${JSON.stringify(id)}, as in the path`);
  const { address, port, sslPort, payload, registrationTimeUTC = now } = fields;
  const { serviceType, uriSpec, enabled = true } = fields;
  if (serviceType !== 'STATIC' && serviceType !== 'PERMANENT') {
    const why = 'a dynamic one goes with the session of the client that registers it, and HTTP has none';
    throw wrong('serviceType', fields, `"STATIC" or "PERMANENT" (${why})`);
  }
  const instance = {
    name,
    id,
    address,
    port,
    sslPort,
    payload,
    registrationTimeUTC,
    serviceType,
    uriSpec,
    enabled,
  } as ServiceInstance;
  checkInstance(instance);
  checkPayloadClass(instance.payload);
  return instance;
}

function wrong(field: string, fields: Readonly<Record<string, unknown>>, expected: string): ConfigError {
  return new ConfigError(`instance.${field}`, shortened(fields[field]), expected);
}
