import type { NodeStatus } from '../lease/inspect.js';
import type { KnownNodes } from '../lease/lease-state.js';
import type { NodeReport } from './status-report.js';

/** More node ids than this, and what all know of all others is more than anybody could look at. */
export const MOST_TOLD_IN_FULL = 256;

/**
 * Leaves out of reports what their holders know that is right, where there are so many node ids that all of it would fill megabytes.
 *
 * @param reports the reports to tell
 * @param nodes all node ids there are
 */
export function withKnownVersions(
  reports: readonly NodeReport[],
  nodes: ReadonlyMap<number, Pick<NodeStatus, 'version'>>,
): readonly NodeReport[] {
  if (nodes.size <= MOST_TOLD_IN_FULL) return reports;
  // Most know the same, and then have it in one object.
  const told = new Map<KnownNodes, KnownNodes>();
  return reports.map((report) => {
    const known = report.knownNodes;
    const wrong = told.get(known) ?? wrongOnes(known, nodes);
    told.set(known, wrong);
    return { ...report, knownNodes: wrong };
  });
}

function wrongOnes(known: KnownNodes, nodes: ReadonlyMap<number, Pick<NodeStatus, 'version'>>): KnownNodes {
  return Object.fromEntries(Object.entries(known).filter(([id, version]) => nodes.get(Number(id))?.version !== version));
}
