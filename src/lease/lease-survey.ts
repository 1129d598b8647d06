import type { ListedObject, Listing } from '../store/lease-store.js';
import type { ClusterConfig } from './cluster-config.js';
import type { LeaseCodec } from './lease-codec.js';
import { leaseKey, nodeIdOf } from './lease-state.js';

/** A node id that, as far as a LIST tells, may be free. */
export interface Candidate {
  readonly id: number;
  readonly key: string;
  /** The row of the listing; undefined when the object is absent. */
  readonly row: ListedObject | undefined;
}

/** What one LIST tells about a cluster: hints, all of them (rule 4). */
export interface LeaseSurvey {
  /** In ascending order of the ids. */
  readonly candidates: readonly Candidate[];
  /** Ids without an object. */
  readonly absent: readonly number[];
  /** From the listing until the first lease of those that seem held could be found expired, in milliseconds; infinity without any. */
  readonly earliestExpiryMs: number;
}

/** Tells the free ids from the others, by size and age alone. */
export function survey(listing: Listing, cluster: ClusterConfig, codec: LeaseCodec): LeaseSurvey {
  const rows = new Map<number, ListedObject>();
  for (const row of listing.objects) {
    const id = nodeIdOf(row.key);
    if (id !== undefined && id < cluster.size) rows.set(id, row);
  }
  const candidates: Candidate[] = [];
  const absent: number[] = [];
  let earliestExpiryMs = Number.POSITIVE_INFINITY;
  for (let id = 0; id < cluster.size; id += 1) {
    const row = rows.get(id);
    const needMs = cluster.durationMs + cluster.graceMs;
    if (row === undefined) absent.push(id);
    else if (row.size > codec.tombstoneMaxBytes && row.age.max <= needMs) {
      earliestExpiryMs = Math.min(earliestExpiryMs, needMs - row.age.max + 1);
      continue;
    }
    candidates.push({ id, key: leaseKey(id), row });
  }
  return { candidates, absent, earliestExpiryMs };
}
