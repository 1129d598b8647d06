import { LeaseUnreadableError, parseObject } from '../model/lease-codec.js';
import type { LeaseState } from '../model/lease-state.js';

/** The content of a lease object of Camunda 8. */
export interface CamundaLease {
  /**
   * In nodelease's terms. `retired`: given up by scaling down. A held lease has the duration 0, since no
   * object contains it, and the expiry by its holder's wall clock. A task id of more than 200 characters is
   * cut.
   */
  readonly lease: LeaseState;
  /**
   * The node id in the body. The holder renews the object of this id, whatever the key says. Undefined
   * without a holder.
   */
  readonly nodeId: number | undefined;
  /** True if it is missing, as in versions before 8.9.0. */
  readonly acquirable: boolean;
}

type Metadata = Readonly<Record<string, string>>;

/** The longest text that is shown, in characters. */
const LONGEST_SHOWN = 200;

/** Java's `int` and `long`. */
const MAX_INT = 2 ** 31 - 1;
const MAX_LONG = 2 ** 63;
/** The last millisecond of JavaScript's dates. A later time is read as this one. */
const END_OF_DATES = 8.64e15;

/**
 * Reads a lease object of Camunda 8.9, or of the alphas before it. It refuses what Camunda's own reader
 * (Jackson, and further checks) refuses. Versions beyond 2^53 are rounded. There is no encoder: these objects
 * are never written.
 *
 * @throws {LeaseUnreadableError} when Camunda cannot read it
 */
export function decodeCamundaLease(body: string, metadata: Metadata): CamundaLease {
  const acquirable = metadata.acquirable === undefined || metadata.acquirable.toLowerCase() === 'true';
  if (body === '') return { lease: decodeEmpty(metadata, acquirable), nodeId: undefined, acquirable };
  const fields = fieldsOf(parseObject(body), 'body', [
    'taskId',
    'timestamp',
    'nodeInstance',
    'knownVersionMappings',
  ]);
  const { taskId, nodeInstance, knownVersionMappings } = fields;
  if (typeof taskId !== 'string' || taskId === '') throw unusable('taskId', 'a non-empty string', taskId);
  const node = fieldsOf(nodeInstance, 'nodeInstance', ['id', 'version']);
  const { mappingsByNodeId } = fieldsOf(knownVersionMappings, 'knownVersionMappings', ['mappingsByNodeId']);
  const version = readLong(node.version, 'nodeInstance.version');
  const timestamp = Math.min(readLong(fields.timestamp ?? 0, 'timestamp', -MAX_LONG), END_OF_DATES);
  const lease: LeaseState = {
    ...{ kind: 'held', taskId: cut(taskId), version, timestamp: Math.max(0, timestamp), durationMs: 0 },
    knownNodes: Object.fromEntries(
      Object.entries(fieldsOf(mappingsByNodeId, 'mappingsByNodeId')).map(readKnown),
    ),
    ...{ nonce: '', renewal: 0, acquiredAt: 0, idWidth: 0, narrowIdsUntil: 0 },
  };
  const nodeId = readLong(node.id ?? 0, 'nodeInstance.id', 0, MAX_INT);
  if (Object.keys(metadata).length === 0) throw new LeaseUnreadableError('has a body and no metadata');
  checkSame('version', version, readMetadataVersion(metadata));
  checkSame('task', taskId, metadata.taskid);
  return { lease, nodeId, acquirable };
}

/**
 * Reads the object of a restore: the node ids that have been restored from that backup.
 * @throws {LeaseUnreadableError}
 */
export function decodeCamundaRestore(body: string): readonly number[] {
  const { restoredNodes } = fieldsOf(parseObject(body), 'body', ['restoreId', 'restoredNodes']);
  if (!Array.isArray(restoredNodes)) throw unusable('restoredNodes', 'a list of node ids', restoredNodes);
  return restoredNodes.map((id) => readLong(id, 'restoredNodes', 0, MAX_INT));
}

function decodeEmpty(metadata: Metadata, acquirable: boolean): LeaseState {
  const version = Object.keys(metadata).length === 0 ? 0 : readMetadataVersion(metadata);
  const tombstone = { version, timestamp: 0, durationMs: 0, stampedUntil: undefined };
  if (!acquirable) return { kind: 'retired', ...tombstone, generation: Number.POSITIVE_INFINITY };
  return version === 0 ? { kind: 'vacant' } : { kind: 'released', ...tombstone };
}

function readMetadataVersion({ version }: Metadata): number {
  if (version !== undefined && /^\+?\d+$/.test(version) && Number(version) <= MAX_LONG)
    return Number(version);
  const found = version === undefined ? 'none' : quoted(version);
  throw new LeaseUnreadableError(
    `has no usable version in its metadata: expected a whole number, got ${found}`,
  );
}

function checkSame(name: string, inBody: unknown, inMetadata: unknown): void {
  if (inBody === inMetadata) return;
  const other = inMetadata === undefined ? 'none' : quoted(inMetadata);
  throw new LeaseUnreadableError(
    `has the ${name} ${quoted(inBody)} in its body and ${other} in its metadata`,
  );
}

/** The fields of an object. With `known`, other fields are refused. */
function fieldsOf(value: unknown, name: string, known?: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw unusable(name, 'an object', value);
  const unknown = known && Object.keys(value).find((field) => !known.includes(field));
  if (unknown === undefined) return value as Record<string, unknown>;
  throw new LeaseUnreadableError(`has the field ${quoted(unknown)} in its ${name}, which Camunda refuses`);
}

/** A whole number. Like Jackson, it accepts a number in a string, and cuts off a fraction. */
function readLong(value: unknown, name: string, min = 0, max = MAX_LONG): number {
  const isDigits = typeof value === 'string' && /^\s*-?\d+\s*$/.test(value);
  const number = isDigits ? Number(value) : typeof value === 'number' ? Math.trunc(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw unusable(name, `a whole number from ${min} to ${max}`, value);
}

/** The key is as it was written: 8.10 names the zones of other brokers there. */
function readKnown([key, version]: [string, unknown]): [key: string, version: number] {
  return [key, readLong(version, 'mappingsByNodeId')];
}

function unusable(name: string, expected: string, value: unknown): LeaseUnreadableError {
  return new LeaseUnreadableError(`has no usable "${name}": expected ${expected}, got ${quoted(value)}`);
}

/** Camunda does not limit texts. A long text is shown as its beginning and its length. */
function cut(text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}… (${text.length} characters)` : text;
}

function quoted(value: unknown): string {
  return cut(JSON.stringify(value) ?? 'nothing');
}
