import type { LeaseStore, Listing, ListingPage } from '../../src/core/store/lease-store.js';

/** The same store, but that it shows a limited number of objects at once. */
export function inPages(store: LeaseStore, size: number): LeaseStore {
  const listPage = async (after: string | undefined) => pageOf(await store.list(), after, size);
  return Object.assign(store, { listPage });
}

/** The part of a listing, in the order of the keys, that one request shows: at most `size` objects. */
export function pageOf(
  { objects, storeTime }: Listing,
  after: string | undefined,
  size: number,
): ListingPage {
  const rest = objects.filter(({ key }) => after === undefined || key > after);
  return { objects: rest.slice(0, size), storeTime, more: rest.length > size };
}
