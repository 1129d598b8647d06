import { describe, expect, it } from 'vitest';
import { ageFromHeaders, ageFromListing, storeTime } from './http-times.js';

const noon = Date.UTC(2026, 10, 21, 12, 0, 0);
const header = (ms: number) => new Date(noon + ms).toUTCString();

describe('the age of an object', () => {
  it('always contains the true age, whatever the fractions of a second that the headers lack, and is never below zero', () => {
    for (let written = 0; written < 2_000; written += 37) {
      for (const trueAge of [0, 1, 500, 999, 1_000, 1_001, 2_345, 15_999, 16_000]) {
        const age = ageFromHeaders(header(written + trueAge), header(written));
        expect(age.min).toBeGreaterThanOrEqual(0);
        expect(age.min).toBeLessThanOrEqual(trueAge);
        expect(age.max).toBeGreaterThanOrEqual(trueAge);
        expect(age.max - age.min).toBeLessThan(2_000);
      }
    }
  });

  it('in a listing uses the milliseconds that there are, and takes a whole second for a cut one', () => {
    for (let written = 0; written < 2_000; written += 37) {
      for (const trueAge of [0, 1, 500, 999, 1_000, 2_345, 16_000]) {
        const exact = ageFromListing(header(written + trueAge), new Date(noon + written));
        const cut = ageFromListing(
          header(written + trueAge),
          new Date(Math.floor((noon + written) / 1000) * 1000),
        );
        for (const age of [exact, cut]) {
          expect(age.min).toBeLessThanOrEqual(trueAge);
          expect(age.max).toBeGreaterThanOrEqual(trueAge);
        }
      }
    }
    expect(ageFromListing(header(5_000), new Date(noon + 1))).toEqual({ min: 4_999, max: 5_998 });
    expect(ageFromListing(header(5_000), new Date(noon))).toEqual({ min: 4_001, max: 5_999 });
  });

  it.each([
    ['no Date', undefined, header(0)],
    ['no Last-Modified', header(0), undefined],
    ['an empty Date', '', header(0)],
    ['a Date without a zone', 'Sat, 21 Nov 2026 12:00:00', header(0)],
    ['a Date in another format', '2026-11-21T12:00:00Z', header(0)],
    ['a Date with another zone', 'Sat, 21 Nov 2026 12:00:00 CET', header(0)],
    ['a Last-Modified that is no date', header(0), 'yesterday'],
    ['an impossible Last-Modified', header(0), 'Sat, 99 Foo 2026 12:00:00 GMT'],
    // Of servers that do not know it.
    ['a Last-Modified that is zero in Unix', header(0), 'Thu, 01 Jan 1970 00:00:00 GMT'],
    ['a Last-Modified that is zero in Go', header(0), 'Mon, 01 Jan 0001 00:00:00 GMT'],
  ])('is unknown, so that no task takes over, with %s', (_, date, modified) => {
    expect(ageFromHeaders(date, modified)).toEqual({ min: 0, max: Number.POSITIVE_INFINITY });
  });

  it('is nothing to rest on when an object was written after it was read', () => {
    expect(ageFromHeaders(header(0), header(60_000))).toEqual({ min: 0, max: 999 });
    expect(ageFromListing(header(0), new Date(Number.NaN))).toEqual({
      min: 0,
      max: Number.POSITIVE_INFINITY,
    });
  });
});

describe('the time of an S3 server', () => {
  it('is the second that its Date header names, and without one it is unbounded', () => {
    expect(storeTime(header(0))).toEqual({ min: noon, max: noon + 999 });
    expect(storeTime(undefined)).toEqual({ min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY });
  });
});
