import { type PastTenure, pastTenures } from '../lease/model/tenure-history.js';
import type { NodeStatus } from '../lease/operate/inspect.js';

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
}

/** The tenures that a lease object shows: the one that is held or expired, and those of its history. */
export function tenuresOf(node: NodeStatus): NodeTenures {
  const { id, version, taskId, state, timestamp, acquiredAt, history } = node;
  const past = pastTenures(history);
  if (taskId === undefined) return { id, tenures: past };
  const ended =
    state === 'expired' ? { endedAt: timestamp ?? null, end: 'expired' } : { endedAt: null, end: null };
  return { id, tenures: [{ version, taskId, acquiredAt: acquiredAt ?? null, ...ended } as Tenure, ...past] };
}
