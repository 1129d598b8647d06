import { describe, expect, it } from 'vitest';
import { audited, type KeptStates } from '../../../test/support/kept-history.js';
import { type ClusterConfig, encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import {
  evicted,
  type HeldLease,
  type LeaseState,
  released,
  renewed,
  retired,
  revived,
} from '../../core/lease/model/lease-state.js';
import type { PastObject } from '../../core/store/lease-store.js';
import { encodeMap, type ShardMap } from '../../node/shards/shard-map.js';
import { auditLines } from './audit-command.js';
import type { Breach } from './judge-write.js';

const DURATION = 15_000;
const BEGIN = 1_800_000_000_000;
const CONFIG: ClusterConfig = { ...newCluster({ nodes: 1, durationMs: DURATION }), bootstrapped: true };

/** Writes the objects of a bucket, at times in seconds, and keeps all versions. */
function scene() {
  const states: KeptStates = new Map();
  const put = (key: string, second: number, written: PastObject['written'], kept = true) => {
    const at = { min: BEGIN + second * 1_000, max: BEGIN + second * 1_000 + 999 };
    states.set(key, [{ key, written, at, kept }, ...(states.get(key) ?? [])]);
  };
  const settings = (second: number, change: Partial<ClusterConfig> = {}) =>
    put('cluster.json', second, { body: encodeCluster({ ...CONFIG, ...change }), metadata: {} });
  const lease = (second: number, state: LeaseState, key = '0.json', kept = true) => {
    put(key, second, nativeCodec.encode(state), kept);
    return state;
  };
  const tick = (second: number, more: object = {}) => {
    states.set('locks/a/cluster.json', states.get('cluster.json') ?? []);
    if (!states.has('locks/a/0.json')) lease(0, { kind: 'vacant' }, 'locks/a/0.json');
    const body = JSON.stringify({ tick: 5, attempt: 1, nonce: 'a', ...more });
    put('locks/a/tick.json', second, { body, metadata: {} });
  };
  settings(0);
  return { states, put, settings, lease, tick, judged: () => audited(states) };
}

/** A tenure at its beginning. */
const held = (version: number, more: Partial<HeldLease> = {}): HeldLease => ({
  ...{ kind: 'held', taskId: `task-${version}`, version, durationMs: DURATION, knownNodes: {}, renewal: 0 },
  ...{ nonce: `nonce-${version}`, acquiredAt: BEGIN, idWidth: 8, narrowIdsUntil: 0, timestamp: BEGIN },
  ...more,
});

const again = (lease: HeldLease, renewal = lease.renewal + 1): HeldLease =>
  renewed(lease, {
    renewal,
    durationMs: DURATION,
    storeNow: BEGIN - DURATION,
    knownNodes: {},
    width: { idWidth: 8, narrowIdsUntil: 0 },
  });

const map = (epoch: number, token: number, version = 1): ShardMap => {
  const owner = { id: 0, version };
  return { epoch, members: [owner], shards: [{ owner, token, next: undefined }] };
};

type Scene = ReturnType<typeof scene>;

/** Each breaks one promise, after a tenure that began at second 10 and was renewed at second 15. */
const PLANTED: readonly (readonly [what: string, breach: Breach, plant: (scene: Scene) => unknown])[] = [
  ['a take-over within the duration', 'taken-early', ({ lease }) => lease(29, held(2))],
  [
    'a take-over within the longer duration of the last renewal',
    'taken-early',
    ({ lease, settings }) => {
      settings(16, { durationMs: 2_000 });
      lease(17, { ...again(held(1), 2), durationMs: 60_000 });
      lease(70, held(2));
    },
  ],
  [
    'a take-over soon after an eviction',
    'taken-early',
    ({ lease }) => {
      lease(20, evicted(held(1)));
      lease(30, held(3));
    },
  ],
  [
    'an expiry that is written while the lease is valid',
    'taken-early',
    ({ lease }) => lease(20, evicted(held(1), true)),
  ],
  [
    'a take-over before a new epoch has settled',
    'taken-early',
    ({ lease, settings }) => {
      lease(16, released(held(1), 0, BEGIN));
      settings(50, { epoch: { mark: 'a'.repeat(16), settling: true } });
      lease(60, held(2 ** 40, { epoch: 'a'.repeat(16) }));
    },
  ],
  ['a version of two tasks', 'version-twice', ({ lease }) => lease(60, held(1, { taskId: 'b', nonce: 'b' }))],
  [
    'a version that is taken again after its release',
    'version-twice',
    ({ lease }) => {
      lease(20, released(held(1), 0, BEGIN));
      lease(21, held(1, { nonce: 'b' }));
    },
  ],
  ['an emptied object', 'version-fell', ({ put }) => put('0.json', 20, { body: '', metadata: {} })],
  [
    'an object that starts again',
    'version-fell',
    ({ lease }) => {
      lease(50, held(7));
      lease(90, held(3));
    },
  ],
  ['an earlier renewal that is put back', 'foreign-write', ({ lease }) => lease(18, held(1))],
  [
    'a renewal that ends before the one before it',
    'foreign-write',
    ({ lease }) => lease(18, { ...again(held(1), 2), timestamp: BEGIN - 1 }),
  ],
  [
    'a tenure that ends before the one before it',
    'foreign-write',
    ({ lease }) => lease(60, held(2, { timestamp: BEGIN - 1 })),
  ],
  [
    'a tombstone that ends before its tenure',
    'foreign-write',
    ({ lease }) => lease(18, { ...released(held(1), 0, BEGIN), timestamp: BEGIN - 1 }),
  ],
  ['text', 'foreign-write', ({ put }) => put('0.json', 20, { body: 'hello', metadata: {} })],
  [
    'a body with a lower version than its metadata',
    'foreign-write',
    ({ put }) => put('0.json', 20, { ...nativeCodec.encode(held(2)), metadata: { version: '9' } }),
  ],
  [
    'a retirement under its holder',
    'foreign-write',
    ({ lease }) => lease(20, retired(released(held(1), 0, 0), 1)),
  ],
  [
    'a second tombstone',
    'foreign-write',
    ({ lease }) => {
      lease(20, released(held(1), 0, BEGIN));
      lease(21, released(held(1), 5, BEGIN));
    },
  ],
  [
    'settings that cannot be read',
    'foreign-write',
    ({ put }) => put('cluster.json', 20, { body: '{}', metadata: {} }),
  ],
  [
    'a retired id that is taken',
    'retired-taken',
    ({ lease, settings }) => {
      settings(16, { generation: 1 });
      lease(20, released(held(1), 0, BEGIN));
      lease(21, retired(released(held(1), 0, BEGIN), 1));
      lease(40, held(2));
      settings(50, { generation: 2 });
    },
  ],
  [
    'a retired id that is given back with an earlier expiry',
    'foreign-write',
    ({ lease }) => {
      const gone = retired(released(held(1), 0, BEGIN), 1);
      lease(20, released(held(1), 0, BEGIN));
      lease(21, gone);
      lease(40, { ...revived(gone, 2), timestamp: BEGIN + 1 } as LeaseState);
    },
  ],
  ['a removed lease object', 'deleted', ({ put }) => put('0.json', 20, undefined)],
  ['removed settings', 'deleted', ({ put }) => put('cluster.json', 20, undefined)],
  ['an object that is gone with all its versions', 'deleted', ({ states }) => states.delete('0.json')],
  [
    'the lock of a name that is removed',
    'deleted',
    ({ put, lease, states }) => {
      states.set('locks/a/cluster.json', states.get('cluster.json') ?? []);
      lease(20, held(1), 'locks/a/0.json');
      put('locks/a/0.json', 30, undefined);
    },
  ],
  [
    'a lock that is taken too early',
    'taken-early',
    ({ lease, states }) => {
      for (const name of ['a', 'b']) {
        states.set(`locks/${name}/cluster.json`, states.get('cluster.json') ?? []);
        lease(20, held(1), `locks/${name}/0.json`);
      }
      lease(22, held(2), 'locks/b/0.json');
    },
  ],
  [
    'another owner of a shard with the old token',
    'shard-token',
    ({ put }) => {
      put('shards.json', 20, { body: encodeMap(map(5, 5)), metadata: {} });
      put('shards.json', 21, { body: encodeMap(map(6, 5, 2)), metadata: {} });
    },
  ],
  ...(
    [
      ['an earlier tick', { tick: 4 }],
      ['a second claim of a tick', { nonce: 'b' }],
      ['a tick that is claimed again after its end', { startedAt: 7 }],
      ['another attempt of a tick after its success', { attempt: 2, nonce: 'b' }],
    ] as const
  ).map(
    ([what, more]) =>
      [
        what,
        'foreign-write',
        ({ tick }: Scene) => {
          tick(20);
          tick(21, { outcome: 'succeeded' });
          tick(22, more);
        },
      ] as const,
  ),
  [
    'the removed record of ticks',
    'deleted',
    ({ tick, put }) => {
      tick(20);
      put('locks/a/tick.json', 21, undefined);
    },
  ],
  [
    'a map of an earlier epoch',
    'shard-token',
    ({ put }) => {
      put('shards.json', 20, { body: encodeMap(map(5, 5)), metadata: {} });
      put('shards.json', 21, { body: encodeMap(map(4, 4)), metadata: {} });
    },
  ],
];

describe('an audit', () => {
  it.each(PLANTED)('finds %s', (_, breach, plant) => {
    const planted = scene();
    planted.lease(10, held(1));
    planted.lease(15, again(held(1)));
    expect(planted.judged().counts).toEqual({});
    plant(planted);
    expect(Object.keys(planted.judged().counts)).toEqual([breach]);
    expect(planted.judged().breaches[0]).toMatchObject({ breach, key: expect.stringMatching(/json$/) });
  });

  it('counts tenures by their ends, and times take-overs and pauses', () => {
    const { lease, judged } = scene();
    lease(10, { kind: 'vacant' });
    lease(11, held(1));
    lease(16, again(held(1)));
    lease(30, again(held(1), 2));
    lease(47, held(2));
    lease(48, released(held(2), 0, BEGIN));
    lease(50, held(3));
    lease(52, evicted(held(3)));
    lease(69, held(5));
    lease(70, retired(evicted(held(5)), 1));
    const { tenures, takeOvers, longestGap, breaches, lost } = judged();
    expect(breaches).toEqual([]);
    expect({ tenures, lost }).toEqual({
      tenures: { released: 1, expired: 1, evicted: 1, retired: 1, held: 0 },
      lost: 0,
    });
    expect(longestGap).toEqual({ key: '0.json', at: BEGIN + 30_000, ms: 14_000, durationMs: DURATION });
    expect(takeOvers).toEqual({ count: 2, undecided: 0, shortestMs: 17_000, longestMs: 17_000 });
  });

  it('says what whole seconds, and the clocks of servers, leave undecided', () => {
    const { lease, judged } = scene();
    lease(10, held(1));
    // From 15.001 to 16.999 s later: after the duration, perhaps within the grace.
    lease(26, held(2));
    const { takeOvers, breaches } = judged();
    expect(breaches).toEqual([]);
    expect(takeOvers).toMatchObject({ count: 1, undecided: 1 });
  });

  it('takes versions that leap, and objects that have gone back, for what init --restored explains', () => {
    const { lease, settings, put, judged } = scene();
    const mark = 'b'.repeat(16);
    lease(10, held(7));
    lease(15, again(held(7)));
    lease(16, held(7));
    lease(17, released(held(7), 0, BEGIN));
    lease(18, held(7));
    lease(20, released(held(5), 0, BEGIN));
    for (const epoch of [5, 4])
      put('shards.json', 20 - epoch, { body: encodeMap(map(epoch, epoch)), metadata: {} });
    settings(30, { epoch: { mark, settling: true } });
    settings(47, { epoch: { mark, settling: false } });
    lease(50, held(2 ** 41, { epoch: mark }));
    const { breaches, lost } = judged();
    expect({ breaches, lost }).toEqual({ breaches: [], lost: 0 });
  });

  it('knows the retired ids that scale gives back after the settings were lost', () => {
    const { lease, judged } = scene();
    lease(10, held(1));
    const gone = [retired(evicted(held(1)), 3), retired({ kind: 'vacant' }, 3)] as const;
    for (const [id, state] of gone.entries()) {
      lease(20, state, `${id}.json`);
      lease(40, revived(state, 4), `${id}.json`);
    }
    lease(60, held(3));
    expect(judged().breaches).toEqual([]);
  });

  it('knows a repaired object, and reports the damage alone', () => {
    const { lease, put, judged } = scene();
    lease(10, held(4));
    put('0.json', 20, { body: '{', metadata: {} });
    lease(40, { kind: 'released', version: 9, timestamp: 1, durationMs: DURATION, stampedUntil: undefined });
    lease(60, held(10));
    expect(judged().counts).toEqual({ 'foreign-write': 1 });
  });

  it('knows the outcome of a tick, its next attempt, the next tick, and one that is forgotten', () => {
    const { lease, tick, judged } = scene();
    lease(10, held(1));
    tick(10);
    tick(11, { outcome: 'failed' });
    tick(12, { attempt: 2, nonce: 'b' });
    tick(13, { tick: 6, nonce: 'c' });
    tick(14, { tick: 2, nonce: 'd', outcome: 'forgotten' });
    expect(judged().breaches).toEqual([]);
  });

  it('knows what precedes the first write of an object where a store keeps no times, as etcd', () => {
    const { put, lease, tick, judged } = scene();
    for (const key of ['0.json', '1.json', 'locks/a/tick.json']) put(key, -Infinity, undefined);
    lease(-Infinity, held(1));
    put('1.json', -Infinity, nativeCodec.encode(held(2 ** 41, { epoch: 'b'.repeat(16) })));
    tick(-Infinity);
    expect(judged().breaches).toEqual([]);
  });

  it.each([
    ['the first one', [[undefined, true]], 1, 0],
    [
      'the first one, whose series another task had drawn in vain',
      [
        [undefined, false],
        [41, true],
      ],
      42,
      0,
    ],
    [
      'the first one of a series after another map',
      [
        [undefined, true],
        [41, true],
      ],
      42,
      1,
    ],
    ['a later one', [[undefined, true]], 2, 1],
  ] as const)(
    'knows from the settings whether a map was preceded by none there: %s',
    (_, series, epoch, deleted) => {
      const { put, settings, lease, judged } = scene();
      lease(-Infinity, held(1));
      for (const [floor, created] of series)
        for (const isCreated of created ? [false, true] : [false])
          settings(-Infinity, { shards: { count: 1, created: isCreated, ...(floor && { floor }) } });
      put('shards.json', -Infinity, undefined);
      put('shards.json', -Infinity, { body: encodeMap(map(epoch, epoch)), metadata: {} });
      expect(judged().counts.deleted ?? 0).toBe(deleted);
    },
  );

  it('counts what is missing between versions that are kept', () => {
    const { lease, judged } = scene();
    lease(10, released(held(1), 0, BEGIN));
    lease(20, held(4));
    expect(judged()).toMatchObject({ breaches: [], lost: 2 });
  });

  it('knows that a version never falls, and no more, where versioning was suspended', () => {
    const { lease, judged } = scene();
    lease(10, held(5));
    lease(11, held(6), '0.json', false);
    expect(judged()).toMatchObject({ breaches: [], lost: 1 });
    lease(12, released(held(6), 0, BEGIN));
    lease(13, held(3), '0.json', false);
    expect(judged().counts).toEqual({ 'version-fell': 1 });
  });

  it('reports when holders were overdue together', () => {
    const { lease, settings, judged } = scene();
    settings(1, { size: 2, peak: 2 });
    for (const key of ['0.json', '1.json']) {
      lease(10, held(1), key);
      lease(15, again(held(1)), key);
      lease(28, again(held(1), 2), key);
    }
    expect(judged().outages()).toEqual([{ from: BEGIN + 25_000, to: BEGIN + 28_000, holders: 2 }]);
  });

  it('takes two holders, one of which is overdue as the other one no longer is, for no outage', () => {
    const { lease, settings, judged } = scene();
    settings(1, { size: 2, peak: 2 });
    for (const [id, second] of [10, 7].entries()) {
      lease(second, held(1), `${id}.json`);
      lease(second + 13, again(held(1)), `${id}.json`);
    }
    expect(judged().outages()).toEqual([]);
  });

  it('judges the history in objects that are not kept', () => {
    const history = '3/a/b/r/x 2/8/9/x/y 1/6/7/e/z';
    const { lease, judged } = scene();
    lease(10, held(4, { history }), '0.json', false);
    expect(judged()).toMatchObject({
      breaches: [],
      tenures: { released: 1, expired: 1, evicted: 1, retired: 0, held: 1 },
    });
    const other = scene();
    other.lease(10, held(3, { history }), '0.json', false);
    expect(other.judged().counts).toEqual({ 'version-fell': 1 });
  });

  it('says its numbers for people, and nothing of what did not happen', () => {
    const quiet = scene();
    quiet.lease(10, held(1));
    expect(auditLines(quiet.judged())).toEqual([
      '1 object version from 2027-01-15T08:00:10.000Z to 2027-01-15T08:00:10.999Z',
      'tenures: 0 released, 0 expired, 0 evicted, 0 retired, 1 held',
      '0 take-overs, 0 undecided',
      '0 outages',
    ]);
    const { lease, settings, judged } = scene();
    settings(1, { size: 2, peak: 2 });
    for (const key of ['0.json', '1.json']) {
      lease(10, held(1), key);
      lease(23, again(held(1)), key);
      lease(40, held(3), key);
    }
    expect(auditLines(judged())).toEqual([
      '6 object versions from 2027-01-15T08:00:10.000Z to 2027-01-15T08:00:40.999Z',
      'what is kept has gaps: 2 tenures or more are missing',
      'tenures: 0 released, 2 expired, 0 evicted, 0 retired, 2 held',
      '2 take-overs, 17.0s to 17.0s after the last write, 0 undecided',
      'longest pause of a tenure: 13.0s of 15.0s, 0.json until 2027-01-15T08:00:23.000Z',
      '2 outages, the longest for 5.0s from 2027-01-15T08:00:33.000Z, 2 holders',
    ]);
  });
});
