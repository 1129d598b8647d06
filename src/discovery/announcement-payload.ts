import { ConfigError } from '../base/errors.js';
import { MAP_CLASSES, payloadJson } from '../services/payload-json.js';
import { Kind, shortened } from '../services/shortened.js';

/** How the payload of an instance is written: as a map, or as Spring Cloud Zookeeper writes and reads its own. */
export type PayloadType = 'map' | 'spring';

/** The servers refuse a packet of 1 MB; a reader reads one payload of every instance of a service. */
const MAX_PAYLOAD_BYTES = 65_536;

/** What is added to every payload. */
const OWN_FIELDS: readonly string[] = ['nodeId', 'version'];

/**
 * What a node says of itself beside its id and version, as the JSON that is written; of what has a `toJSON`, what that says.
 *
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} when JSON cannot hold it, Java's readers could not read it, or it holds what is added to it
 */
export function checkPayload(payload: unknown, type: PayloadType, label: string): Readonly<Record<string, unknown>> {
  const refused = (shown: unknown, why: string) => new ConfigError(label, shown, `a JSON object such as {"weight":5}${why}`);
  const noArray = () => refused(new Kind('an array'), ' (Java services cannot read an array)');
  if (Array.isArray(payload)) throw noArray();
  const json = payloadJson(payload, label);
  const text = JSON.stringify(json);
  const expected = (why: string) => refused(shortened(text), why);
  if (typeof json !== 'object' || json === null) throw expected('');
  if (Array.isArray(json)) throw noArray();
  const fields = json as Readonly<Record<string, unknown>>;
  const own = OWN_FIELDS.find((name) => Object.hasOwn(fields, name));
  if (own !== undefined) throw expected(` without ${own}, which is added to it`);
  if (Object.hasOwn(fields, '@class')) {
    if (type === 'spring') throw expected(' without @class, which is added to it');
    if (!MAP_CLASSES.includes(fields['@class'])) throw expected(' whose @class, if there is one, is java.util.TreeMap or another map');
  }
  if (Buffer.byteLength(text) > MAX_PAYLOAD_BYTES) throw expected(` of at most ${MAX_PAYLOAD_BYTES} bytes`);
  return fields;
}
