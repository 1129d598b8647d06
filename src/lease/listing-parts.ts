import type { RandomSource } from '../clock.js';
import { CLUSTER_KEY } from './cluster-config.js';
import { PartialListing } from './partial-listing.js';

/** Every how many looks the last part is looked at: there it stands whether the cluster has grown, and who else waits. */
const LAST_EVERY = 4;

/** More than there are parts. */
const MANY = 2 ** 32;

/** How likely a part may be one that none of those who wait looks at in the time of one pause. */
const MISS_CHANCE = 1e-4;

/** The parts of a listing that one request each shows, as of the last time that all of it was seen. */
export class ListingParts {
  /** The key after which each part begins, in order. */
  #starts: readonly (string | undefined)[] = [undefined];
  /** How many looks there were, and whose turn it is. Nobody begins as the others do: who looks at the same time looks at different parts. */
  #looks: number;
  #turn: number;

  constructor(random: RandomSource) {
    this.#looks = Math.floor(random.next() * MANY);
    this.#turn = Math.floor(this.#looks / LAST_EVERY);
  }

  /** How many requests it takes to see everything. */
  get count(): number {
    return this.#starts.length;
  }

  /** Takes note of a listing, or of a part. */
  see(listing: PartialListing): void {
    if (listing.complete) this.#starts = listing.isPaged ? starts(listing) : [undefined];
  }

  /**
   * Fetches so many parts that follow one another, in turn with the others.
   *
   * @throws what `fetchNext` throws
   */
  async fetch(parts: number, fetchNext: (listing: PartialListing) => Promise<void>): Promise<PartialListing> {
    const { count } = this;
    const first = this.#next(parts);
    const listing = new PartialListing(this.#starts[first]);
    // The first one begins with the first object: who comes to it has seen the end.
    const end = this.#starts[(first + parts) % count];
    do {
      await fetchNext(listing);
    } while (!listing.complete && !(end === undefined ? listing.reachedEnd : listing.covers(end)));
    return listing;
  }

  #next(parts: number): number {
    const last = this.count - 1;
    const looks = this.#looks;
    this.#looks += 1;
    if (this.count > LAST_EVERY && looks % LAST_EVERY === 0) return last;
    const turn = this.#turn;
    this.#turn += parts;
    return turn % (this.count > LAST_EVERY ? last : this.count);
  }
}

/** Parts of one length, so that each page reaches into the next part: a few more objects leave no gaps. */
function starts({ objects, pages }: PartialListing): readonly (string | undefined)[] {
  const keys = objects.map(({ key }) => key).sort();
  const even = Array.from({ length: pages }, (_, part) => Math.floor((part * keys.length) / pages));
  // The settings and all that comes after them are the last part's.
  const settings = Math.max(0, keys.indexOf(CLUSTER_KEY));
  return [...new Set(even.map((first) => Math.min(first, settings)))].map((first) => keys[first - 1]);
}

/**
 * At how many of the parts of a listing each of those who wait is to look, so that together they hardly ever overlook any.
 *
 * @param waiting how many wait
 * @param parts how many parts there are
 */
export function partsForEach(waiting: number, parts: number): number {
  const looks = parts > LAST_EVERY ? waiting * (1 - 1 / LAST_EVERY) : waiting;
  return Math.ceil(parts * (1 - MISS_CHANCE ** (1 / looks)));
}
