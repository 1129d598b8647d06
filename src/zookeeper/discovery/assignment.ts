import { BYTES, checkArguments, checked, maybe, TEXT, whole } from '../../core/base/arguments.js';
import { parseExactJson } from '../../core/base/fields.js';

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
