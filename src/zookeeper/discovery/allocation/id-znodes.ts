import { END_OF_TIME } from '../../../core/lease/model/lease-state.js';
import type { BoundSession } from '../../client/bound-session.js';
import type { SessionDeadline } from '../../client/session-deadline.js';
import type { MultiOperation, Znode } from '../../client/zookeeper.js';
import { ZooKeeperError } from '../../client/zookeeper-error.js';
import { encodeAssignment, fieldsOf } from '../assignment.js';

// The two znodes of a node id, the claim and the record of the id time window: docs/design/allocation.md,
// "The znodes".

/**
 * The task of a claim, and further fields. The nonce distinguishes it from all other claims, including those
 * of the same task.
 */
export interface Claimer {
  readonly taskId: string;
  readonly nonce: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A node id that is held by an ephemeral znode. */
export interface IdTenure {
  /** The leased one, 0 … 65527: the cluster node id less 8. */
  readonly nodeId: number;
  readonly path: string;
  /** The fencing token. */
  readonly version: number;
  /** Number of bits of a node id in a unique id, as the znode publishes it. */
  readonly idWidth: number;
  /**
   * The last millisecond, by the leader's clock, in which others may have made ids with fewer bits than this
   * id needs; 0 for none.
   */
  readonly floor: number;
  readonly claimer: Claimer;
  readonly session: BoundSession;
  readonly deadline: SessionDeadline;
}

/**
 * The data of a claim. The version is not known before the znode exists, and is written into it right after,
 * with the width of ids.
 */
export function claimData(
  { taskId, nonce, fields }: Claimer,
  tenure: { nodeId: number; version?: number; idWidth?: number },
): string {
  return encodeAssignment({ ...fields, taskId, version: undefined, ...tenure, nonce });
}

/** Whether a claim was made in this session by this claimer, and still says so. */
export function isOurs({ stat, data }: Znode, sessionId: string, nonce: string): boolean {
  return stat.owner === sessionId && fieldsOf(data).nonce === nonce;
}

/**
 * The fencing token of a claim, the number of its transaction. Not guaranteed: across a new ensemble.
 *
 * @throws {ZooKeeperError} `refused` when the number is beyond 2^53 - 1, after some two million elections of
 * a leader
 */
export function versionOf(path: string, createdZxid: bigint): number {
  const version = Number(createdZxid);
  if (Number.isSafeInteger(version)) return version;
  const message = `${path}: the transaction id ${createdZxid} is too large for a version (at most ${Number.MAX_SAFE_INTEGER})`;
  throw new ZooKeeperError(message, 'refused', 'not-applied', path);
}

/** The content of a record. Times are milliseconds since the Unix epoch, by the leader's clock. */
interface TimeRecord {
  /** Ids have timestamps before this, in the present tenure and all before it. */
  readonly timestamp: number;
  /** The last id timestamp, where the holder said so when it released. */
  readonly stampedUntil?: number | undefined;
  /** Whose tenure wrote it, as in the claim; none after a release. */
  readonly nonce?: string | undefined;
}

/** Undefined for data that are no record. Never throws. */
export function decodeRecord({ data }: Znode): TimeRecord | undefined {
  const { timestamp, stampedUntil, nonce } = fieldsOf(data);
  if (!isMs(timestamp) || (stampedUntil !== undefined && !isMs(stampedUntil))) return undefined;
  return { timestamp, stampedUntil, nonce: typeof nonce === 'string' ? nonce : undefined };
}

/** The write of a record in place of the one that was found; no write if that has changed since. */
export function writeOf(path: string, found: Znode | undefined, record: TimeRecord): MultiOperation {
  const data = JSON.stringify(record);
  return found
    ? { type: 'set', path, data, version: found.stat.version }
    : { type: 'create', path, data, mode: 'shared' };
}

/**
 * The last id timestamp of all tenures that have written a record, in milliseconds since the Unix epoch.
 *
 * @param timeoutMs how far ahead of the leader's clock a holder may go, if its record can no longer be read
 */
export function lastIdTimestampIn(znode: Znode, timeoutMs: number): number {
  const record = decodeRecord(znode);
  if (record === undefined) return znode.stat.modifiedAt + timeoutMs;
  return record.stampedUntil ?? record.timestamp - 1;
}

/**
 * Whether a value can be the time of an id, in milliseconds since the Unix epoch: there are 48 bits for it.
 */
export function isMs(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < END_OF_TIME;
}
