import { type PastTenure, pastTenures } from '../../core/lease/model/tenure-history.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';

/** A tenure of an id; `endedAt` and `end` are null for one that is not known to be over. */
export interface Tenure extends Pick<PastTenure, 'version' | 'taskId'> {
  /** Store time, in milliseconds since the Unix epoch; null where the object does not say. */
  readonly acquiredAt: number | null;
  readonly endedAt: number | null;
  readonly end: PastTenure['end'] | null;
}

/** The known tenures of a node id, the newest first. */
export interface NodeTenures {
  readonly id: number;
  readonly tenures: readonly Tenure[];
  /**
   * From when on no tenure is missing, in store time, in milliseconds since the Unix epoch: where none is known
   * at a later time, no task held the id. 0 where none was forgotten; null where nothing is known.
   */
  readonly knownSince: number | null;
}

/** The tenures that a lease object shows: the one that is held or expired, and those of its history. */
export function tenuresOf(node: NodeStatus): NodeTenures {
  const { id, version, taskId, state, timestamp, acquiredAt, history } = node;
  const past = pastTenures(history);
  const ended =
    state === 'expired' ? { endedAt: timestamp ?? null, end: 'expired' } : { endedAt: null, end: null };
  const last = { version, taskId, acquiredAt: acquiredAt ?? null, ...ended } as Tenure;
  const tenures = taskId === undefined ? past : [last, ...past];
  return { id, tenures, knownSince: knownSince(node, tenures.at(-1)) };
}

/** An object has its tenures without a gap, and loses the oldest first. */
function knownSince({ state, version }: NodeStatus, oldest: Tenure | undefined): number | null {
  if (oldest !== undefined) return oldest.version === 1 ? 0 : oldest.acquiredAt;
  return version === 0 && (state === 'vacant' || state === 'retired') ? 0 : null;
}
