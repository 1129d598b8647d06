import { clusterNodeIdOf, groupOf, indexOf } from '../../id/cluster-node-id.js';
import { END_OF_TIME } from '../../lease/model/lease-state.js';
import type { MultiOperation, Znode } from '../../zookeeper/zookeeper.js';
import { hexPair, stampGroupPath } from '../tree-paths.js';
import { fieldsOf } from './id-claim.js';

// The record of an id time window: a persistent znode beside the claim, `stamps/<GG>/<II>`.

/** What stands in a record. Times are milliseconds since the Unix epoch, by the leader's clock. */
export interface TimeRecord {
  /** Ids have timestamps before this, in the present tenure and all before it. */
  readonly timestamp: number;
  /** The last id timestamp, where the holder said so when it released. */
  readonly stampedUntil?: number | undefined;
  /** Whose tenure wrote it, as in the claim; none after a release. */
  readonly nonce?: string | undefined;
}

/** Where the record of a node id stands. */
export function recordPath(nodeId: number): string {
  const clusterNodeId = clusterNodeIdOf(nodeId);
  return `${stampGroupPath(groupOf(clusterNodeId))}/${hexPair(indexOf(clusterNodeId))}`;
}

/** Undefined for what is no record. Never throws. */
export function decodeRecord({ data }: Znode): TimeRecord | undefined {
  const { timestamp, stampedUntil, nonce } = fieldsOf(data);
  if (!isMs(timestamp) || (stampedUntil !== undefined && !isMs(stampedUntil))) return undefined;
  return { timestamp, stampedUntil, nonce: typeof nonce === 'string' ? nonce : undefined };
}

/** The write of a record in place of what was found: nothing where that has changed since. */
export function writeOf(path: string, found: Znode | undefined, record: TimeRecord): MultiOperation {
  const data = JSON.stringify(record);
  return found ? { type: 'set', path, data, version: found.stat.version } : { type: 'create', path, data, mode: 'shared' };
}

/**
 * The last id timestamp of all tenures that have written a record, in milliseconds since the Unix epoch.
 *
 * @param timeoutMs how far ahead of the leader's clock a holder may go, where what it wrote cannot be read any more
 */
export function lastIdTimestampIn(znode: Znode, timeoutMs: number): number {
  const record = decodeRecord(znode);
  if (record === undefined) return znode.stat.modifiedAt + timeoutMs;
  return record.stampedUntil ?? record.timestamp - 1;
}

/** Whether a value can be the time of an id, in milliseconds since the Unix epoch: there are 48 bits for it. */
export function isMs(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < END_OF_TIME;
}
