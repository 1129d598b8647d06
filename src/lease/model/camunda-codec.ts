import { parseExactJson } from '../../base/exact-json.js';
import { LeaseUnreadableError } from './lease-codec.js';
import type { KnownNodes } from './lease-state.js';

/** Camunda 8 puts it beside its lease objects once all of them are there. */
export const CAMUNDA_MARKER = 'node-ids-initialized';

/** What a lease object of Camunda 8 says. */
export interface CamundaLease {
  /** `given-up`: scaled down, no task may take it. */
  readonly kind: 'free' | 'held' | 'released' | 'given-up';
  /** The highest version used so far; 0 for none. */
  readonly version: number;
  /** Undefined without a holder, as the two below. */
  readonly taskId: string | undefined;
  /** Expiry by the holder's own wall clock, milliseconds since the Unix epoch. */
  readonly timestamp: number | undefined;
  /** The node id in the body: the holder renews the object of that one, whatever the key says. */
  readonly nodeId: number | undefined;
  readonly knownNodes: KnownNodes;
  /** Versions before 8.9.0 do not say it: true. */
  readonly acquirable: boolean;
}

/** What `restore/<id>` says: which node ids have been restored from that backup. */
export interface CamundaRestore {
  readonly restoreId: string;
  readonly restoredNodes: readonly number[];
}

const FREE: CamundaLease = {
  ...{ kind: 'free', version: 0, taskId: undefined, timestamp: undefined, nodeId: undefined },
  ...{ knownNodes: {}, acquirable: true },
};
/** Java's `int` and `long`. */
const MAX_INT = 2n ** 31n - 1n;
const MAX_LONG = 2n ** 63n - 1n;
/** Maximum number of characters that are shown of a text that is not JSON. */
const SHOWN = 100;

/**
 * Reads a lease object of Camunda 8.9, or of the alphas before it, and refuses what Camunda's own reader (Jackson, and checks beside it) refuses.
 * Versions beyond 2^53 are rounded. There is no encoder: these objects are never written.
 *
 * @throws {LeaseUnreadableError} when Camunda cannot read it
 */
export function decodeCamundaLease(body: string, metadata: Readonly<Record<string, string>>): CamundaLease {
  const hasMetadata = Object.keys(metadata).length > 0;
  if (body === '') return hasMetadata ? decodeEmpty(metadata) : FREE;
  const fields = fieldsOf(parse(body), '', ['taskId', 'timestamp', 'nodeInstance', 'knownVersionMappings']);
  const { taskId } = fields;
  if (typeof taskId !== 'string' || taskId === '') throw unusable('taskId', 'a non-empty string', taskId);
  const node = fieldsOf(fields.nodeInstance, 'nodeInstance', ['id', 'version']);
  const mappings = fieldsOf(fields.knownVersionMappings, 'knownVersionMappings', ['mappingsByNodeId']);
  const known = fieldsOf(mappings.mappingsByNodeId, 'mappingsByNodeId');
  const version = integer(node.version, 'nodeInstance.version', 0n, MAX_LONG);
  const lease: CamundaLease = {
    kind: 'held',
    taskId,
    version: Number(version),
    timestamp: Number(integer(fields.timestamp ?? 0, 'timestamp', -MAX_LONG, MAX_LONG)),
    nodeId: Number(integer(node.id ?? 0, 'nodeInstance.id', 0n, MAX_INT)),
    knownNodes: Object.fromEntries(Object.entries(known).map(readKnown)),
    acquirable: isAcquirable(metadata),
  };
  if (!hasMetadata) throw new LeaseUnreadableError('has a body and no metadata');
  const told = metadataVersion(metadata);
  if (told !== version) throw new LeaseUnreadableError(`has the version ${version} in its body and ${told} in its metadata`);
  if (metadata.taskid !== taskId) {
    const other = metadata.taskid === undefined ? 'none' : JSON.stringify(metadata.taskid);
    throw new LeaseUnreadableError(`has the task ${JSON.stringify(taskId)} in its body and ${other} in its metadata`);
  }
  return lease;
}

/** Reads the object of a restore. @throws {LeaseUnreadableError} */
export function decodeCamundaRestore(body: string): CamundaRestore {
  const { restoreId, restoredNodes } = fieldsOf(parse(body), '', ['restoreId', 'restoredNodes']);
  if (typeof restoreId !== 'string' && typeof restoreId !== 'number') throw unusable('restoreId', 'a string', restoreId);
  if (!Array.isArray(restoredNodes)) throw unusable('restoredNodes', 'a list of node ids', restoredNodes);
  return { restoreId: String(restoreId), restoredNodes: restoredNodes.map((id) => Number(integer(id, 'restoredNodes', 0n, MAX_INT))) };
}

function decodeEmpty(metadata: Readonly<Record<string, string>>): CamundaLease {
  const version = Number(metadataVersion(metadata));
  if (!isAcquirable(metadata)) return { ...FREE, kind: 'given-up', version, acquirable: false };
  return { ...FREE, kind: version === 0 ? 'free' : 'released', version };
}

function metadataVersion({ version }: Readonly<Record<string, string>>): bigint {
  if (version !== undefined && /^\+?\d+$/.test(version) && BigInt(version) <= MAX_LONG) return BigInt(version);
  const found = version === undefined ? 'none' : JSON.stringify(version);
  throw new LeaseUnreadableError(`has no usable version in its metadata: expected a whole number, got ${found}`);
}

function isAcquirable({ acquirable = 'true' }: Readonly<Record<string, string>>): boolean {
  return acquirable.toLowerCase() === 'true';
}

function parse(body: string): unknown {
  try {
    return parseExactJson(body);
  } catch {
    throw new LeaseUnreadableError(`is not JSON: ${JSON.stringify(body.slice(0, SHOWN))}`);
  }
}

/** The fields of an object, which may be these only; any without `known`. */
function fieldsOf(value: unknown, name: string, known?: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw name === '' ? new LeaseUnreadableError('is not a JSON object') : unusable(name, 'an object', value);
  }
  const unknown = known && Object.keys(value).find((field) => !known.includes(field));
  if (unknown !== undefined) {
    throw new LeaseUnreadableError(`has the field ${JSON.stringify(name === '' ? unknown : `${name}.${unknown}`)}, which Camunda refuses`);
  }
  return value as Record<string, unknown>;
}

/** A whole number; as Jackson does, one in a text is taken, and a fraction is cut off. */
function integer(value: unknown, name: string, min: bigint, max: bigint): bigint {
  const isNumber = typeof value === 'number' || (typeof value === 'string' && /^-?\d+$/.test(value.trim()));
  const found = isNumber ? BigInt(typeof value === 'number' ? Math.trunc(value) : value.trim()) : undefined;
  if (found !== undefined && found >= min && found <= max) return found;
  throw unusable(name, `a whole number from ${min} to ${max}`, value);
}

function readKnown([id, version]: [string, unknown]): [id: string, version: number] {
  integer(id, 'mappingsByNodeId', 0n, MAX_INT);
  return [id, Number(integer(version, 'mappingsByNodeId', 0n, MAX_LONG))];
}

function unusable(name: string, expected: string, value: unknown): LeaseUnreadableError {
  return new LeaseUnreadableError(`has no usable "${name}": expected ${expected}, got ${JSON.stringify(value) ?? 'nothing'}`);
}
