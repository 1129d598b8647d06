import type { ListedObject } from '../store/lease-store.js';
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
  /** Ids without an object, among those that the listing would show. */
  readonly absent: readonly number[];
  /** How many ids have been held at some time, or are. */
  readonly used: number;
  /** How many of those that seem held should have been renewed by now: their holders may be gone. */
  readonly overdue: number;
  /** From the listing until the first lease of those that seem held could be found expired, in milliseconds; infinity without any. */
  readonly earliestExpiryMs: number;
}

/** What a survey looks at: a listing, or a part of one. */
export interface Surveyed {
  readonly objects: readonly ListedObject[];
  /** False for a part of a listing. @default true */
  readonly complete?: boolean;
  /** Whether an object of that key would be among the objects, if there were one. @default always */
  covers?(key: string): boolean;
}

/** Tells the free ids from the others, by size and age alone. */
export function survey(listing: Surveyed, cluster: ClusterConfig, codec: LeaseCodec): LeaseSurvey {
  const needMs = cluster.durationMs + cluster.graceMs;
  const seen = new Set<number>();
  const candidates: Candidate[] = [];
  let used = 0;
  let overdue = 0;
  let earliestExpiryMs = Number.POSITIVE_INFINITY;
  for (const row of listing.objects) {
    const id = nodeIdOf(row.key);
    if (id === undefined || id >= cluster.size) continue;
    seen.add(id);
    if (row.size > 0) used += 1;
    if (row.size > codec.tombstoneMaxBytes && row.age.max <= needMs) {
      earliestExpiryMs = Math.min(earliestExpiryMs, needMs - row.age.max + 1);
      if (row.age.min > cluster.durationMs / 2) overdue += 1;
      continue;
    }
    candidates.push({ id, key: row.key, row });
  }
  const absent = absentIds(listing, cluster, seen);
  for (const id of absent) candidates.push({ id, key: leaseKey(id), row: undefined });
  return { candidates: candidates.sort((a, b) => a.id - b.id), absent, used, overdue, earliestExpiryMs };
}

function absentIds(listing: Surveyed, { size, bootstrapped }: ClusterConfig, seen: ReadonlySet<number>): readonly number[] {
  // After bootstrap an absent one is damage, which is for those to report who have seen everything.
  if (seen.size === size || (listing.complete === false && bootstrapped)) return [];
  const absent: number[] = [];
  for (let id = 0; id < size; id += 1) {
    if (!seen.has(id) && listing.covers?.(leaseKey(id)) !== false) absent.push(id);
  }
  return absent;
}
