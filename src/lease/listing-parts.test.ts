import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../test/support/virtual-clock.js';
import type { ListedObject } from '../store/lease-store.js';
import { leaseKey } from './lease-state.js';
import { ListingParts, partsForEach } from './listing-parts.js';
import { PartialListing } from './partial-listing.js';

const PAGE = 9;
const STORE_TIME = { min: 5, max: 6 };
const KEYS = storeOf(40);

/** The keys of a store of so many leases, in order. */
function storeOf(leases: number): readonly string[] {
  return [...Array.from({ length: leases }, (_, id) => leaseKey(id)), 'cluster.json', 'waiting-3.json'].sort();
}

function row(key: string): ListedObject {
  return { key, etag: key, size: 0, age: { min: 0, max: 0 } };
}

/** Fetches the next page. */
const fetchFrom = (keys: readonly string[]) => async (listing: PartialListing) => {
  const rest = keys.filter((key) => listing.after === undefined || key > listing.after);
  listing.add({ objects: rest.slice(0, PAGE).map(row), storeTime: STORE_TIME, more: rest.length > PAGE });
};

/** All of a store, seen from some key on. */
async function seen(keys: readonly string[], start?: string): Promise<PartialListing> {
  const listing = new PartialListing(start);
  while (!listing.complete) await fetchFrom(keys)(listing);
  return listing;
}

/** The parts as one knows them who has seen everything. */
async function partsOf(keys: readonly string[], random = seededRandom(1), start?: string): Promise<ListingParts> {
  const parts = new ListingParts(random);
  parts.see(await seen(keys, start));
  return parts;
}

describe('the parts of a listing', () => {
  it.each([undefined, '18.json', '39.json'])('show everything together, one request each (seen from %s on)', async (start) => {
    const parts = await partsOf(KEYS, seededRandom(1), start);
    expect(parts.count).toBe((await seen(KEYS, start)).pages);
    const shown = new Set<string>();
    for (let look = 0; look < 2 * parts.count; look += 1) {
      const listing = await parts.fetch(1, fetchFrom(KEYS));
      expect(listing.pages).toBe(1);
      for (const { key } of listing.objects) shown.add(key);
    }
    expect([...shown].sort()).toEqual(KEYS);
  });

  it('show the end in every fourth look at the least', async () => {
    const keys = storeOf(200);
    const parts = await partsOf(keys);
    const ends: number[] = [];
    for (let look = 0; look < 200; look += 1) {
      const listing = await parts.fetch(1, fetchFrom(keys));
      if (listing.reachedEnd) ends.push(look);
    }
    expect(ends).toHaveLength(50);
    expect(Math.max(...ends.map((look, index) => look - (ends[index - 1] ?? -1)))).toBe(4);
  });

  it.each([1, 2, 3, 7])('that follow one another leave nothing out between them: %i', async (count) => {
    const keys = storeOf(80);
    const parts = await partsOf(keys);
    for (let look = 0; look < 40; look += 1) {
      const shown = (await parts.fetch(count, fetchFrom(keys))).objects.map(({ key }) => keys.indexOf(key));
      // In a circle.
      const steps = shown.map((at, index) => (at - (shown[index - 1] ?? at - 1) + keys.length) % keys.length);
      expect(new Set(steps)).toEqual(new Set([1]));
      expect(shown.length).toBeGreaterThanOrEqual(Math.floor((count * keys.length) / parts.count));
    }
  });

  it.each([10, 30])('go on to where the next one begins, however many objects were added in between: %i', async (added) => {
    const parts = await partsOf(KEYS);
    const more = [...KEYS, ...Array.from({ length: added }, (_, id) => leaseKey(40 + id))].sort();
    const shown = new Set<string>();
    for (let look = 0; look < 2 * parts.count; look += 1) {
      for (const { key } of (await parts.fetch(1, fetchFrom(more))).objects) shown.add(key);
    }
    expect([...shown].sort()).toEqual(more);
  });

  it.each([
    [2, 28],
    [3, 40],
    [5, 100],
    [10, 176],
    [25, 256],
  ])('are all looked at by somebody in the time of one pause: %i of them, by %i who wait', async (pages, waiting) => {
    const keys = storeOf(PAGE * pages - 7);
    const random = seededRandom(7);
    const all = await Promise.all(Array.from({ length: waiting }, () => partsOf(keys, random)));
    // They have all seen everything at the same time: nobody is in step with the others for that.
    for (let pause = 0; pause < 20; pause += 1) {
      const shown = new Set<string>();
      for (const parts of all) for (const { key } of (await parts.fetch(1, fetchFrom(keys))).objects) shown.add(key);
      expect(keys.filter((key) => !shown.has(key))).toEqual([]);
    }
  });

  it('are one where the store lists everything at once', async () => {
    const parts = await partsOf(KEYS);
    const whole = new PartialListing(undefined);
    whole.addAll({ objects: Array.from({ length: 3_000 }, (_, id) => row(leaseKey(id))), storeTime: STORE_TIME });
    parts.see(whole);
    expect(parts.count).toBe(1);
  });

  it('are all of it for a store that takes no key to begin after', async () => {
    const parts = await partsOf(KEYS);
    const listing = await parts.fetch(1, async (part) => part.addAll({ objects: KEYS.map(row), storeTime: STORE_TIME }));
    expect([listing.complete, listing.objects.length]).toEqual([true, KEYS.length]);
  });
});

describe('how many parts each looks at', () => {
  it.each([1, 2, 3, 4])('is such that one of %i is overlooked by all once in 10,000 times at the most, and no more than that', (parts) => {
    for (let waiting = 1; waiting <= 300; waiting += 1) {
      const each = partsForEach(waiting, parts);
      expect((1 - each / parts) ** waiting).toBeLessThanOrEqual(1.000_001e-4);
      if (each > 1) expect((1 - (each - 1) / parts) ** waiting).toBeGreaterThan(1e-4);
    }
  });

  it('is all for one alone, and one from so many on', () => {
    expect([1, 13, 14].map((waiting) => partsForEach(waiting, 2))).toEqual([2, 2, 1]);
    expect([1, 116, 117].map((waiting) => partsForEach(waiting, 10))).toEqual([10, 2, 1]);
    expect([1, 257].map((waiting) => partsForEach(waiting, 66))).toEqual([66, 4]);
  });
});
