import { checkArguments, checkKnown, NAME, whole } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import type { Lease } from '../model/lease.js';
import { MAX_NODE_IDS } from '../model/lease-state.js';

/**
 * A node id from another source, such as a StatefulSet's ordinal: the same handle, without a store or an
 * expiry. The caller ensures that no two processes get the same id.
 *
 * @throws {ConfigError} when `id` or `version` is out of range
 */
export function staticLease(options: {
  readonly id: number;
  readonly taskId: string;
  /** @default 1 */
  readonly version?: number | undefined;
}): Lease {
  checkKnown(options, ['id', 'taskId', 'version']);
  const { id, taskId, version = 1 } = options;
  checkArguments(
    { 'node id': id, version, taskId },
    { 'node id': whole(0, MAX_NODE_IDS - 1), version: whole(1), taskId: NAME },
  );
  let valid = true;
  const release = async () => {
    valid = false;
  };
  return {
    id,
    version,
    taskId,
    signal: new AbortController().signal,
    retiring: new AbortController().signal,
    deadline: Number.POSITIVE_INFINITY,
    tenureTime: undefined,
    home: undefined,
    isValid: () => valid,
    setKnownNodes: () => undefined,
    release,
    [Symbol.asyncDispose]: release,
  };
}

/**
 * The ordinal at the end of a host name, as a StatefulSet gives it: 3 for `web-3`.
 *
 * @throws {ConfigError} when the name does not end in one
 */
export function ordinalOf(hostname: string): number {
  const digits = typeof hostname === 'string' ? /^[^.]*-(0|[1-9]\d*)(?:\.|$)/.exec(hostname)?.[1] : undefined;
  if (digits === undefined)
    throw new ConfigError('host name', hostname, 'a name that ends in an ordinal, such as web-3');
  return Number(digits);
}
