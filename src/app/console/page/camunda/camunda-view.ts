import type { ClusterReport, ForeignNode, ReportHead } from '../../../../node/wire/status-report.js';
import { formatSetting } from '../../model/format.js';
import { bad, fact } from '../ui.js';

/** What the page shows of a cluster of Camunda 8. */
const VIEW = {
  /** In place of the settings of nodelease. */
  settings: ({ durationMs }: ClusterReport) => [
    durationMs === null ? 'no holder' : `leases of about ${formatSetting(durationMs)}`,
    'Camunda 8, read only',
  ],
  /** Further facts of the store. */
  ofStore: ({ cluster, restores = [] }: ReportHead) => [
    fact('Format', 'Camunda 8'),
    fact('Marker', cluster?.bootstrapped ? 'there' : bad('missing')),
    restores.map(({ restoreId, restoredNodes, problem }) =>
      fact(`Restore ${restoreId}`, problem === null ? `node ids ${restoredNodes.join(', ')}` : bad(problem)),
    ),
  ],
  /** Further facts of a node id. */
  ofNode: ({ camunda }: ForeignNode) => camunda && fact('Acquirable', camunda.acquirable ? 'yes' : 'no'),
  /** The meaning of the state. */
  damaged: 'Its lease object is absent, or Camunda cannot read it.',
  /** The clock of the expiry in a lease. */
  clock: 'by its holder’s clock',
};

/** The view of a cluster in a foreign format; undefined for one of nodelease. */
export const formatView = (cluster: ReportHead | null) => (cluster?.format ? VIEW : undefined);
