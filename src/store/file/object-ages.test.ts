import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { ObjectAges } from './object-ages.js';

let clock: VirtualClock;
let ages: ObjectAges;

beforeEach(() => {
  clock = new VirtualClock();
  ages = new ObjectAges({ id: 'this boot', resolutionMs: 10, now: () => clock.monotonic() }, clock);
});

describe('the age of an object', () => {
  it('is known to within the step of the clock from a stamp of this boot', async () => {
    const stamp = ages.stamp();
    await clock.advance(5000);
    expect(ages.of('0.json', 'e', stamp, clock.monotonic())).toEqual({ min: 4990, max: 5010 });
  });

  it('is never negative', () => {
    expect(ages.of('0.json', 'e', { clock: 'this boot', ms: 25 }, clock.monotonic())).toEqual({ min: 0, max: 10 });
  });

  it.each([
    ['written in another boot', { clock: 'another boot', ms: 1 }],
    ['made by hand', undefined],
  ])('is at least the time for which one that was %s has been seen unchanged', async (_, stamp) => {
    await clock.advance(1_000_000);
    expect(ages.of('0.json', 'e', stamp, clock.monotonic())).toEqual({ min: 0, max: Number.POSITIVE_INFINITY });
    await clock.advance(7000);
    expect(ages.of('0.json', 'e', stamp, clock.monotonic())).toEqual({ min: 7000, max: Number.POSITIVE_INFINITY });
    expect(ages.of('0.json', 'other', stamp, clock.monotonic()).min).toBe(0);
    expect(ages.of('1.json', 'e', stamp, clock.monotonic()).min).toBe(0);
  });

  it('begins anew when a state is seen again after another one', async () => {
    for (const etag of ['e', 'other', 'e']) {
      expect(ages.of('0.json', etag, undefined, clock.monotonic()).min).toBe(0);
      await clock.advance(1000);
    }
  });

  it('counts up to the moment before the object was looked at, however long that took', async () => {
    ages.of('0.json', 'e', undefined, clock.monotonic());
    await clock.advance(1000);
    const lookedAt = clock.monotonic();
    await clock.advance(5000);
    expect(ages.of('0.json', 'e', undefined, lookedAt).min).toBe(1000);
  });
});
