import { groupOf, indexOf } from '../../id/cluster-node-id.js';
import { END_OF_TIME } from '../../lease/lease-state.js';
import type { Znode } from '../../zookeeper/zookeeper.js';
import { hexPair, stampGroupPath } from '../tree-paths.js';

/** How far unique ids of a node id have been stamped, as it stands in `stamps/<GG>/<II>`. Milliseconds since the Unix epoch, by the leader's clock. */
export interface IdStamp {
  /** Ids are stamped before this, in the present tenure and all before it. */
  readonly timestamp: number;
  /** The last millisecond that was reserved for ids, where the holder said so when it released. */
  readonly stampedUntil?: number | undefined;
  /** Whose tenure it is of, as in the claim; none after a release. */
  readonly nonce?: string | undefined;
}

/** Where the stamp of a cluster node id stands. */
export function stampPath(clusterNodeId: number): string {
  return `${stampGroupPath(groupOf(clusterNodeId))}/${hexPair(indexOf(clusterNodeId))}`;
}

export function encodeStamp({ timestamp, stampedUntil, nonce }: IdStamp): string {
  return JSON.stringify({ timestamp, stampedUntil, nonce });
}

/** Undefined for what is no stamp. Never throws. */
export function decodeStamp({ data }: Znode): IdStamp | undefined {
  const { timestamp, stampedUntil, nonce } = fieldsOf(data);
  if (!isMs(timestamp) || (stampedUntil !== undefined && !isMs(stampedUntil))) return undefined;
  return { timestamp, stampedUntil, nonce: typeof nonce === 'string' ? nonce : undefined };
}

/**
 * The last millisecond that an id may be stamped with by whoever wrote this.
 *
 * @param timeoutMs how far ahead of the leader's clock a holder may go, where what it wrote cannot be read any more
 */
export function stampedUntilOf(znode: Znode, timeoutMs: number): number {
  const stamp = decodeStamp(znode);
  if (stamp === undefined) return znode.stat.modifiedAt + timeoutMs;
  return stamp.stampedUntil ?? stamp.timestamp - 1;
}

/** Whether a value can be the time of an id, in milliseconds since the Unix epoch: there are 48 bits for it. */
export function isMs(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < END_OF_TIME;
}

/** The fields of a znode's JSON object; none for anything else. Never throws. */
export function fieldsOf(data: Buffer): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(data.toString('utf8'));
    return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
