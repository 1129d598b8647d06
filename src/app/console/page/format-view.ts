import type { ComponentChildren } from 'preact';
import type { ClusterReport, ForeignNode, ReportHead } from '../../../node/wire/status-report.js';
import { camundaView } from '../camunda/camunda-view.js';

/** What the page shows of a cluster in a foreign format. */
interface FormatView {
  /** In place of the settings of nodelease. */
  settings(cluster: ClusterReport): readonly string[];
  /** Further facts of the store, and of a node id. */
  ofStore(cluster: ReportHead): ComponentChildren;
  ofNode(node: ForeignNode): ComponentChildren;
  /** The meaning of that state. */
  readonly damaged: string;
  /** The clock of the expiry that is written in a lease. */
  readonly clock: string;
}

const VIEWS: Readonly<Record<NonNullable<ReportHead['format']>, FormatView>> = { camunda: camundaView };

/** The view of a cluster; undefined for one of nodelease. */
export function formatView(cluster: ReportHead | null): FormatView | undefined {
  return cluster?.format && VIEWS[cluster.format];
}
