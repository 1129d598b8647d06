import { CLUSTER_KEY, type ClusterConfig } from '../../core/lease/model/cluster-config.js';
import { findForeign } from '../../core/lease/model/foreign-cluster.js';
import type { ForeignFormat } from '../../core/lease/model/foreign-format.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../core/lease/session/store-session.js';
import type { ProbeOptions } from '../../core/store/probe/probe.js';
import type { PagedCluster, ScannedNode } from '../../node/monitor/listed-cluster.js';
import type { ForeignReport } from '../../node/wire/status-report.js';
import { camundaView } from '../camunda/camunda-view.js';
import type { Finding } from '../kit/finding.js';
import type { Color } from '../kit/terminal/color.js';
import type { Cell, Column } from '../kit/terminal/table.js';

/** What `status` and `doctor` show of a cluster in a foreign format, next to its leases. */
export interface FormatView {
  /** What the summary line begins with. */
  readonly title: string;
  /** The settings at the end of the summary line, the longest first: the first one that fits is shown. */
  settings(cluster: ClusterConfig): readonly string[];
  readonly columns: readonly (readonly [column: Column, cellOf: (node: ScannedNode) => Cell])[];
  /** The lines below the summary. */
  lines(report: ForeignReport): readonly (readonly [text: string, color: Color])[];
  /** Examines a cluster, and writes nothing. @throws {StoreError} or `signal.reason` */
  examine(
    session: StoreSession,
    options: Pick<ProbeOptions, 'clock' | 'signal'>,
  ): Promise<{
    readonly findings: readonly Finding[];
    readonly status?: Pick<PagedCluster, 'cluster' | 'nodes' | 'totals'>;
  }>;
}

const VIEWS: Readonly<Record<ForeignFormat['name'], FormatView>> = { camunda: camundaView };

/** The view of a cluster; undefined for one of nodelease. */
export function formatView(foreign: ForeignReport | undefined): FormatView | undefined {
  return foreign && VIEWS[foreign.format];
}

/**
 * The view of the foreign cluster in a store; undefined if there is none. For a cluster of nodelease it takes
 * a read.
 * @throws {StoreError}
 */
export async function foreignViewOf(
  session: StoreSession,
  signal?: AbortSignal,
): Promise<FormatView | undefined> {
  if ((await session.read(CLUSTER_KEY, { signal })) !== undefined) return undefined;
  const { objects } = await session.list({
    signal,
    timeoutMs: Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs),
  });
  const found = await findForeign(session, objects, { signal });
  return found && VIEWS[found.format.name];
}
