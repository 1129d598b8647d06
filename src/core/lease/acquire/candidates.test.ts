import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { ListedObject } from '../../store/lease-store.js';
import { newCluster } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey } from '../model/lease-state.js';
import { CandidateChoice, classify } from './candidates.js';
import { ShownDurations } from './shown-durations.js';

describe('the pause after lost races', () => {
  /** The longest jitter. */
  const longest = (requestMs: number) => {
    const choice = new CandidateChoice({ next: () => 0.999_999, hex: () => '' });
    return Array.from({ length: 8 }, () => choice.pauseAfterLossMs(requestMs));
  };

  it('grows with the time of a request, up to a maximum', () => {
    const pauses = longest(20);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses.at(-1)).toBeGreaterThan(pauses[0] as number);
    expect(pauses.at(-1)).toBeLessThan(1_000);
  });

  it('takes no more than two or three seconds of a start, however slow the store is', () => {
    for (const requestMs of [200, 1_000, 5_000, 60_000])
      expect(Math.max(...longest(requestMs))).toBeLessThanOrEqual(3_000);
    expect(Math.max(...longest(1_000))).toBeGreaterThanOrEqual(2_000);
  });
});

describe('the first id that is tried', () => {
  const candidates = () =>
    Array.from({ length: 600 }, (_, id) => ({ id, key: leaseKey(id), row: undefined }));
  const firstOf = (free: number, used: number) => {
    const choice = new CandidateChoice({ next: () => 0.5, hex: () => '' });
    choice.see({ free, used });
    return choice.next(candidates()).id;
  };

  it.each([
    ['the lowest one', { free: 511, used: 31 }, 0],
    ['the lowest one where few are left', { free: 31, used: 600 }, 0],
    ['any one in a large fleet', { free: 32, used: 32 }, 300],
    ['any one in a large cluster that no task has used yet', { free: 512, used: 0 }, 300],
  ])('is %s: %o', (_which, { free, used }, id) => {
    expect(firstOf(free, used)).toBe(id);
  });
});

describe('a part of a listing', () => {
  it.each([
    [{ free: 31, used: 31 }, false, false],
    [{ free: 32, used: 0 }, false, true],
    [{ free: 1, used: 31 }, false, false],
    [{ free: 1, used: 32 }, false, true],
    [{ free: 0, used: 600 }, false, false],
    [{ free: 1, used: 0 }, true, true],
    [{ free: 0, used: 0 }, true, false],
  ])('of %o suffices for a choice, in a fleet that competes: %s → %s', (counts, isContended, suffices) => {
    const choice = new CandidateChoice({ next: () => 0.5, hex: () => '' });
    if (isContended) choice.presumeContention();
    expect(choice.suffices(counts)).toBe(suffices);
  });
});

describe('the rows of a listing', () => {
  const cluster = newCluster({ nodes: 3, durationMs: 15_000, graceMs: 1_000 });
  const shown = new ShownDurations(new VirtualClock());
  const row = (key: string, size: number, ageMs: number): ListedObject => ({
    ...{ key, etag: key, size, age: { min: ageMs, max: ageMs } },
  });
  const { tombstoneMaxBytes } = nativeCodec;

  it('are candidates where they are empty, as small as a tombstone, or old; those of other ids are not', () => {
    const { candidates, used } = classify(
      [
        ...[row('0.json', 0, 0), row('1.json', tombstoneMaxBytes, 0), row('2.json', 500, 16_001)],
        ...[row('3.json', 0, 0), row('cluster.json', 400, 0)],
      ],
      cluster,
      shown,
    );
    expect([candidates.map(({ id }) => id), used]).toEqual([[0, 1, 2], 2]);
  });

  it('show the first expiry of those that are held', () => {
    const found = classify(
      [row('0.json', 500, 200), row('1.json', tombstoneMaxBytes + 1, 300), row('2.json', 500, 100)],
      cluster,
      shown,
    );
    expect(found).toEqual({
      ...{ candidates: [], used: 3 },
      firstExpiry: { key: '1.json', age: { min: 300, max: 300 }, inMs: 15_701 },
    });
  });
});
