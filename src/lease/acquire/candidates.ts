import type { RandomSource } from '../../base/clock.js';
import type { Interval, ListedObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey, mayExceed, nodeIdOf } from '../model/lease-state.js';

/** A node id that may be free, as far as a LIST tells. */
export interface Candidate {
  readonly id: number;
  readonly key: string;
  /** The row of the listing; undefined when the object is absent. */
  readonly row: ListedObject | undefined;
}

/** What the rows of a listing tell: hints, all of them (rule 4). */
export interface ClassifiedRows {
  /** Ids whose objects are empty, tombstones, or old enough to be expired. */
  readonly candidates: readonly Candidate[];
  /** How many ids are held, or have been. */
  readonly used: number;
  /**
   * The seemingly held lease that can be found expired first, its age, and how long after the listing that
   * is, in milliseconds.
   */
  readonly firstExpiry: { readonly key: string; readonly age: Interval; readonly inMs: number } | undefined;
}

/** Tells the ids that may be free from the others, by size and age alone. */
export function classify(rows: readonly ListedObject[], cluster: ClusterConfig): ClassifiedRows {
  const needMs = cluster.durationMs + cluster.graceMs;
  const candidates: Candidate[] = [];
  let used = 0;
  let firstExpiry: ClassifiedRows['firstExpiry'];
  for (const row of rows) {
    const id = nodeIdOf(row.key);
    if (id === undefined || id >= cluster.size) continue;
    if (row.size > 0) used += 1;
    if (row.size > nativeCodec.tombstoneMaxBytes && !mayExceed(row.age, needMs)) {
      // Rule 4 wants the lower bound of the age to exceed it.
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
 * Numbers of ids from which on a starter presumes other starters: `used` ones and `free` ones, or `unused`
 * free ones alone.
 */
const LARGE_FLEET = { used: 32, free: 32, unused: 512 } as const;

/**
 * The longest pause after a lost race, as a number of requests: after the first one, and after any further
 * one. Chance shortens it.
 */
const PAUSE_REQUESTS = { first: 8, max: 16 } as const;

/**
 * The longest pause on a slow store, in milliseconds: a longer one costs a start more than it saves in
 * requests.
 */
const MAX_PAUSE_MS = 2_500;

/** How many ids a listing, or a part of one, shows. */
export interface IdCounts {
  /** Ids that may be free. */
  readonly free: number;
  /** Ids that have been held at some time, or are. */
  readonly used: number;
}

/**
 * Chooses the candidate to try next: the lowest one, and once other starters are known, a random one, so that
 * all find an id in few requests.
 */
export class CandidateChoice {
  #contended = false;
  /** The number of lost races so far. */
  losses = 0;
  /** How often a listing was given up for being out of date. */
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

  /** Takes the next one to try out of `rest`, which is not empty. */
  next(rest: Candidate[]): Candidate {
    const index = this.#contended ? Math.floor(this.random.next() * rest.length) : 0;
    return rest.splice(index, 1)[0] as Candidate;
  }

  /**
   * Notes a lost race. True where the same listing is used once more: the first loss only tells that there
   * are other starters.
   */
  lost(): boolean {
    const news = !this.#contended;
    this.#contended = true;
    this.losses += 1;
    return news;
  }

  /**
   * How long to wait before the next listing, so that it shows what the winners have taken, in milliseconds.
   */
  pauseAfterLossMs(requestMs: number): number {
    this.#rounds += 1;
    const requests = Math.min(PAUSE_REQUESTS.max, PAUSE_REQUESTS.first * 2 ** Math.min(this.#rounds - 1, 30));
    return this.random.next() * Math.min(requests * requestMs, MAX_PAUSE_MS);
  }
}
