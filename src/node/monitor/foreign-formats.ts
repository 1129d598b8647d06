import type { ForeignFormat } from '../../core/lease/model/foreign-format.js';
import type { ForeignNode } from '../wire/status-report.js';
import { camundaGauge } from './camunda/camunda-gauge.js';
import { CamundaReader } from './camunda/camunda-reader.js';
import type { ForeignReader } from './format-reader.js';

/** Makes the reader of each foreign format. */
export const FOREIGN_READERS: Readonly<Record<ForeignFormat['name'], () => ForeignReader>> = {
  camunda: () => new CamundaReader(),
};

/** A metric of node ids that only clusters in foreign formats have. */
export interface ForeignGauge {
  readonly name: string;
  readonly help: string;
  /** Undefined without a value. */
  read(node: ForeignNode): number | undefined;
}

export const FOREIGN_GAUGES: readonly ForeignGauge[] = [camundaGauge];
