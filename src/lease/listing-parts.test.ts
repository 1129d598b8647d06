import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../test/support/virtual-clock.js';
import type { ListedObject } from '../store/lease-store.js';
import { leaseKey } from './lease-state.js';
import { ListingParts, partsForEach } from './listing-parts.js';
import { PartialListing } from './partial-listing.js';

const STORE_TIME = { min: 5, max: 6 };
const KEYS = [...Array.from({ length: 40 }, (_, id) => leaseKey(id)), 'cluster.json', 'waiting-3.json'].sort();

function row(key: string): ListedObject {
  return { key, etag: key, size: 0, age: { min: 0, max: 0 } };
}

/** Adds the next page, of nine objects. */
function add(listing: PartialListing, keys = KEYS): void {
  const rest = keys.filter((key) => listing.after === undefined || key > listing.after);
  listing.add({ objects: rest.slice(0, 9).map(row), storeTime: STORE_TIME, more: rest.length > 9 });
}

/** All of a store, seen from some key on. */
function seen(start?: string): PartialListing {
  const listing = new PartialListing(start);
  while (!listing.complete) add(listing);
  return listing;
}

describe('the parts of a listing', () => {
  it.each([undefined, '18.json', '39.json'])('show everything together, one request each (seen from %s on)', (start) => {
    const parts = new ListingParts(seededRandom(1));
    const whole = seen(start);
    parts.see(whole);
    expect(parts.count).toBe(whole.pages);
    const shown = new Set<string>();
    for (let draw = 0; draw < 100; draw += 1) {
      const { listing } = parts.next(1);
      add(listing);
      for (const { key } of listing.objects) shown.add(key);
    }
    expect([...shown].sort()).toEqual(KEYS);
  });

  it('are looked at in turn, and the last one in every fourth look at the least', () => {
    const parts = new ListingParts(seededRandom(2));
    parts.see(seen());
    const ends: number[] = [];
    for (let draw = 0; draw < 200; draw += 1) {
      const { listing, last } = parts.next(1);
      add(listing);
      expect(listing.reachedEnd).toBe(last);
      if (last) ends.push(draw);
      parts.see(listing);
    }
    expect(Math.max(...ends.map((draw, index) => draw - (ends[index - 1] ?? -1)))).toBe(4);
    expect(ends.length).toBeLessThan(100);
  });

  it('are one where the store lists everything at once', () => {
    const parts = new ListingParts(seededRandom(3));
    parts.see(seen());
    const whole = new PartialListing(undefined);
    whole.addAll({ objects: Array.from({ length: 3_000 }, (_, id) => row(leaseKey(id))), storeTime: STORE_TIME });
    parts.see(whole);
    expect(parts.count).toBe(1);
    const { listing, last } = parts.next(1);
    expect([listing.after, last]).toEqual([undefined, true]);
  });
});

describe('how many parts each looks at', () => {
  it.each([1, 2, 3, 5, 14, 25, 66])(
    'is such that %i parts are overlooked by all once in 10,000 times at the most, and no more than that',
    (parts) => {
      for (let waiting = 1; waiting <= 300; waiting += 1) {
        const each = partsForEach(waiting, parts);
        expect((1 - each / parts) ** waiting).toBeLessThanOrEqual(1.000_001e-4);
        if (each > 1) expect((1 - (each - 1) / parts) ** waiting).toBeGreaterThan(1e-4);
      }
    },
  );

  it('is all for one alone, and one from 14 on where there are two', () => {
    expect([partsForEach(1, 66), partsForEach(13, 2), partsForEach(14, 2)]).toEqual([66, 2, 1]);
  });
});
