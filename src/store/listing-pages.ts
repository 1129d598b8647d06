import { ageFromListing, storeTime } from './http-times.js';
import type { Listing, ListingPage } from './lease-store.js';
import { type Operation, type StoreRequest, senseless } from './store-request.js';

/** A page of a listing, and the token that continues it. */
export interface ContinuedPage extends ListingPage {
  readonly token: string | undefined;
}

/** A row of an object store's listing. */
interface Row {
  /** With the prefix. */
  readonly name: string | undefined;
  readonly etag: string;
  readonly size: number | undefined;
  readonly modified: Date | undefined;
}

/**
 * A page of an object store's listing.
 * @param date the `Date` header of the reply
 */
export function pageOf(
  keyPrefix: string,
  date: string | undefined,
  rows: readonly Row[],
  token: string | undefined,
): ContinuedPage {
  const objects = rows.flatMap(({ name, etag, size = 0, modified }) => {
    const key = name?.startsWith(keyPrefix) ? name.slice(keyPrefix.length) : '';
    // Consoles mark a folder by an object whose name is the prefix itself.
    return key === '' ? [] : [{ key, etag, size, age: ageFromListing(date, modified) }];
  });
  return { objects, storeTime: storeTime(date), more: token !== undefined, token };
}

/**
 * All pages of a listing as one.
 *
 * @throws {StoreError} when the listing cannot be continued, and those of `page`
 */
export async function allPages(
  request: StoreRequest<Operation>,
  page: (token: string | undefined) => Promise<ContinuedPage>,
): Promise<Listing> {
  const pages: ListingPage[] = [];
  for (let token: string | undefined; ; ) {
    const next = await page(token);
    pages.push(next);
    if (!next.more) break;
    // A server that repeats the same page would keep this loop for ever.
    if (next.token === undefined || next.token === token)
      throw senseless(request, 'a listing that cannot be continued');
    token = next.token;
  }
  // Each page was true at its own time.
  const times = pages.map(({ storeTime }) => storeTime);
  const min = Math.min(...times.map((time) => time.min));
  return {
    objects: pages.flatMap(({ objects }) => objects),
    storeTime: { min, max: times.at(-1)?.max ?? Number.POSITIVE_INFINITY },
  };
}
