import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { ShardEvent, StartShard, StopShard } from './holding.js';
import { Holdings } from './holdings.js';
import type { Shard, ShardMap } from './shard-map.js';

const me = { id: 0, version: 1 };
const map = { epoch: 2, members: [me], shards: [{ owner: me, token: 2, next: undefined }] };

function holdingsOf(lease: { isValid: () => boolean }, start: StartShard) {
  return new Holdings({
    ...{ lease, clock: new VirtualClock(), random: seededRandom(1), start },
    ...{
      startTimeoutMs: 1_000,
      stopTimeoutMs: 1_000,
      renewEveryMs: 1_000,
      staggerMs: 200,
      running: new Uint8Array(600),
    },
    emit: () => undefined,
    onDue: () => undefined,
  });
}

describe('what a tenure runs', () => {
  it('begins only while its lease is valid at that moment, whatever the map says (T4)', () => {
    const started: number[] = [];
    const lease = { isValid: () => false };
    const holdings = holdingsOf(lease, (shard) => void started.push(shard));
    holdings.follow(map, me);
    expect(started).toEqual([]);
    lease.isValid = () => true;
    holdings.follow(map, me);
    expect(started).toEqual([0]);
  });

  it('begins and stops 256 shards at a time, so that the thread that renews goes on between', async () => {
    const started: number[] = [];
    const stopped: number[] = [];
    const holdings = holdingsOf({ isValid: () => true }, (shard) => {
      started.push(shard);
      return () => void stopped.push(shard);
    });
    const other = { id: 1, version: 1 };
    const many = (next?: typeof other) => ({
      ...{ epoch: 2, members: [me, other] },
      shards: Array.from({ length: 600 }, () => ({ owner: me, token: 2, next })),
    });
    for (const begun of [256, 512, 600]) {
      holdings.follow(many(), me);
      expect([started.length, holdings.beginsMore]).toEqual([begun, begun < 600]);
      await settled();
    }
    const moving = many(other);
    holdings.follow(moving, me);
    holdings.moveAt = 0;
    for (const ended of [256, 512, 600]) {
      holdings.follow(moving, me);
      await settled();
      expect([stopped.length, holdings.moveAt]).toEqual([ended, ended < 600 ? 0 : Number.POSITIVE_INFINITY]);
    }
  });

  it('takes a start that returns what is no function for work that may run, and hands nothing on (T5)', async () => {
    const wrong = (() => new Map()) as unknown as StartShard;
    const holdings = holdingsOf({ isValid: () => true }, wrong);
    holdings.follow(map, me);
    await settled();
    void holdings.stop();
    await settled();
    expect([holdings.failedStarts, holdings.areIdle, holdings.given(map, me).size]).toEqual([0, false, 0]);
  });

  it('ends at once where the start itself finds that the lease is lost (T7)', () => {
    const lease = { isValid: () => true };
    let ends: AbortSignal | undefined;
    const holdings = holdingsOf(lease, (_, { signal }) => {
      lease.isValid = () => false;
      ends = signal;
    });
    holdings.follow(map, me);
    expect(ends?.reason).toEqual(new Error('the lease is lost'));
  });
});

const RENEW_MS = 1_000;
const other = { id: 1, version: 1 };
const third = { id: 2, version: 1 };
const [CALM, FAILS] = [0, 1];

/** A map in which the shards are those of this tenure, unless it says otherwise. */
const mapOf = (shards: readonly Partial<Shard>[], over: Partial<ShardMap> = {}): ShardMap => ({
  ...{ epoch: 2, members: [me, other] },
  shards: shards.map((shard) => ({ owner: me, token: 2, next: undefined, ...shard })),
  ...over,
});

/** Chance is in the middle. `behaves` says of each shard what its start does. */
function scene(behaves: (shard: number) => unknown = () => CALM) {
  const clock = new VirtualClock();
  const events: ShardEvent[] = [];
  const signals = new Map<number, AbortSignal>();
  const calls = { due: 0, sleeps: 0 };
  const sleep = clock.sleep.bind(clock);
  clock.sleep = (ms, signal) => {
    if (ms === 0) calls.sleeps += 1;
    return sleep(ms, signal);
  };
  const holdings = new Holdings({
    ...{ lease: { isValid: () => true }, clock, random: { next: () => 0.5, hex: () => '' } },
    ...{ startTimeoutMs: 60_000, stopTimeoutMs: 60_000, renewEveryMs: RENEW_MS, staggerMs: 200 },
    running: new Uint8Array(600),
    emit: (event) => void events.push(event),
    onDue: () => {
      calls.due += 1;
    },
    start: (shard, { signal }) => {
      signals.set(shard, signal);
      const what = behaves(shard);
      if (what === FAILS) throw new Error('cannot start');
      return what === CALM ? undefined : (what as StopShard);
    },
  });
  const follow = async (map: ShardMap, isMember = true) => {
    holdings.follow(map, isMember ? me : undefined);
    await settled();
  };
  const given = (map: ShardMap) => [...holdings.given(map, me)];
  const failed = (map: ShardMap) => [...holdings.failed(map, me)];
  return { clock, events, signals, calls, holdings, follow, given, failed };
}

describe('a shard that runs', () => {
  it('is known to run from its start to its stop', async () => {
    const { holdings, follow } = scene();
    expect([holdings.runs(0), holdings.beginsMore]).toEqual([false, false]);
    await follow(mapOf([{}]));
    expect(holdings.runs(0)).toBe(true);
    await holdings.stop();
    expect(holdings.runs(0)).toBe(false);
  });

  it.each<[string, Partial<Shard>, boolean]>([
    ['another owner', { owner: other }, true],
    ['another token', { token: 3 }, true],
    ['an owner that is no member', {}, false],
    ['no owner, and this tenure is no member', { owner: undefined }, false],
  ])('ends at once where the map gives it %s (T8)', async (_, shard, isMember) => {
    const { events, signals, follow } = scene();
    await follow(mapOf([{}]));
    await follow(mapOf([{}]));
    expect(signals.get(0)?.aborted).toBe(false);
    const first = signals.get(0);
    await follow(mapOf([shard]), isMember);
    await follow(mapOf([shard]), isMember);
    const problem = 'takes shard 0 from its owner, which runs it with token 2';
    expect(first?.reason).toEqual(new Error(`shards.json ${problem}`));
    const damaged = events.filter(({ type }) => type === 'damaged');
    expect(damaged).toEqual([{ type: 'damaged', key: 'shards.json', problem }]);
  });

  it('that is to move stops within a time for each owner of such shards (T9)', async () => {
    const { clock, holdings, follow } = scene(() => () => new Promise<void>(() => undefined));
    const map = mapOf([{ next: other }, { owner: other, next: me }, {}]);
    await clock.advance(1_000);
    await follow(map);
    expect(holdings.moveAt).toBe(1_000 + (2 * 200) / 2);
    await clock.advance(200);
    await follow(map);
    expect(holdings.in('stopping')).toEqual([{ shard: 0, token: 2 }]);
    await follow(map);
    expect(holdings.moveAt).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([
    [256, 0],
    [257, 1],
    [600, 2],
  ])('is stopped with 255 others at a time when all are: of %i after %i breaks', async (count, breaks) => {
    const { clock, calls, holdings, follow } = scene();
    const map = mapOf(Array.from({ length: count }, () => ({})));
    for (let round = 0; round < 3; round += 1) await follow(map);
    const stopped = holdings.stop();
    await clock.advance(0);
    await stopped;
    expect([calls.sleeps, holdings.areIdle]).toEqual([breaks, true]);
  });
});

describe('a shard that is handed on (T5)', () => {
  it('has ended here, or never begun in a tenure that leaves', async () => {
    const { holdings, follow, given } = scene();
    const map = mapOf([{}, {}, { owner: other }]);
    expect(given(map)).toEqual([]);
    await follow(mapOf([{}, { owner: other }, { owner: other }]));
    await holdings.stop();
    expect(given(map)).toEqual([0]);
    holdings.isLeaving = true;
    expect(given(map)).toEqual([0, 1]);
  });
});

describe('a failed start (T9)', () => {
  it('that is the first one is for the others at once', async () => {
    const { calls, holdings, follow, given, failed } = scene(() => FAILS);
    const map = mapOf([{}]);
    await follow(map);
    expect([given(map), failed(map), holdings.failedStarts]).toEqual([[0], [[0, 1]], 1]);
    expect(calls.due).toBe(2);
  });

  it('after others is for the next one after a pause that grows', async () => {
    const { clock, follow, given } = scene(() => FAILS);
    const map = mapOf([{ failed: 2 }, { failed: 4 }]);
    await follow(map);
    const at: unknown[] = [];
    for (const ms of [1_000, 1_999, 2_000, 3_999, 4_000]) {
      await clock.advance(ms - clock.monotonic());
      at.push(given(map));
    }
    // What is due soon goes with what is due.
    expect(at).toEqual([[], [], [0], [0], [0, 1]]);
  });

  it('after others is for another member at once that is to have the shard', async () => {
    const { follow, given } = scene(() => FAILS);
    const map = mapOf([{ failed: 2, next: other }]);
    await follow(map);
    expect(given(map)).toEqual([0]);
  });

  it.each<[string, number, Partial<ShardMap>, number]>([
    ['at once where other members take shards', 1, { members: [me, other] }, 0],
    [
      'at once where one other member takes shards',
      1,
      { members: [me, other, third], limits: new Map([[third, 0]]) },
      0,
    ],
    ['at once where this one takes no more', 1, { limits: new Map([[me, 0]]) }, 0],
    ['after a pause where no other member takes shards', 1, { limits: new Map([[other, 0]]) }, 1_000],
    ['after a pause where there is no other member', 1, { members: [me] }, 1_000],
    ['after a pause where it has failed elsewhere, too', 2, {}, 2_000],
  ])('that is the second one here is for the others %s', async (_, before, over, ms) => {
    const { clock, follow, given } = scene(() => FAILS);
    await follow(mapOf([{}], over));
    const map = mapOf([{ token: 3, failed: before }], over);
    await follow(map);
    if (ms > 0) {
      await clock.advance(ms - 1);
      expect(given(map)).toEqual([]);
      await clock.advance(1);
    }
    expect(given(map)).toEqual([0]);
  });

  it('does not keep a shard that has been started since', async () => {
    let isCalm = false;
    const { holdings, follow, given } = scene(() => (isCalm ? CALM : FAILS));
    await follow(mapOf([{ failed: 2 }]));
    isCalm = true;
    const map = mapOf([{ token: 3, failed: 3 }]);
    await follow(map);
    await holdings.stop();
    expect(given(map)).toEqual([0]);
  });

  it.each([
    ['limits this tenure where it is the first one', undefined, true, 1, 2],
    ['says nothing of this tenure where it is not, and others run', 2, true, undefined, 0],
    ['limits this tenure where it is not, and nothing runs', 2, false, 0, 1],
  ])('%s', async (_, before, runs, limit, due) => {
    const { calls, holdings, follow } = scene((shard) => (shard === 1 ? FAILS : CALM));
    const rest = Array.from({ length: 4 }, () => ({ owner: other }));
    const map = mapOf([runs ? {} : { owner: other }, { failed: before }, ...rest]);
    await follow(map);
    expect([holdings.limit(map), calls.due]).toEqual([limit, due]);
  });

  it('is forgotten after three renewal periods in which the shard runs', async () => {
    const { clock, follow, failed } = scene();
    const map = mapOf([{ failed: 2 }, {}]);
    await follow(map);
    await clock.advance(3 * RENEW_MS);
    expect(failed(map)).toEqual([]);
    await clock.advance(1);
    expect(failed(map)).toEqual([[0, 0]]);
  });

  it('limits this tenure no more after a pause where it has its share', async () => {
    const { clock, holdings, follow } = scene((shard) => (shard === 1 ? FAILS : CALM));
    const map = mapOf([{}, {}, { owner: other }, { owner: other }]);
    await follow(map);
    await clock.advance(RENEW_MS);
    expect(holdings.limit(map)).toBeUndefined();
  });

  it('is for the others at once where it was a trial', async () => {
    const { clock, holdings, follow, given } = scene((shard) => (shard > 0 ? FAILS : CALM));
    const shards = [
      {},
      {},
      { owner: other, failed: 2 },
      ...Array.from({ length: 3 }, () => ({ owner: other })),
    ];
    await follow(mapOf(shards));
    await clock.advance(RENEW_MS);
    expect(holdings.limit(mapOf(shards))).toBe(2);
    const map = mapOf([{}, { owner: other }, { failed: 2 }, ...shards.slice(3)]);
    await follow(map);
    expect(given(map)).toEqual([2]);
  });

  it('limits this tenure until as many shards have run for a renewal period', async () => {
    const slow = new Promise<never>(() => undefined);
    const { clock, holdings, follow } = scene((shard) => [CALM, FAILS, CALM, slow][shard]);
    const rest = Array.from({ length: 4 }, () => ({ owner: other }));
    await follow(mapOf([{}, {}, { owner: other }, { owner: other }, ...rest]));
    await clock.advance(RENEW_MS);
    const map = mapOf([{}, { owner: other }, {}, {}, ...rest]);
    expect(holdings.limit(map)).toBe(2);
    await follow(map);
    await clock.advance(RENEW_MS);
    expect(holdings.limit(map)).toBe(2);
    await clock.advance(1);
    expect(holdings.limit(map)).toBeUndefined();
  });
});
