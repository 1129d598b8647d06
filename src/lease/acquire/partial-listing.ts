import type { RandomSource } from '../../base/clock.js';
import { type Interval, type ListedObject, type Listing, type ListingPage, StoreError } from '../../store/lease-store.js';
import { leaseKey } from '../model/lease-state.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';

/** Objects that one request of a listing shows: what S3 gives. Nothing but the number of requests depends on it. */
const PAGE_OBJECTS = 1_000;

/**
 * A listing that is fetched page by page, as far as it is needed: in the order of the keys, from some key on and, after the last one, from
 * the first to there.
 */
export class PartialListing implements Listing {
  readonly #objects: ListedObject[] = [];
  #storeTime: Interval | undefined;
  /** The greatest key that was listed, and where the next page begins. */
  #until: string | undefined;
  #wrapped = false;
  readonly #pageStarts: (string | undefined)[] = [];
  #pages = 0;
  #latestFrom = 0;
  #complete = false;

  /** @param start the key after which the first page begins; undefined for the first of all */
  constructor(private readonly start: string | undefined) {
    this.#until = start;
  }

  get objects(): readonly ListedObject[] {
    return this.#objects;
  }

  /** From the first page's to the last one's; each age is as of its own page. */
  get storeTime(): Interval {
    return this.#storeTime ?? { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY };
  }

  /** True once it shows everything. */
  get complete(): boolean {
    return this.#complete;
  }

  /** What the last page has shown. */
  get latest(): readonly ListedObject[] {
    return this.#objects.slice(this.#latestFrom);
  }

  /** The key after which each page began; undefined for the first of all. */
  get pageStarts(): readonly (string | undefined)[] {
    return this.#pageStarts;
  }

  /** How many requests it has taken so far. */
  get pages(): number {
    return this.#pages;
  }

  /** Where the next page begins, as `listPage` takes it. */
  get after(): string | undefined {
    return this.#until;
  }

  /** Whether an object of that key would be among the objects, if there were one. */
  covers(key: string): boolean {
    if (this.#complete) return true;
    const fromStart = this.start === undefined || key > this.start;
    if (this.#wrapped) return fromStart || (this.#until !== undefined && key <= this.#until);
    return fromStart && this.#until !== undefined && key <= this.#until;
  }

  /** Takes a listing of everything in place of what was added before. */
  addAll({ objects, storeTime }: Listing): void {
    this.#pages += Math.ceil(objects.length / PAGE_OBJECTS);
    this.#objects.length = 0;
    for (const object of objects) this.#objects.push(object);
    this.#storeTime = storeTime;
    this.#complete = true;
    this.#pageStarts.length = 0;
    this.#pageStarts.push(undefined);
  }

  /** Adds the page that begins at {@link after}. */
  add({ objects, storeTime, more }: ListingPage): void {
    this.#pages += 1;
    this.#pageStarts.push(this.#until);
    this.#latestFrom = this.#objects.length;
    for (const object of objects) {
      // The last page of the round reaches beyond the beginning.
      if (this.#wrapped && this.start !== undefined && object.key > this.start) break;
      this.#objects.push(object);
    }
    this.#storeTime = { min: Math.min(this.#storeTime?.min ?? storeTime.min, storeTime.min), max: storeTime.max };
    const last = objects.at(-1)?.key;
    if (this.#wrapped) this.#complete = !more || last === undefined || (this.start !== undefined && last >= this.start);
    else if (more && last !== undefined) this.#until = last;
    else if (this.start === undefined) this.#complete = true;
    else {
      this.#wrapped = true;
      this.#until = undefined;
      return;
    }
    if (this.#wrapped && !this.#complete) this.#until = last;
  }
}

/**
 * Fetches the next page of a listing that is not complete; all of it at once where the store does not list in parts.
 *
 * @throws {StoreError}
 */
export async function fetchNextPage(session: StoreSession, listing: PartialListing, call: SessionCall): Promise<void> {
  const { after } = listing;
  const page = await pageAfter(session, after, call);
  // Folders fill pages, too, and not every server that speaks S3's language lists in the order of the keys.
  if (page !== undefined && isInOrder(page, after) && !(page.more && page.objects.length === 0)) listing.add(page);
  else listing.addAll(await session.list(call));
}

/** Undefined where the store takes no listing that begins at a key. */
async function pageAfter(session: StoreSession, after: string | undefined, call: SessionCall): Promise<ListingPage | undefined> {
  try {
    return await session.listPage(after, call);
  } catch (error) {
    if (after !== undefined && error instanceof StoreError && (error.fault === 'rejected' || error.fault === 'unsupported'))
      return undefined;
    throw error;
  }
}

function isInOrder({ objects }: ListingPage, after: string | undefined): boolean {
  return objects.every(({ key }, index) => {
    const before = index === 0 ? after : objects[index - 1]?.key;
    return before === undefined || key > before;
  });
}

/**
 * A listing of a cluster of about that size, of which nothing is fetched yet. It begins at a random page: any part will do to begin with, and
 * tasks that start together should not all begin with the same one.
 */
export function newListing({ store }: StoreSession, size: number, random: RandomSource): PartialListing {
  const pages = store.listPage === undefined ? 1 : pageCount(size);
  return new PartialListing(pageStart(size, Math.floor(random.next() * pages)));
}

/**
 * The key after which the nth page of a cluster's leases begins, if every object is there: keys are in the order of their characters.
 * Undefined for the first page.
 */
export function pageStart(size: number, page: number): string | undefined {
  return page === 0 ? undefined : leaseKey(nthInOrder(size, page * PAGE_OBJECTS - 1));
}

/** How many pages the listing of a cluster's leases has; the settings and the like come after them. */
export function pageCount(size: number): number {
  return Math.ceil(size / PAGE_OBJECTS);
}

/** The nth of the numbers 0 … size - 1 in the order of their digits: 0, 1, 10, 100, 101, … 11, … */
function nthInOrder(size: number, n: number): number {
  if (n === 0) return 0;
  let number = 1;
  for (let left = n - 1; left > 0; ) {
    const below = countFrom(number, size);
    if (below <= left) {
      left -= below;
      number += 1;
    } else {
      left -= 1;
      number *= 10;
    }
  }
  return number;
}

/** How many numbers below `size` begin with the digits of `prefix`. */
function countFrom(prefix: number, size: number): number {
  let count = 0;
  for (let [from, to] = [prefix, prefix + 1]; from < size; from *= 10, to *= 10) count += Math.min(to, size) - from;
  return count;
}
