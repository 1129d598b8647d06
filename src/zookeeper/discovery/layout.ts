import { BYTES, checkArguments, checked, maybe, oneOf, TEXT, whole } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { parseExactJson } from '../../core/base/fields.js';
import { clusterNodeIdOf, groupOf, indexOf } from '../../core/id/cluster-node-id.js';
import { checkZnodeName } from '../client/znode-path.js';
import { DISCOVERY_PATH } from '../services/service-path.js';

export { DISCOVERY_PATH };

/** The assignment: one group znode for each 256 cluster node ids, the ids below it. */
export const NODES_PATH = `${DISCOVERY_PATH}/nodes`;
/**
 * The records of id time windows, where node ids come from ZooKeeper alone: a persistent znode each, in
 * groups as the nodes.
 */
export const STAMPS_PATH = `${DISCOVERY_PATH}/stamps`;
export const SERVICES_PATH = `${DISCOVERY_PATH}/servicetypes`;
export const ENDPOINTS_PATH = `${DISCOVERY_PATH}/endpoints`;

/** The key of an endpoint without a key. */
const NO_KEY = '_';

/**
 * The entries that a task can announce, each at most once: the node id that it holds, a service, or an
 * endpoint of that service.
 */
export type TreeEntry =
  | { readonly kind: 'node' }
  | { readonly kind: 'service'; readonly service: string }
  | {
      readonly kind: 'endpoint';
      readonly endpoint: string;
      /** Distinguishes several implementations of one endpoint. @default none */
      readonly key?: string | undefined;
      /** The service that offers it, the first part of the reference in the tree. */
      readonly service?: string | undefined;
    };

/**
 * The path of an entry of a node.
 *
 * - `nodes/<GG>/<II>`: group and index of the cluster node id (the node id + 8), two upper-case hex digits
 *   each;
 * - `servicetypes/<service>/<node id>`: decimal;
 * - `endpoints/<endpoint>/<key or _>/<service>:<node id>`, or the node id alone where no service is named.
 *
 * @param nodeId the leased one, 0 … 65527
 * @throws {ConfigError} when a name cannot be a znode's, or the node id is out of range
 */
export function entryPath(entry: TreeEntry, nodeId: number): string {
  checked(entry, { kind: oneOf('node', 'service', 'endpoint') }, 'entry');
  const clusterNodeId = clusterNodeIdOf(nodeId);
  switch (entry.kind) {
    case 'node':
      return `${groupPath(groupOf(clusterNodeId))}/${hexPair(indexOf(clusterNodeId))}`;
    case 'service':
      return `${SERVICES_PATH}/${checkZnodeName(entry.service, 'service')}/${nodeId}`;
    case 'endpoint': {
      const { endpoint, key, service } = entry;
      const ref = service === undefined ? String(nodeId) : `${checkZnodeName(service, 'service')}:${nodeId}`;
      return `${endpointPath(endpoint, key)}/${ref}`;
    }
  }
}

/**
 * The parent of the nodes that offer an endpoint.
 * @throws {ConfigError} when a name cannot be a znode's
 */
export function endpointPath(endpoint: string, key?: string): string {
  if (key === NO_KEY)
    throw new ConfigError('endpoint key', key, `a key other than ${NO_KEY}, which stands for none`);
  return `${endpointKeysPath(endpoint)}/${key === undefined ? NO_KEY : checkZnodeName(key, 'endpoint key')}`;
}

/**
 * The parent of the keys of an endpoint, {@link NO_KEY} among them.
 * @throws {ConfigError} when the name cannot be a znode's
 */
export const endpointKeysPath = (endpoint: string) =>
  `${ENDPOINTS_PATH}/${checkZnodeName(endpoint, 'endpoint')}`;

/** The znode of a group of 256 cluster node ids. */
export const groupPath = (group: number) => `${NODES_PATH}/${hexPair(group)}`;

/** The parent of the records of a group's id time windows. */
export const stampGroupPath = (group: number) => `${STAMPS_PATH}/${hexPair(group)}`;

/** Two upper-case hex digits, as groups and indices are named. */
export const hexPair = (value: number) => value.toString(16).toUpperCase().padStart(2, '0');

/** The number in a name of two hex digits; undefined for any other name. */
export function parseHexPair(name: string): number | undefined {
  return /^[0-9A-Fa-f]{2}$/.test(name) ? Number.parseInt(name, 16) : undefined;
}

/** The JSON in every znode of the discovery tree: the holder of a node id, and the version. */
export interface Assignment {
  readonly taskId: string;
  readonly nodeId: number;
  /** The fencing token of the tenure. */
  readonly version: number;
  /** Further fields, such as `service`, `address`, `port`, `idWidth`, and others' own. */
  readonly [field: string]: unknown;
}

/**
 * The JSON of an assignment, with the three fields that all readers need first. A claim has no version before
 * it exists.
 */
export function encodeAssignment(
  assignment: Omit<Assignment, 'version'> & { readonly version: number | undefined },
): string {
  const { taskId, nodeId, version, ...more } = checked(
    assignment,
    { taskId: TEXT, nodeId: whole(0), version: maybe(whole(0)) },
    'assignment',
    [],
  );
  return JSON.stringify({ taskId, nodeId, version, ...more });
}

/**
 * The assignment in a znode's data; undefined for anything that does not name task, node id and version. An
 * integer beyond ±(2^53 − 1) is the text of its digits. Never throws.
 *
 * @param otherwise the version of one that names none
 */
export function decodeAssignment(data: Buffer, otherwise?: number): Assignment | undefined {
  checkArguments({ data, otherwise }, { data: BYTES, otherwise: maybe(whole(0)) });
  const fields = fieldsOf(data);
  const { taskId, nodeId, version = otherwise } = fields;
  if (typeof taskId !== 'string' || !isCount(nodeId) || !isCount(version)) return undefined;
  return { ...fields, taskId, nodeId, version };
}

/**
 * The fields of a znode's JSON object, with integers as in {@link decodeAssignment}; empty for anything else.
 * Never throws.
 */
export function fieldsOf(data: Buffer | string): Readonly<Record<string, unknown>> {
  try {
    const fields = parseExactJson(data.toString());
    return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
