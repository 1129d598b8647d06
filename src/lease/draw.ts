import type { RandomSource } from '../clock.js';
import type { Candidate } from './lease-survey.js';

/**
 * A fleet this large starts many tasks at once: so many ids that were used before, and so many that are free; or so many free ones that nobody
 * has used yet. Whoever sees that presumes that others are starting, too.
 */
const LARGE_FLEET = { used: 32, free: 32, unused: 512 } as const;

/** How long to wait after a lost race, at the most and by chance: so many requests after the first one, twice as many after every further one. */
const SPREAD_REQUESTS = { first: 8, most: 16 } as const;

/** However slow the store is: waiting longer would cost a start more than it saves in requests. */
const SPREAD_MOST_MS = 2_500;

/** How many ids a listing, or a part of one, shows. */
export interface Ids {
  /** Those that may be free. */
  readonly free: number;
  /** Those that have been held at some time, or are. */
  readonly used: number;
}

/**
 * Decides which of the ids that may be free to try next, and when to look again: the lowest one, and once others are known to want
 * one, too, any of them by chance, so that all find one in few requests.
 */
export class Draw {
  #contended = false;
  #losses = 0;
  /** How often a listing was given up for being out of date. */
  #rounds = 0;

  constructor(private readonly random: RandomSource) {}

  /** True once a race was lost, or is as good as certain. */
  get contended(): boolean {
    return this.#contended;
  }

  /** How many races were lost so far. */
  get losses(): number {
    return this.#losses;
  }

  /** Others are known to start at the same time. */
  presumeContention(): void {
    this.#contended = true;
  }

  /** Whether what a part of a listing shows is enough to draw from: all of a large cluster is not to be listed by everybody. */
  suffices({ free, used }: Ids): boolean {
    return free >= LARGE_FLEET.free || (free > 0 && (this.#contended || used >= LARGE_FLEET.used));
  }

  /** Notes what a listing shows. */
  see({ free, used }: Ids): void {
    if (free >= LARGE_FLEET.unused || (used >= LARGE_FLEET.used && free >= LARGE_FLEET.free)) this.#contended = true;
  }

  /** Takes the next one to try out of `rest`, which is not empty. */
  next(rest: Candidate[]): Candidate {
    const index = this.#contended ? Math.floor(this.random.next() * rest.length) : 0;
    return rest.splice(index, 1)[0] as Candidate;
  }

  /**
   * Notes that somebody else was faster. True where the next one is to be drawn from the same listing: after the very first time all that was
   * learned is that others are there.
   */
  lost(): boolean {
    const news = !this.#contended;
    this.#contended = true;
    this.#losses += 1;
    return news;
  }

  /** How long to leave those who won to themselves before the next listing, in milliseconds. */
  spreadMs(requestMs: number): number {
    this.#rounds += 1;
    const requests = Math.min(SPREAD_REQUESTS.most, SPREAD_REQUESTS.first * 2 ** Math.min(this.#rounds - 1, 30));
    return this.random.next() * Math.min(requests * requestMs, SPREAD_MOST_MS);
  }
}
