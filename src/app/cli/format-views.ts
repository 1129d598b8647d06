import { CLUSTER_KEY } from '../../core/lease/model/cluster-config.js';
import { findForeign } from '../../core/lease/model/foreign-cluster.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../core/lease/session/store-session.js';
import type { ForeignReport } from '../../node/wire/status-report.js';
import { camundaView } from '../camunda/camunda-view.js';

/** What `status` and `doctor` show of a cluster in each foreign format. */
const VIEWS = { camunda: camundaView };

export type FormatView = (typeof VIEWS)[keyof typeof VIEWS];

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
  const timeoutMs = Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs);
  const { objects } = await session.list({ signal, timeoutMs });
  const found = await findForeign(session, objects, { signal });
  return found && VIEWS[found.format.name];
}
