import type { RandomSource } from '../../../core/base/clock.js';
import type { ClusterStatus } from '../../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import type { ProbeOptions } from '../../../core/store/probe/probe.js';
import { ClusterReader } from '../../../node/monitor/cluster-reader.js';
import { type ListedCluster, READ_AS_A_WHOLE, totalsOf } from '../../../node/monitor/listed-cluster.js';
import type { LeaseTotals } from '../../../node/wire/status-report.js';

/**
 * The maximum number of lease objects that are read, and of the ones that are conspicuous in the same way.
 */
const MAX_READS = { all: READ_AS_A_WHOLE, alike: 130 } as const;
/** In bytes. A smaller object with content was not written by nodelease. */
const MIN_TOMBSTONE_BYTES = 20;

/** A cluster, and the node ids that were read of it. */
export interface ClusterCheckup extends ClusterStatus {
  /** Of all node ids. */
  readonly totals: LeaseTotals;
  /** What shows that another program keeps a cluster in the same objects; undefined where nothing does. */
  readonly foreign?: string | undefined;
}

/**
 * Looks for damage by one LIST and at most 500 GETs, however large the cluster is. Of a larger cluster it
 * reads the lease objects that are conspicuous in the LIST: absent, too small, or expired. The rest of the
 * 500 are others by chance, so that another call reads other ones.
 *
 * @returns undefined when there is no cluster yet
 * @throws {StoreUnusableError} when `cluster.json` is damaged
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function checkUp(
  session: StoreSession,
  { clock, random, signal }: ProbeOptions,
): Promise<ClusterCheckup | undefined> {
  const reader = new ClusterReader(session, clock);
  const { nodes, hints } = await reader.scan(signal, (found) => chosen(found, random));
  if (hints === undefined) return undefined;
  const { cluster, foreign } = hints;
  return { cluster, nodes, totals: totalsOf(nodes, hints), foreign };
}

function chosen({ cluster, leases, rows }: ListedCluster, random: RandomSource): readonly number[] {
  const ids = leases.map((_, id) => id);
  if (ids.length <= MAX_READS.all) return ids;
  const absent = cluster.bootstrapped ? ids.filter((id) => leases[id] === 'absent') : [];
  const small = ids.filter(
    (id) => leases[id] === 'released' && (rows.get(id)?.size ?? 0) < MIN_TOMBSTONE_BYTES,
  );
  const expired = ids.filter((id) => leases[id] === 'expired');
  // Each kind by itself: many of one kind must not hide the few of another.
  const conspicuous = [absent, small, expired].flatMap((kind) => sample(kind, MAX_READS.alike, random));
  const known = new Set(conspicuous);
  const others = ids.filter((id) => !known.has(id));
  return [...conspicuous, ...sample(others, MAX_READS.all - conspicuous.length, random)].sort(
    (a, b) => a - b,
  );
}

/** At most `max` of them, drawn by chance. */
function sample(ids: readonly number[], max: number, random: RandomSource): readonly number[] {
  const drawn = ids.map((id) => ({ id, rank: random.next() })).sort((a, b) => a.rank - b.rank);
  return drawn.slice(0, max).map(({ id }) => id);
}
