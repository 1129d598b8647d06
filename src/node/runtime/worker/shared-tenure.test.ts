import { describe, expect, it } from 'vitest';
import { SharedTenure } from './shared-tenure.js';

const NOW = 1_795_219_197_534;

function published(deadline: number, before: number, now: number, monotonic: number): SharedTenure {
  const keeper = new SharedTenure();
  keeper.publish(deadline, { after: NOW - 1, before: () => before, now: () => now }, monotonic);
  return new SharedTenure(keeper.memory);
}

describe('the shared part of a tenure', () => {
  it('is that of a lease that is not held, before anything is known', () => {
    const main = new SharedTenure();
    expect(main).toMatchObject({ deadline: 0, before: 0, stampedUntil: 0 });
  });

  it('has the deadline and the bounds as they were published', () => {
    const main = published(15_000.25, NOW + 15_000, NOW, 100);
    expect(main).toMatchObject({ deadline: 15_000.25, after: NOW - 1, before: NOW + 15_000 });
  });

  it('keeps timestamps of any size exact', () => {
    const main = published(1, Number.MAX_SAFE_INTEGER, NOW, 100);
    expect(main.before).toBe(Number.MAX_SAFE_INTEGER);
    main.stamp(Number.MAX_SAFE_INTEGER);
    expect(main.stampedUntil).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('has store time, which follows the monotonic clock and never runs ahead, even if that clock is fast', () => {
    const main = published(1, 2, NOW + 0.5, 100);
    expect(main.storeNow(100)).toBeCloseTo(NOW + 0.5, 2);
    expect(main.storeNow(10_100)).toBeLessThan(NOW + 10_000);
    expect(main.storeNow(10_100)).toBeGreaterThan(NOW + 9_990);
  });

  it('has the last id timestamp', () => {
    const main = new SharedTenure();
    const keeper = new SharedTenure(main.memory);
    main.stamp(NOW);
    main.stamp(NOW - 5);
    expect(keeper.stampedUntil).toBe(NOW);
  });

  it('keeps the bounds at the end of the tenure', () => {
    const main = published(15_000, NOW, NOW, 100);
    new SharedTenure(main.memory).end();
    expect(main).toMatchObject({ deadline: 0, before: NOW });
  });
});
