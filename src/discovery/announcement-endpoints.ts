import { ConfigError } from '../errors.js';
import { shortened } from './services/shortened.js';
import { entryPath } from './tree-paths.js';

/** An endpoint, under a key where several nodes implement it differently. */
export interface AnnouncedEndpoint {
  readonly endpoint: string;
  readonly key?: string | undefined;
  /**
   * Stand in the znode's JSON, where they win over `service`, `address` and `port` of the announcement: an endpoint may listen elsewhere than
   * its service. What tells of the lease (`taskId`, `nodeId`, `version`) they cannot replace. At most 64 KiB of JSON.
   *
   * @default none
   */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
}

const NAMES: readonly string[] = ['endpoint', 'key', 'fields'] satisfies (keyof AnnouncedEndpoint)[];
/** What has to be read by everybody who looks for the endpoint. */
const MOST_FIELDS_BYTES = 65_536;
/** How `entryPath` calls what it is given. */
const LABELS: Readonly<Partial<Record<string, string>>> = { endpoint: 'endpoint', 'endpoint key': 'key' };

/**
 * Checks endpoints to announce, also in what the compiler sees to in TypeScript.
 *
 * @throws {ConfigError} that names the first that is wrong as `endpoints[0].key`, its value, and what was expected
 */
export function checkEndpoints(endpoints: unknown): void {
  if (!Array.isArray(endpoints)) throw new ConfigError('endpoints', shortened(endpoints), "an array such as [{ endpoint: 'pay' }]");
  for (const [index, each] of endpoints.entries()) checkEndpoint(each, `endpoints[${index}]`);
}

function checkEndpoint(given: unknown, label: string): void {
  if (!isObject(given)) throw new ConfigError(label, shortened(given), "an object such as { endpoint: 'pay' }");
  const other = Object.keys(given).find((name) => !NAMES.includes(name));
  if (other !== undefined) throw new ConfigError(label, shortened(other), `one of ${NAMES.join(', ')}`);
  const { endpoint, key, fields } = given;
  if (typeof endpoint !== 'string') throw new ConfigError(`${label}.endpoint`, shortened(endpoint), 'a name');
  if (key !== undefined && typeof key !== 'string') throw new ConfigError(`${label}.key`, shortened(key), 'a name, or none');
  try {
    entryPath({ kind: 'endpoint', endpoint, key }, 0);
  } catch (error) {
    const part = error instanceof ConfigError ? LABELS[error.setting] : undefined;
    throw error instanceof ConfigError && part !== undefined ? new ConfigError(`${label}.${part}`, error.value, error.expected) : error;
  }
  if (fields !== undefined) checkFields(fields, `${label}.fields`);
}

function checkFields(fields: unknown, label: string): void {
  if (!isObject(fields)) throw new ConfigError(label, shortened(fields), 'an object');
  // It would speak for the whole znode, and leave out who announces it.
  if (typeof fields.toJSON === 'function') throw new ConfigError(label, shortened(fields), 'an object without a method toJSON');
  let text: string;
  try {
    text = JSON.stringify(fields);
  } catch {
    throw new ConfigError(label, shortened(fields), 'something that JSON can hold');
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_FIELDS_BYTES) throw new ConfigError(label, shortened(text), `at most ${MOST_FIELDS_BYTES} bytes of JSON, not ${bytes}`);
}

function isObject(value: unknown): value is Readonly<Partial<Record<string, unknown>>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
