import type { ReportHead } from '../../../node/wire/status-report.js';
import type { TreeReport } from '../../../node/wire/tree-report.js';

/**
 * How the discovery tree and the leases, as the server has compared them and found no problem, agree, in
 * words.
 */
export function agreementText(
  { nodes: held }: NonNullable<ReportHead['discovery']>,
  tree: TreeReport | null,
): string {
  const ids = new Set<number | null>(held.map(({ id }) => id));
  const shown = tree?.nodes ?? [];
  const others = shown.filter(({ nodeId }) => !ids.has(nodeId)).length;
  // Nodes with a fixed id have no lease, and those of dead tasks stay as long as their sessions.
  if (others > 0)
    return `${others} of ${shown.length} ${shown.length === 1 ? 'node' : 'nodes'} in the tree without a lease`;
  return ids.size > 0 ? 'agrees with the leases' : 'no lease to compare it with';
}
