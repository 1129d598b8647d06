import type { ReportHead } from '../../../node/wire/status-report.js';
import { camundaView } from './camunda/camunda-view.js';

/** What the page shows of a cluster in each foreign format. */
const VIEWS = { camunda: camundaView };

/** The view of a cluster; undefined for one of nodelease. */
export const formatView = (cluster: ReportHead | null) => cluster?.format && VIEWS[cluster.format];
