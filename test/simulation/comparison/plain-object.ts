import type { StoredObject } from '../../../src/core/store/lease-store.js';

/** A lease object of the plain protocol that names a holder. */
export interface PlainRecord {
  readonly taskId: string;
  readonly version: number;
  /** Expiry, in milliseconds since the Unix epoch, by the holder's own wall clock. */
  readonly timestamp: number;
}

/** A body and what goes with it into the metadata. */
export interface PlainObject {
  readonly body: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * An id that no task has ever held, and one that was released to the letter: nothing at all, the version
 * included.
 */
export const NOTHING: PlainObject = { body: '', metadata: {} };

/** A released id whose version is kept where an empty body leaves room for it. */
export function emptied(version: number): PlainObject {
  return { body: '', metadata: { version: String(version) } };
}

export function held({ taskId, version, timestamp }: PlainRecord): PlainObject {
  return {
    body: JSON.stringify({ taskId, version, timestamp, knownNodesMapping: {} }),
    metadata: { taskid: taskId, version: String(version), expiry: String(timestamp) },
  };
}

/** What an object says to a contender. */
export interface PlainReading {
  readonly from: 'vacant' | 'released' | 'expired' | 'held';
  /** The last version that is known of; 0 when none is. */
  readonly version: number;
}

/** @param now the contender's own wall clock: the protocol knows no other */
export function reading(
  { body, metadata }: Pick<StoredObject, 'body' | 'metadata'>,
  now: number,
): PlainReading {
  if (body === '') {
    const version = Number(metadata.version ?? 0);
    return { from: version === 0 ? 'vacant' : 'released', version };
  }
  const { version, timestamp } = JSON.parse(body) as PlainRecord;
  return { from: timestamp < now ? 'expired' : 'held', version };
}
