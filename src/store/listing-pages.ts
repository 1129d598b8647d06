import type { Listing, ListingPage } from './lease-store.js';
import { type StoreRequest, senseless } from './store-request.js';

/** A page of a listing, and what the next one is asked for with. */
export interface ContinuedPage extends ListingPage {
  readonly token: string | undefined;
}

/**
 * All pages of a listing as one.
 *
 * @throws {StoreError} when the listing cannot be continued, and those of `page`
 */
export async function allPages(
  request: StoreRequest,
  page: (token: string | undefined) => Promise<ContinuedPage>,
): Promise<Listing> {
  const pages: ListingPage[] = [];
  for (let token: string | undefined; ; ) {
    const next = await page(token);
    pages.push(next);
    if (!next.more) break;
    // A server that sends the same page again and again would keep this loop for ever.
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
