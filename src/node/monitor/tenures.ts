import { pastTenures } from '../../core/lease/model/tenure-history.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import type { NodeTenures, Tenure } from '../wire/cluster-snapshot.js';

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
function knownSince({ state, version }: NodeStatus, oldest: Tenure | undefined) {
  if (oldest !== undefined) return oldest.version === 1 ? 0 : oldest.acquiredAt;
  return version === 0 && (state === 'vacant' || state === 'retired') ? 0 : null;
}
