import type { RandomSource } from '../../base/clock.js';
import type { Interval, ListedObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey, mayExceed, nodeIdOf } from '../model/lease-state.js';
import type { ShownDurations } from './shown-durations.js';

/** A node id that may be free according to a LIST. */
export interface Candidate {
  readonly id: number;
  readonly key: string;
  /** The row of the listing; undefined when the object is absent. */
  readonly row: ListedObject | undefined;
}

/** The information in the rows of a listing. All of it is a hint (rule 4). */
interface ClassifiedRows {
  /** Ids whose objects are empty, tombstones, or old enough to be expired. */
  readonly candidates: readonly Candidate[];
  /** Number of ids that are held, or were held. */
  readonly used: number;
  /**
   * The lease that looks held and can be found expired first, its age, and the time from the listing to that
   * moment, in milliseconds.
   */
  readonly firstExpiry: { readonly key: string; readonly age: Interval; readonly inMs: number } | undefined;
}

/** Finds the ids that may be free, by size and age alone. */
export function classify(
  rows: readonly ListedObject[],
  cluster: ClusterConfig,
  shown: ShownDurations,
): ClassifiedRows {
  const candidates: Candidate[] = [];
  let used = 0;
  let firstExpiry: ClassifiedRows['firstExpiry'];
  for (const row of rows) {
    const id = nodeIdOf(row.key);
    if (id === undefined || id >= cluster.size) continue;
    if (row.size > 0) used += 1;
    const needMs = shown.takenAfterMs(row.key, cluster);
    if (row.size > nativeCodec.tombstoneMaxBytes && !mayExceed(row.age, needMs)) {
      // Rule 4: the lower bound of the age must exceed it.
      const inMs = needMs - row.age.min + 1;
      if (inMs < (firstExpiry?.inMs ?? Number.POSITIVE_INFINITY))
        firstExpiry = { key: row.key, age: row.age, inMs };
    } else {
      candidates.push({ id, key: row.key, row });
    }
  }
  return { candidates, used, firstExpiry };
}

/** The ids below `size` without a row, as far as the rows `cover` them, in ascending order. */
export function absentIds(
  rows: readonly ListedObject[],
  size: number,
  covers: (key: string) => boolean = () => true,
): number[] {
  const keys = new Set(rows.map(({ key }) => key));
  const isAbsent = (key: string) => !keys.has(key) && covers(key);
  return Array.from({ length: size }, (_, id) => id).filter((id) => isAbsent(leaseKey(id)));
}

/**
 * Numbers of ids from which a starter presumes other starters: `used` and `free` ids together, or `unused`
 * free ids alone.
 */
const LARGE_FLEET = { used: 32, free: 32, unused: 512 } as const;

/**
 * Longest pause after a lost race, in request times: `first` after the first loss, growing to `max`. Jitter
 * shortens each pause.
 */
const PAUSE_REQUESTS = { first: 8, max: 16 } as const;

/**
 * Longest pause on a slow store, in milliseconds: more would delay a start by more than the saved requests
 * are worth.
 */
const MAX_PAUSE_MS = 2_500;

/** How many ids a listing, or a part of one, shows. */
interface IdCounts {
  /** Ids that may be free. */
  readonly free: number;
  /** Ids that are held, or were held. */
  readonly used: number;
}

/**
 * Chooses the next candidate: the lowest one, or a random one once other starters are known. So all starters
 * find an id in few requests.
 */
export class CandidateChoice {
  #contended = false;
  /** The number of lost races so far. */
  losses = 0;
  /** Number of listings that were dropped as outdated. */
  #rounds = 0;

  constructor(private readonly random: RandomSource) {}

  /** Notes that other tasks start at the same time. */
  presumeContention(): void {
    this.#contended = true;
  }

  /** Whether a part of a listing shows enough to choose from, so that the rest need not be listed. */
  suffices({ free, used }: IdCounts): boolean {
    return free >= LARGE_FLEET.free || (free > 0 && (this.#contended || used >= LARGE_FLEET.used));
  }

  /** Notes what a listing shows. */
  see({ free, used }: IdCounts): void {
    if (free >= LARGE_FLEET.unused || (used >= LARGE_FLEET.used && free >= LARGE_FLEET.free))
      this.#contended = true;
  }

  /** Removes the next candidate to try from `rest`, which is not empty. */
  next(rest: Candidate[]): Candidate {
    const index = this.#contended ? Math.floor(this.random.next() * rest.length) : 0;
    return rest.splice(index, 1)[0] as Candidate;
  }

  /**
   * Notes a lost race. True if the same listing is used once more: the first loss only shows that there are
   * other starters.
   */
  lost(): boolean {
    const news = !this.#contended;
    this.#contended = true;
    this.losses += 1;
    return news;
  }

  /**
   * How long to wait before the next listing, in milliseconds, so that it shows the ids that the winners
   * took.
   */
  pauseAfterLossMs(requestMs: number): number {
    this.#rounds += 1;
    const requests = Math.min(PAUSE_REQUESTS.max, PAUSE_REQUESTS.first * 2 ** Math.min(this.#rounds - 1, 30));
    return this.random.next() * Math.min(requests * requestMs, MAX_PAUSE_MS);
  }
}
