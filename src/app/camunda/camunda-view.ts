import { CAMUNDA_MARKER } from '../../core/lease/camunda/camunda-format.js';
import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import type { ForeignReport } from '../../node/wire/status-report.js';
import { formatSetting } from '../kit/terminal/text.js';
import { restoredText } from './camunda-checkup.js';

/** What `status` shows of a cluster of Camunda 8. */
export const camundaView = {
  /** What the summary line begins with. */
  title: 'Camunda 8: ',
  /** What it ends with, the longest first: the first one that fits is shown. */
  settings({ durationMs, bootstrapped }: ClusterConfig) {
    const lasting = durationMs > 0 ? `; leases of about ${formatSetting(durationMs)}` : '';
    const marker = bootstrapped ? '' : `; ${CAMUNDA_MARKER} is missing`;
    return [lasting + marker, marker];
  },
  /** When a lease expires as its holder has written it, by its own clock; UTC. */
  column: [
    ['AS WRITTEN', 'right'],
    ({ timestamp }: NodeStatus) =>
      timestamp === undefined ? '' : `${new Date(timestamp).toISOString().slice(-13, -5)}Z`,
  ] as const,
  /** The lines below the summary. */
  lines: ({ restores }: ForeignReport) =>
    restores.map((restore) => {
      const text = `restore ${restore.restoreId}: ${restoredText(restore)}`;
      return [text, restore.problem === null ? 'dim' : 'red'] as const;
    }),
};
