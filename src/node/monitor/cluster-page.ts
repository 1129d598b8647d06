import { ConfigError } from '../../core/base/errors.js';
import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import type { PageReport } from '../wire/status-report.js';
import type { ClusterReader } from './cluster-reader.js';
import {
  type ListedCluster,
  type ListedState,
  type PagedCluster,
  READ_AS_A_WHOLE,
  totalsOf,
} from './listed-cluster.js';

/** The node ids to be shown. */
export interface PageRequest {
  /** Every lease object is read, however many there are. */
  readonly everything: boolean;
  /** A cluster that is not large is read a page at a time, too. */
  readonly paged: boolean;
  /** The lowest id. @default the lowest there is */
  readonly from?: number | undefined;
  /** Maximum number. */
  readonly limit: number;
  /** Only the ids in this state; an expired one is in neither. @default all */
  readonly only?: 'held' | 'free' | undefined;
  /** The most noteworthy ids, instead of the lowest ones; there is no next page then. */
  readonly telling: boolean;
}

/** The most noteworthy state comes first. */
const RANKS: Readonly<Record<ListedState, number>> = {
  absent: 0,
  expired: 1,
  held: 2,
  released: 3,
  vacant: 4,
};

/**
 * Scans a page of a cluster, at the cost of a scan of the reader; the LIST gives the totals. Undefined when
 * there is no cluster yet.
 *
 * @throws {ConfigError} when the page begins beyond the cluster's size
 * @throws {StoreError}, {StoreUnusableError} or `signal.reason` as the reader does
 */
export async function scanPage(
  reader: ClusterReader,
  request: PageRequest,
  signal?: AbortSignal,
): Promise<PagedCluster | undefined> {
  let page: PageReport | null = null;
  const {
    nodes,
    hints,
    draining = [],
    foreign,
  } = await reader.scan(signal, (found) => {
    const chosen = choose(found, request);
    page = chosen.page;
    return chosen.ids;
  });
  if (hints === undefined) return undefined;
  const { cluster } = hints;
  // The LIST may have shown another state.
  const asked = nodes.filter(({ state }) => isAskedFor(state, request.only, cluster));
  return { cluster, nodes: asked, totals: totalsOf(nodes, hints), draining, page, foreign };
}

function choose(
  { cluster, leases }: ListedCluster,
  { everything, paged, from = 0, limit, only, telling }: PageRequest,
) {
  const { size } = cluster;
  if (from > 0 && from >= size)
    throw new ConfigError('from', from, `a node id of the cluster, from 0 to ${size - 1}`);
  const ids = Array.from({ length: size - from }, (_, index) => from + index);
  if (everything || (!paged && size <= READ_AS_A_WHOLE)) return { ids, page: null };
  const stateOf = (id: number) => leases[id] ?? 'absent';
  const asked = ids.filter((id) => isAskedFor(stateOf(id), only, cluster));
  const page = { from, limit, next: telling ? null : (asked[limit] ?? null) };
  if (telling) asked.sort((a, b) => RANKS[stateOf(a)] - RANKS[stateOf(b)] || a - b);
  return { ids: asked.slice(0, limit).sort((a, b) => a - b), page };
}

function isAskedFor(
  state: ListedState | NodeStatus['state'],
  only: PageRequest['only'],
  { bootstrapped }: ClusterConfig,
): boolean {
  if (only === undefined) return true;
  if (only === 'held') return state === 'held';
  return state === 'vacant' || state === 'released' || (state === 'absent' && !bootstrapped);
}
