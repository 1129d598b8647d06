import type { RandomSource } from '../clock.js';
import { CLUSTER_KEY } from './cluster-config.js';
import { PartialListing } from './partial-listing.js';

/** How many looks at a part may follow one another without the last one: there it stands whether the cluster has grown, and who else waits. */
const WITHOUT_END = 3;

/** More than there are parts. */
const MANY = 2 ** 32;

/** How likely an object may be in none of the parts that all of those who wait look at in one go. */
const MISS_CHANCE = 1e-4;

/** The parts of a listing that one request each shows, as of the last time that all of it was seen. */
export class ListingParts {
  /** The key after which each part begins, in order. */
  #starts: readonly (string | undefined)[] = [undefined];
  /** Whose turn it is. */
  #next: number;
  #withoutEnd = 0;

  constructor(random: RandomSource) {
    this.#next = Math.floor(random.next() * MANY);
  }

  /** How many requests it takes to see everything. */
  get count(): number {
    return this.#starts.length;
  }

  /** Takes note of a listing, or of a part. */
  see(listing: PartialListing): void {
    this.#withoutEnd = listing.reachedEnd ? 0 : this.#withoutEnd + 1;
    if (!listing.complete) return;
    this.#starts = listing.isPaged ? starts(listing) : [undefined];
  }

  /**
   * A listing that begins with the part whose turn it is, and of which nothing is fetched yet: everybody begins with another one, and comes by
   * all of them.
   *
   * @param parts how many of them are going to be fetched
   */
  next(parts: number): { readonly listing: PartialListing; readonly last: boolean } {
    const { count } = this;
    const isDue = this.#withoutEnd >= WITHOUT_END;
    const part = isDue ? count - 1 : this.#next % count;
    if (!isDue) this.#next += parts;
    return { listing: new PartialListing(this.#starts[part]), last: part === count - 1 };
  }
}

/** Parts of one length, so that each page reaches into the next part: a few more objects leave no gaps. */
function starts({ objects, pages }: PartialListing): readonly (string | undefined)[] {
  const keys = objects.map(({ key }) => key).sort();
  const even = Array.from({ length: pages }, (_, part) => Math.floor((part * keys.length) / pages));
  const settings = Math.max(0, keys.indexOf(CLUSTER_KEY));
  return even.map((first, part) => keys[(part === pages - 1 ? Math.min(first, settings) : first) - 1]);
}

/**
 * At how many of the parts of a listing each of those who wait is to look, so that together they overlook nothing.
 *
 * @param waiting how many wait
 * @param parts how many parts there are
 */
export function partsForEach(waiting: number, parts: number): number {
  return Math.ceil(parts * (1 - MISS_CHANCE ** (1 / waiting)));
}
