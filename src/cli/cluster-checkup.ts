import type { Clock, RandomSource } from '../clock.js';
import type { ClusterStatus } from '../lease/inspect.js';
import type { StoreSession } from '../lease/store-session.js';
import { ClusterReader } from '../monitor/cluster-reader.js';
import { type ClusterHints, type LeaseTotals, totalsByHints, totalsOf } from '../monitor/lease-hints.js';
import { READ_AS_A_WHOLE } from '../monitor/paged-cluster.js';

/** Lease objects that are read at the most, and how many of those that stand out in the same way. */
const READS = { most: READ_AS_A_WHOLE, alike: 130 } as const;
/** Bytes. What holds something and is smaller than every tombstone was not written by nodelease. */
const TOMBSTONE_LEAST_BYTES = 20;

/** A cluster, and the node ids that were read of it. */
export interface ClusterCheckup extends ClusterStatus {
  /** Of all node ids. */
  readonly totals: LeaseTotals;
  /** What shows that another program keeps a cluster in the same objects; undefined where nothing does. */
  readonly foreign: string | undefined;
}

/** How a cluster is looked at. */
export interface CheckupOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Looks for damage by one LIST and no more than 500 GETs, however large the cluster is. All lease objects are read where there are no more than
 * that. Otherwise those that stand out in the LIST are: absent, too small, or not written for longer than a lease lasts; and, of all the others, some
 * by chance, so that another call reads other ones.
 *
 * @returns undefined when there is no cluster yet
 * @throws {StoreUnusableError} when `cluster.json` cannot be understood
 * @throws {StoreError}
 * @throws `options.signal.reason`
 */
export async function checkUp(session: StoreSession, { clock, random, signal }: CheckupOptions): Promise<ClusterCheckup | undefined> {
  const reader = new ClusterReader(session, clock, { choose: (hints) => chosen(hints, random) });
  const { nodes, hints } = await reader.look(signal ?? new AbortController().signal);
  if (hints === undefined) return undefined;
  const { cluster, foreign } = hints;
  const totals = nodes.length === cluster.size ? totalsOf(nodes, cluster, hints.retired) : totalsByHints(hints);
  return { cluster, nodes, totals, foreign };
}

/** Of each id, one at the most. */
const WAYS_TO_STAND_OUT: readonly ((id: number, hints: ClusterHints) => boolean)[] = [
  (id, { leases, cluster }) => leases[id] === 'absent' && cluster.bootstrapped,
  (id, { leases, rows }) => leases[id] === 'released' && (rows.get(id)?.size ?? 0) < TOMBSTONE_LEAST_BYTES,
  (id, { leases }) => leases[id] === 'expired',
];

function chosen(hints: ClusterHints, random: RandomSource): readonly number[] {
  const ids = Array.from({ length: hints.cluster.size }, (_, id) => id);
  if (ids.length <= READS.most) return ids;
  // Many of one kind are not to hide the few of another.
  const conspicuous = WAYS_TO_STAND_OUT.flatMap((standsOut) =>
    sample(
      ids.filter((id) => standsOut(id, hints)),
      READS.alike,
      random,
    ),
  );
  const known = new Set(conspicuous);
  const others = ids.filter((id) => !known.has(id));
  return [...conspicuous, ...sample(others, READS.most - conspicuous.length, random)].sort((a, b) => a - b);
}

/** At most so many of them, by chance and from everywhere. */
function sample(ids: readonly number[], most: number, random: RandomSource): readonly number[] {
  if (ids.length <= most) return ids;
  const boundary = (part: number) => Math.floor((part * ids.length) / most);
  return Array.from({ length: most }, (_, part) => {
    const [first, end] = [boundary(part), boundary(part + 1)];
    return ids[first + Math.floor(random.next() * (end - first))] as number;
  });
}
