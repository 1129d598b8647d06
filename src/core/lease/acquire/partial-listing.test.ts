import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { type LeaseStore, type ListedObject, type ListingPage, StoreError } from '../../store/lease-store.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { leaseKey } from '../model/lease-state.js';
import { StoreSession } from '../session/store-session.js';
import { firstListing, pageStart } from './candidate-scan.js';
import { PartialListing } from './partial-listing.js';

const PAGE = 7;
const STORE_TIME = { min: 5, max: 6 };

function row(key: string): ListedObject {
  return { key, etag: key, size: 0, age: { min: 0, max: 0 } };
}

/** A session with a store of these keys that lists seven at once. */
function sessionOf(keys: readonly string[], page?: (after: string | undefined) => ListingPage) {
  const clock = new VirtualClock();
  const sorted = [...keys].sort();
  const lists = { count: 0 };
  const store: LeaseStore = Object.assign(new MemoryLeaseStore({ clock }), {
    list: async () => ({ objects: sorted.map(row), storeTime: STORE_TIME }),
    listPage: async (after: string | undefined): Promise<ListingPage> => {
      lists.count += 1;
      if (page !== undefined) return page(after);
      const rest = sorted.filter((key) => after === undefined || key > after);
      return { objects: rest.slice(0, PAGE).map(row), storeTime: STORE_TIME, more: rest.length > PAGE };
    },
  });
  return { session: new StoreSession(store, clock, 1_000), lists, sorted };
}

const KEYS = [...Array.from({ length: 40 }, (_, id) => leaseKey(id)), 'cluster.json', 'notes.json'];

describe('a listing that is fetched page by page', () => {
  it.each([undefined, '0.json', '23.json', '39.json', '9.json', 'cluster.json', 'notes.json', 'zzz'])(
    'shows every object exactly once, wherever it begins (after %s)',
    async (start) => {
      const { session, sorted, lists } = sessionOf(KEYS);
      const listing = new PartialListing(start);
      while (!listing.complete) await listing.fetchNext(session, {});
      expect(listing.objects.map(({ key }) => key).sort()).toEqual(sorted);
      expect(lists.count).toBeLessThanOrEqual(Math.ceil(sorted.length / PAGE) + 2);
      expect(listing.pages).toBe(lists.count);
      expect(listing.pageStarts).toHaveLength(lists.count);
      expect(listing.pageStarts[0]).toBe(start);
    },
  );

  it('ends with the page that ends where it began', async () => {
    const { session, sorted, lists } = sessionOf(KEYS);
    const listing = new PartialListing(sorted[PAGE - 1]);
    while (!listing.complete) await listing.fetchNext(session, {});
    expect(lists.count).toBe(KEYS.length / PAGE);
  });

  it.each([undefined, '30.json'])('covers exactly the keys that it has passed (after %s)', async (start) => {
    const { session, sorted } = sessionOf(KEYS);
    const listing = new PartialListing(start);
    expect(sorted.filter((key) => listing.covers(key))).toEqual([]);
    while (!listing.complete) {
      await listing.fetchNext(session, {});
      const shown = listing.objects.map(({ key }) => key);
      expect(sorted.filter((key) => listing.covers(key))).toEqual([...shown].sort());
    }
    expect(listing.covers('anything')).toBe(true);
  });

  it('takes the whole listing of a store that does not list in the order of its keys, or shows an empty page in between', async () => {
    const pages: readonly ListingPage[] = [
      { objects: [row('1.json'), row('5.json')], storeTime: STORE_TIME, more: true },
      { objects: [], storeTime: STORE_TIME, more: true },
      { objects: [row('4.json'), row('4.json')], storeTime: STORE_TIME, more: true },
    ];
    for (const page of pages) {
      const { session, sorted } = sessionOf(KEYS, () => page);
      const listing = new PartialListing('3.json');
      await listing.fetchNext(session, {});
      expect(listing.objects.map(({ key }) => key)).toEqual(sorted);
      expect(listing.complete).toBe(true);
    }
  });

  it.each([
    ['rejected', '3.json', true],
    ['unsupported', '3.json', true],
    ['unavailable', '3.json', false],
    ['rejected', undefined, false],
  ] as const)(
    'is fetched as a whole where a page is %s that begins after %s: %s',
    async (fault, start, isWhole) => {
      const failure = new StoreError('no', { fault, outcome: 'not-applied' });
      const { session } = sessionOf(KEYS, () => {
        throw failure;
      });
      const listing = new PartialListing(start);
      const fetched = listing.fetchNext(session, {});
      if (isWhole) await fetched;
      else await expect(fetched).rejects.toBe(failure);
      expect(listing.objects).toHaveLength(isWhole ? KEYS.length : 0);
    },
  );

  it('has the store time from its first page to its last one', async () => {
    const pages: ListingPage[] = [
      { objects: [row('0.json')], storeTime: { min: 10, max: 11 }, more: true },
      { objects: [row('1.json')], storeTime: { min: 50, max: 51 }, more: false },
    ];
    const { session } = sessionOf(KEYS, () => pages.shift() as ListingPage);
    const listing = new PartialListing(undefined);
    while (!listing.complete) await listing.fetchNext(session, {});
    expect(listing.storeTime).toEqual({ min: 10, max: 51 });
  });
});

describe('the first listing of a cluster', () => {
  /** The first object of the listing, for this random number. */
  const begins = async (size: number, seed: number) => {
    const { session } = sessionOf(KEYS);
    const listing = firstListing(session, size, seededRandom(seed));
    await listing.fetchNext(session, {});
    return listing.objects[0]?.key;
  };

  it('begins at any page if it takes several requests, so that starters do not all read the same one', async () => {
    const keys = await Promise.all(Array.from({ length: 100 }, (_, seed) => begins(9_000, seed)));
    expect(new Set(keys).size).toBe(9);
  });

  it.each([1_001, 2_000, 4_321, 65_528])(
    'begins at every thousandth key in the order of the keys, of %i',
    (size) => {
      const keys = Array.from({ length: size }, (_, id) => leaseKey(id)).sort();
      for (let page = 0; page * 1_000 < size; page += 1)
        expect(pageStart(size, page)).toBe(page === 0 ? undefined : keys[page * 1_000 - 1]);
    },
  );

  it('begins at the first object where one request shows all', async () => {
    for (let seed = 0; seed < 10; seed += 1) expect(await begins(1_000, seed)).toBe('0.json');
  });

  it('takes one request where the store shows all at once', async () => {
    const session = new StoreSession(
      new MemoryLeaseStore({ clock: new VirtualClock() }),
      new VirtualClock(),
      1_000,
    );
    for (let seed = 0; seed < 10; seed += 1) {
      const listing = firstListing(session, 9_000, seededRandom(seed));
      await listing.fetchNext(session, {});
      expect([listing.complete, session.requests]).toEqual([true, seed + 1]);
    }
  });
});
