import type { ForeignNode } from '../../wire/status-report.js';

export const camundaGauge = {
  name: 'nodelease_cluster_holder_clock_offset_seconds',
  help: 'How far the clock of a holder seems to be ahead of the other holders’. Of Camunda’s clusters only.',
  read({ camunda }: ForeignNode): number | undefined {
    return camunda && camunda.clockOffsetMs !== null ? camunda.clockOffsetMs / 1_000 : undefined;
  },
};
