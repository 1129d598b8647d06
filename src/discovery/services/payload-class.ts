import { ConfigError } from '../../errors.js';
import { shortened } from './shortened.js';
import { isSpringPayload, type SpringInstance, springInstancePayload } from './spring-payload.js';

/** The classes that every Java reader takes for a map. */
export const MAP_CLASSES: readonly unknown[] = ['java.util.TreeMap', 'java.util.HashMap', 'java.util.LinkedHashMap'];
/** How every Java reader has a payload that is told with its class before it: `["java.lang.Long", 7]`. */
const TYPED_CLASSES: readonly unknown[] = ['java.util.ArrayList', 'java.lang.Long'];

/**
 * Checks that the class which a payload names, if it names one, is there for every Java reader, or is Spring's with all that Spring reads.
 *
 * @throws {ConfigError} that names the field of the payload
 */
export function checkPayloadClass(payload: unknown): void {
  if (typeof payload !== 'object' || payload === null) return;
  if (Array.isArray(payload)) {
    if (!TYPED_CLASSES.includes(payload[0])) {
      throw new ConfigError('instance.payload[0]', shortened(payload[0]), `${TYPED_CLASSES.join(' or ')}, as Java reads no other array`);
    }
  } else if (isSpringPayload(payload)) {
    springInstancePayload(payload as unknown as SpringInstance);
  } else if (Object.hasOwn(payload, '@class')) {
    const type = (payload as { '@class': unknown })['@class'];
    if (!MAP_CLASSES.includes(type)) {
      throw new ConfigError('instance.payload.@class', shortened(type), 'java.util.TreeMap or another map, which every Java reader has');
    }
  }
}
