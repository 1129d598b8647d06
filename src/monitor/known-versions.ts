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
  return nodes.size <= MOST_TOLD_IN_FULL ? reports : sharing(reports, (known) => wrongOnes(known, nodes));
}

/**
 * The same where only some of the node ids have been read: what the holders know of the others is left out, too.
 *
 * @param reports the reports to tell
 * @param read the node ids that were read
 */
export function withKnownVersionsOfPage(
  reports: readonly NodeReport[],
  read: ReadonlyMap<number, Pick<NodeStatus, 'version'>>,
): readonly NodeReport[] {
  return sharing(reports, (known) => Object.fromEntries(Object.entries(wrongOnes(known, read)).filter(([id]) => read.has(Number(id)))));
}

function sharing(reports: readonly NodeReport[], shorten: (known: KnownNodes) => KnownNodes): readonly NodeReport[] {
  // Most know the same, and then have it in one object.
  const told = new Map<KnownNodes, KnownNodes>();
  return reports.map((report) => {
    const known = report.knownNodes;
    const short = told.get(known) ?? shorten(known);
    told.set(known, short);
    return { ...report, knownNodes: short };
  });
}

function wrongOnes(known: KnownNodes, nodes: ReadonlyMap<number, Pick<NodeStatus, 'version'>>): KnownNodes {
  return Object.fromEntries(Object.entries(known).filter(([id, version]) => nodes.get(Number(id))?.version !== version));
}
