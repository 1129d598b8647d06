import { describe, expect, it } from 'vitest';
import {
  acquired,
  availability,
  evicted,
  type HeldLease,
  type LeaseState,
  leapt,
  mayExceed,
  nodeIdOf,
  previousHolder,
  released,
  renewed,
  retired,
  revived,
  stampedUntilOf,
} from './lease-state.js';
import { pastTenures } from './tenure-history.js';

const claim = {
  taskId: 'task',
  nonce: 'n',
  durationMs: 15_000,
  storeNow: 1_000_000.7,
  stampedUntil: 0,
  idWidth: 8,
};
const held: HeldLease = acquired(
  { kind: 'released', version: 5, timestamp: 900_000, durationMs: 0, stampedUntil: undefined },
  claim,
);
const age = (min: number) => ({ min, max: min + 2_000 });

describe('a new tenure', () => {
  it('has a version above every one that was used (rule 2)', () => {
    expect(acquired({ kind: 'vacant' }, claim).version).toBe(1);
    expect(held.version).toBe(6);
    expect(acquired(held, claim).version).toBe(7);
    expect(acquired(evicted(held), claim).version).toBe(8);
  });

  it('leaps once in an epoch: released and evicted leases keep its mark (rule 12)', () => {
    const inEpoch = { ...claim, epoch: 'mark' };
    const first = acquired(held, inEpoch);
    expect(first.version).toBeGreaterThan(1_000 * 2 ** 20);
    for (const tombstone of [released(first, undefined, 0), evicted(first)])
      expect(acquired(tombstone, inEpoch).version - tombstone.version).toBe(1);
  });

  it('leaps by store time, and by a second where that is not above what was used', () => {
    expect([0, 2 ** 20 - 1, 2 ** 20, 2 ** 30].map((from) => leapt(from, 1_000))).toEqual([
      2 ** 20,
      2 ** 20,
      2 ** 21,
      2 ** 30 + 2 ** 20,
    ]);
  });

  it('ends after the previous tenure, even if the clock of the store was set back', () => {
    expect(acquired(held, { ...claim, storeNow: 0 }).timestamp).toBe(held.timestamp + 1);
    expect(
      renewed(held, { renewal: 1, durationMs: 15_000, storeNow: 0, knownNodes: {}, width: held }).timestamp,
    ).toBe(held.timestamp);
  });

  it('counts its expiry in whole milliseconds of store time', () => {
    expect([held.acquiredAt, held.timestamp]).toEqual([1_000_000, 1_015_000]);
    const change = { renewal: 1, durationMs: 15_000, knownNodes: {}, width: held };
    expect(renewed(held, { ...change, storeNow: 1_005_000.7 }).timestamp).toBe(1_020_000);
  });

  it('has the history of those before', () => {
    const end = (lease: LeaseState) => pastTenures(lease.kind === 'vacant' ? '' : lease.history)[0]?.end;
    expect(end(acquired({ kind: 'vacant' }, claim))).toBeUndefined();
    expect(end(acquired(held, claim))).toBe('expired');
    const tombstone = released(held, 0, 0);
    expect([end(tombstone), end(acquired(tombstone, claim))]).toEqual(['released', 'released']);
    expect([evicted(held).kind, end(evicted(held))]).toEqual(['released', 'expired']);
    expect(end(evicted(held, false, ['evicted', 5]))).toBe('evicted');
    expect(pastTenures(evicted(held).history)[0]?.endedAt).toBe(held.timestamp);
  });

  it('knows whether the last holder had the same sticky key', () => {
    const keyed = { ...held, sticky: 'key' };
    expect(previousHolder(keyed, 'key')).toBe('same');
    expect([previousHolder(keyed, 'another'), previousHolder(keyed, undefined)]).toEqual(['other', 'other']);
    expect(previousHolder(held, undefined)).toBe('other');
    const never = retired({ kind: 'vacant' }, 1);
    expect([previousHolder({ kind: 'vacant' }, 'key'), previousHolder(never, 'key')]).toEqual([
      'none',
      'none',
    ]);
  });
});

describe('the last id timestamp', () => {
  it('is what the holder recorded at its release, and otherwise any time before its own timestamp', () => {
    expect(stampedUntilOf(released(held, 990_000, 0))).toBe(990_000);
    expect(
      [
        held,
        released(held, undefined, 0),
        evicted(held),
        {
          kind: 'retired',
          version: 6,
          timestamp: held.timestamp,
          durationMs: 0,
          stampedUntil: undefined,
          generation: 1,
        } as const,
      ].map(stampedUntilOf),
    ).toEqual(Array(4).fill(held.timestamp - 1));
  });

  it('is 0 if no task ever held the id, and unknown if a holder recorded no time', () => {
    expect(stampedUntilOf({ kind: 'vacant' })).toBe(0);
    expect(stampedUntilOf({ ...retired({ kind: 'vacant' }, 1), timestamp: 5 })).toBe(0);
    expect(
      stampedUntilOf({ kind: 'released', version: 3, timestamp: 0, durationMs: 0, stampedUntil: undefined }),
    ).toBeUndefined();
  });

  it('leaves the next tenure room, however far ahead it is', () => {
    expect(acquired({ kind: 'vacant' }, { ...claim, stampedUntil: 5_000_000 }).timestamp).toBe(5_000_001);
  });

  it('belongs to ids that only get wider in one tenure', () => {
    const wide = renewed(held, {
      renewal: 1,
      durationMs: 15_000,
      storeNow: 0,
      knownNodes: {},
      width: { idWidth: 10, narrowIdsUntil: 990_000 },
    });
    expect(wide).toMatchObject({ idWidth: 10, narrowIdsUntil: 990_000 });
    const width = { idWidth: 9, narrowIdsUntil: 980_000 };
    expect(
      renewed(wide, { renewal: 2, durationMs: 15_000, storeNow: 0, knownNodes: {}, width }),
    ).toMatchObject({
      idWidth: 10,
      narrowIdsUntil: 990_000,
    });
    const same = { idWidth: 10, narrowIdsUntil: 999_000 };
    expect(
      renewed(wide, { renewal: 2, durationMs: 15_000, storeNow: 0, knownNodes: {}, width: same })
        .narrowIdsUntil,
    ).toBe(990_000);
  });
});

describe('a contender (rule 4)', () => {
  it('may take an id that is vacant, or was released by its holder', () => {
    expect(availability({ kind: 'vacant' }, age(0), 1_000)).toEqual({ kind: 'free', from: 'vacant' });
    expect(availability(released(held, 0, 0), age(0), 1_000)).toEqual({ kind: 'free', from: 'released' });
  });

  it('may take a held lease only when its minimum age exceeds duration and grace', () => {
    expect(availability(held, age(16_000), 1_000)).toEqual({ kind: 'held', waitMs: 1 });
    expect(availability(held, age(16_001), 1_000)).toEqual({ kind: 'free', from: 'expired' });
    expect(availability(held, { min: 0, max: Number.POSITIVE_INFINITY }, 1_000)).toEqual({
      kind: 'held',
      waitMs: 16_001,
    });
  });

  it('uses the duration in the lease', () => {
    expect(availability({ ...held, durationMs: 0 }, age(0), 1_000)).toMatchObject({ kind: 'held' });
    expect(availability({ ...held, durationMs: 60_000 }, age(16_001), 1_000)).toMatchObject({ kind: 'held' });
  });

  it('leaves room for clocks that drift apart over a long duration, whatever the grace', () => {
    expect(availability({ ...held, durationMs: 3_600_000 }, age(3_603_600), 0)).toMatchObject({
      kind: 'held',
    });
    expect(availability({ ...held, durationMs: 3_600_000 }, age(3_603_601), 0)).toMatchObject({
      kind: 'free',
    });
  });

  it('waits after a forced release for as long as the holder may trust its lease', () => {
    expect(availability(evicted(held), age(16_000), 1_000)).toEqual({ kind: 'held', waitMs: 1 });
    expect(availability(evicted(held), age(16_001), 1_000)).toEqual({ kind: 'free', from: 'expired' });
  });

  it('never takes a retired id', () => {
    expect(
      availability(
        {
          kind: 'retired',
          version: 1,
          timestamp: 0,
          durationMs: 0,
          stampedUntil: undefined,
          generation: 1,
        },
        age(1e12),
        0,
      ),
    ).toEqual({ kind: 'retired' });
  });

  it('takes a retired id as released in later generations of the cluster, and not in its own', () => {
    const tombstone = {
      kind: 'retired',
      version: 3,
      timestamp: 1,
      durationMs: 0,
      stampedUntil: 0,
      generation: 2,
    } as const;
    expect([1, 2, 3].map((generation) => revived(tombstone, generation).kind)).toEqual([
      'retired',
      'retired',
      'released',
    ]);
    expect(revived({ ...tombstone, version: 0 }, 3)).toEqual({ kind: 'vacant' });
    for (const state of [{ kind: 'vacant' } as const, released(held, 5, 0)]) {
      expect(retired(state, 2)).toMatchObject({ kind: 'retired', generation: 2 });
      expect(revived(retired(state, 2), 3)).toEqual(state);
    }
  });

  it.each([
    [{ min: 0, max: 11 }, true],
    [{ min: 0, max: 10 }, false],
    [{ min: 11, max: Number.POSITIVE_INFINITY }, true],
    [{ min: 10, max: Number.POSITIVE_INFINITY }, false],
  ])('tries a lease whose age in a listing may exceed it: %j', (shown, expected) => {
    expect(mayExceed(shown, 10)).toBe(expected);
  });
});

it('knows lease objects by their keys and leaves every other object alone', () => {
  expect(['0.json', '65527.json'].map(nodeIdOf)).toEqual([0, 65_527]);
  for (const key of [
    'cluster.json',
    'probe-ab.json',
    '00.json',
    '01.json',
    '-1.json',
    '65528.json',
    '1.json.bak',
    '1',
  ])
    expect(nodeIdOf(key)).toBeUndefined();
});
