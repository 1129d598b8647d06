import type { Clock } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import type { ClusterStatus, NodeStatus } from '../lease/operate/inspect.js';
import type { StoreSession } from '../lease/session/store-session.js';
import { ClusterReader, type ReadProgress } from './cluster-reader.js';
import { type ListedCluster, type ListedState, listedTotals, totalsOf } from './listed-cluster.js';
import { type PagedCluster, type PageReport, READ_AS_A_WHOLE } from './paged-cluster.js';

/** Which node ids are to be shown. */
export interface PageRequest {
  /** Every lease object is read, however many there are. */
  readonly everything: boolean;
  /** Also those of a cluster that is not large are read a page at a time. */
  readonly paged: boolean;
  /** The lowest id. @default the lowest there is */
  readonly from?: number | undefined;
  /** Maximum number. */
  readonly limit: number;
  /** Only those in such a state; an expired one is neither. @default all */
  readonly only?: 'held' | 'free' | undefined;
  /** The ids of which there is most to tell, instead of the lowest ones; there is no next page then. */
  readonly telling: boolean;
}

/** Of which there is most to tell comes first. */
const WEIGHTS: Readonly<Record<ListedState, number>> = { absent: 0, expired: 1, held: 2, released: 3, vacant: 4 };

/**
 * Scans a page of a cluster, once or repeatedly: a scan is one LIST, which gives the totals, and a GET for each lease object of the page;
 * further scans read only what was written meanwhile, see {@link ClusterReader}.
 */
export class ClusterPager {
  readonly #reader: ClusterReader;
  #page: PageReport | null = null;

  /** @param request asked for anew at every look */
  constructor(
    session: StoreSession,
    clock: Clock,
    private readonly request: () => PageRequest,
    onProgress?: (progress: ReadProgress) => void,
  ) {
    this.#reader = new ClusterReader(session, clock, { choose: (hints) => this.#choose(hints), onProgress });
  }

  /**
   * The page; undefined when there is no cluster yet.
   *
   * @throws {ConfigError} when the page begins beyond the cluster's size
   * @throws {StoreError} when the store gives no answer
   * @throws {StoreUnusableError} when `cluster.json` cannot be understood
   * @throws `signal.reason`
   */
  async look(signal: AbortSignal): Promise<PagedCluster | undefined> {
    const { nodes, hints, draining = [] } = await this.#reader.look(signal);
    if (hints === undefined) return undefined;
    const { cluster } = hints;
    const isWhole = nodes.length === cluster.size;
    const totals = isWhole ? totalsOf(nodes, cluster, hints.retired) : listedTotals(hints);
    return { cluster, nodes: nodes.filter(testOf(this.request().only, cluster)), totals, draining, page: this.#page };
  }

  #choose(hints: ListedCluster): readonly number[] {
    const { everything, paged, from = 0, limit, only, telling } = this.request();
    const { size, bootstrapped } = hints.cluster;
    if (from >= size) throw new ConfigError('--from', from, `a node id of the cluster, from 0 to ${size - 1}`);
    const ids = Array.from({ length: size - from }, (_, index) => from + index);
    this.#page = null;
    if (everything || (!paged && size <= READ_AS_A_WHOLE)) return ids;
    const fitting = ids.filter((id) => {
      const hint = hints.leases[id] ?? 'absent';
      if (only === undefined) return true;
      return only === 'held' ? hint === 'held' : hint === 'released' || hint === 'vacant' || (hint === 'absent' && !bootstrapped);
    });
    const chosen = telling ? mostTelling(fitting, hints, limit) : fitting.slice(0, limit);
    this.#page = { from, limit, next: telling ? null : (fitting[limit] ?? null) };
    return chosen;
  }
}

function mostTelling(ids: readonly number[], { leases }: ListedCluster, limit: number): number[] {
  const weight = (id: number) => WEIGHTS[leases[id] ?? 'vacant'];
  const ordered = [...ids].sort((a, b) => weight(a) - weight(b) || a - b);
  return ordered.slice(0, limit).sort((a, b) => a - b);
}

/** What was read is to be in the state that was asked for: the LIST may have told otherwise. */
function testOf(only: PageRequest['only'], { bootstrapped }: ClusterStatus['cluster']): (node: NodeStatus) => boolean {
  if (only === undefined) return () => true;
  if (only === 'held') return ({ state }) => state === 'held';
  return ({ state }) => state === 'vacant' || state === 'released' || (state === 'absent' && !bootstrapped);
}
