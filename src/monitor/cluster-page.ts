import type { Clock } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import type { ClusterConfig } from '../lease/model/cluster-config.js';
import type { NodeStatus } from '../lease/operate/inspect.js';
import type { StoreSession } from '../lease/session/store-session.js';
import { ClusterReader, type ClusterReaderOptions } from './cluster-reader.js';
import { type ListedCluster, type ListedState, type PagedCluster, type PageReport, READ_AS_A_WHOLE, totalsOf } from './listed-cluster.js';

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
const RANKS: Readonly<Record<ListedState, number>> = { absent: 0, expired: 1, held: 2, released: 3, vacant: 4 };

/** Scans a page of a cluster, once or repeatedly, at the cost of a {@link ClusterReader}; the LIST gives the totals. */
export class ClusterPager {
  readonly #reader: ClusterReader;
  #page: PageReport | null = null;

  /** @param request asked for anew at every scan */
  constructor(
    session: StoreSession,
    clock: Clock,
    private readonly request: () => PageRequest,
    onProgress?: ClusterReaderOptions['onProgress'],
  ) {
    this.#reader = new ClusterReader(session, clock, { choose: (hints) => this.#choose(hints), onProgress });
  }

  /**
   * The page; undefined when there is no cluster yet.
   *
   * @throws {ConfigError} when the page begins beyond the cluster's size
   * @throws {StoreError}, {StoreUnusableError} or `signal.reason` as {@link ClusterReader.scan} does
   */
  async scan(signal: AbortSignal): Promise<PagedCluster | undefined> {
    const { nodes, hints, draining = [] } = await this.#reader.scan(signal);
    if (hints === undefined) return undefined;
    const { cluster } = hints;
    const { only } = this.request();
    // The LIST may have told of another state.
    const asked = nodes.filter(({ state }) => isAskedFor(state, only, cluster));
    return { cluster, nodes: asked, totals: totalsOf(nodes, hints), draining, page: this.#page };
  }

  #choose({ cluster, leases }: ListedCluster): readonly number[] {
    const { everything, paged, from = 0, limit, only, telling } = this.request();
    const { size } = cluster;
    if (from >= size) throw new ConfigError('--from', from, `a node id of the cluster, from 0 to ${size - 1}`);
    const ids = Array.from({ length: size - from }, (_, index) => from + index);
    this.#page = null;
    if (everything || (!paged && size <= READ_AS_A_WHOLE)) return ids;
    const stateOf = (id: number) => leases[id] ?? 'absent';
    const asked = ids.filter((id) => isAskedFor(stateOf(id), only, cluster));
    this.#page = { from, limit, next: telling ? null : (asked[limit] ?? null) };
    if (telling) asked.sort((a, b) => RANKS[stateOf(a)] - RANKS[stateOf(b)] || a - b);
    return asked.slice(0, limit).sort((a, b) => a - b);
  }
}

function isAskedFor(state: ListedState | NodeStatus['state'], only: PageRequest['only'], { bootstrapped }: ClusterConfig): boolean {
  if (only === undefined) return true;
  if (only === 'held') return state === 'held';
  return state === 'vacant' || state === 'released' || (state === 'absent' && !bootstrapped);
}
