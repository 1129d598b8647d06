import {
  type Interval,
  type ListedObject,
  type Listing,
  type ListingPage,
  StoreError,
} from '../../store/lease-store.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';

/** Before the first page: any time is earlier, and any is later. */
const NO_TIME: Interval = { min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY };

/**
 * A listing that is fetched page by page in key order, from a start key to the last key. It continues from
 * the first key to the start key.
 */
export class PartialListing implements Listing {
  objects: readonly ListedObject[] = [];
  /** The objects of the last page. */
  latest: readonly ListedObject[] = [];
  /** The number of pages so far. */
  pages = 0;
  /** The key after which each page so far began; undefined for the page with the first key. */
  pageStarts: readonly (string | undefined)[] = [];
  /** From the time of the first page to the time of the last one. Each age refers to its own page. */
  storeTime: Interval = NO_TIME;
  /** True once it contains all objects. */
  complete = false;
  /** The key after which the next page begins; undefined for the page with the first key. */
  #after: string | undefined;
  #wrapped = false;

  /** @param start the key after which the first page begins; undefined for the first key */
  constructor(private readonly start: string | undefined) {
    this.#after = start;
  }

  /** Whether an object with this key would be among the objects, if it existed. */
  covers(key: string): boolean {
    if (this.complete) return true;
    const isFromStart = this.start === undefined || key > this.start;
    const isUpToHere = this.#after !== undefined && key <= this.#after;
    return this.#wrapped ? isFromStart || isUpToHere : isFromStart && isUpToHere;
  }

  /**
   * Fetches the next page of an incomplete listing, or all of it if the store does not list in pages.
   *
   * @throws {StoreError}
   */
  async fetchNext(session: StoreSession, call: SessionCall): Promise<void> {
    const page = await this.#nextPage(session, call);
    if (page !== undefined) return this.#add(page);
    const { objects, storeTime } = await session.list(call);
    this.objects = [];
    this.storeTime = NO_TIME;
    this.complete = true;
    this.#note(objects, storeTime);
    this.pageStarts = [undefined];
  }

  /**
   * Undefined if the store cannot begin a listing at a key, or returns something other than a page in key
   * order.
   */
  async #nextPage(session: StoreSession, call: SessionCall): Promise<ListingPage | undefined> {
    try {
      const page = await session.listPage(this.#after, call);
      const keys = [this.#after ?? '', ...page.objects.map(({ key }) => key)];
      const isInOrder = keys.every((key, index) => index === 0 || key > (keys[index - 1] as string));
      return isInOrder && !(page.more && page.objects.length === 0) ? page : undefined;
    } catch (error) {
      const isRefused =
        error instanceof StoreError && (error.fault === 'rejected' || error.fault === 'unsupported');
      if (this.#after !== undefined && isRefused) return undefined;
      throw error;
    }
  }

  #add({ objects, storeTime, more }: ListingPage): void {
    const { start } = this;
    this.pageStarts = [...this.pageStarts, this.#after];
    const isInRound = (key: string) => !this.#wrapped || start === undefined || key <= start;
    this.#note(
      objects.filter(({ key }) => isInRound(key)),
      storeTime,
    );
    const last = objects.at(-1)?.key;
    if (more && last !== undefined && (!this.#wrapped || start === undefined || last < start)) {
      this.#after = last;
    } else if (this.#wrapped || start === undefined) {
      this.complete = true;
    } else {
      this.#wrapped = true;
      this.#after = undefined;
    }
  }

  #note(objects: readonly ListedObject[], { min, max }: Interval): void {
    this.pages += 1;
    this.latest = objects;
    this.objects = [...this.objects, ...objects];
    this.storeTime = { min: Math.min(this.storeTime.min, min), max };
  }
}
