import { describe, expect, it } from 'vitest';
import {
  fails,
  LEADER_EPOCH,
  pathOf,
  ScriptedZooKeeper,
  SESSION_MS,
} from '../../../../test/support/scripted-zookeeper.js';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { uniqueIds } from '../../../core/id/lease-ids.js';
import type { UniqueIdGenerator } from '../../../core/id/unique-id-generator.js';
import type { TenureTime } from '../../../core/lease/hold/tenure-time.js';
import type { Lease, LeaseEvent } from '../../../core/lease/model/lease.js';
import { acquireFromZooKeeper } from './acquire-from-zookeeper.js';

// The stamps of unique ids, in virtual time: bounds, writes of unknown outcome, damage. What servers really
// do is tested on real ones.

const T = SESSION_MS;
const CLAIM = pathOf(8);
const STAMP = '/discovery/stamps/00/08';
let seed = 0;

interface Holder {
  readonly lease: Lease;
  readonly time: TenureTime;
  readonly zookeeper: ScriptedZooKeeper;
  readonly events: LeaseEvent[];
}

async function hold(clock: VirtualClock, zookeeper: ScriptedZooKeeper): Promise<Holder> {
  const events: LeaseEvent[] = [];
  seed += 1;
  const random = seededRandom(seed);
  const lease = await acquireFromZooKeeper({
    zookeeper,
    clock,
    random,
    taskId: 'task',
    onEvent: (event) => events.push(event),
  });
  return { lease, time: lease.tenureTime as TenureTime, zookeeper, events };
}

/** One that has made its ids ready. */
async function ready() {
  const clock = new VirtualClock();
  const holder = await hold(clock, new ScriptedZooKeeper(clock));
  await holder.time.prepare();
  return { clock, ...holder };
}

const stampIn = ({ znodes }: ScriptedZooKeeper) =>
  JSON.parse(String(znodes.get(STAMP)?.data)) as Record<string, unknown>;
const msOf = (id: bigint) => Number(id >> 16n);
const damage = (events: readonly LeaseEvent[]) => events.filter(({ type }) => type === 'damaged');

/** Makes ids until there are none for now, and says of which milliseconds the first and the last one are. */
function useUp(ids: UniqueIdGenerator): [number, number] {
  const first = msOf(ids.next());
  const many = new BigUint64Array(1 << 16);
  for (let last = first; ; last = msOf(many.at(-1) as bigint)) {
    try {
      ids.fill(many);
    } catch (error) {
      const { filled, code } = error as { filled: number; code: string };
      if (code !== 'IDS_EXHAUSTED') throw error;
      return [first, filled > 0 ? msOf(many[filled - 1] as bigint) : last];
    }
  }
}

/** Runs ahead to the very end of what may be stamped. */
const GREEDY = { lagMs: 0, advanceMs: 60_000 };

describe('the time of a tenure', () => {
  it('costs nothing, and leaves nothing in the tree, if no ids are made', async () => {
    const clock = new VirtualClock();
    const { lease, zookeeper, time } = await hold(clock, new ScriptedZooKeeper(clock));
    await clock.advance(3 * T);
    expect(time.before()).toBe(0);
    await lease.release();
    expect([...zookeeper.znodes.keys()].filter((path) => path.includes('stamps'))).toEqual([]);
    expect(zookeeper.calls.filter((call) => call.includes('stamps'))).toEqual([]);
  });

  it('is the leader’s, ends one session’s time-out ahead, and moves on', async () => {
    const { clock, time, zookeeper, lease } = await ready();
    expect([time.now(), time.before(), time.after]).toEqual([LEADER_EPOCH, LEADER_EPOCH + T, 0]);
    const { version } = zookeeper.znodes.get(CLAIM)?.stat ?? {};
    clock.wallOffset -= 86_400_000;
    await clock.advance(T / 3);
    expect(Math.ceil(time.now())).toBe(LEADER_EPOCH + T / 3);
    expect(time.before()).toBeGreaterThanOrEqual(LEADER_EPOCH + T / 3 + T - 3);
    expect(stampIn(zookeeper)).toEqual({ timestamp: time.before(), nonce: expect.any(String) });
    await clock.advance(10 * T);
    expect(lease.isValid()).toBe(true);
    expect(time.before() - time.now()).toBeGreaterThan((T * 2) / 3 - 20);
    expect(zookeeper.znodes.get(CLAIM)?.stat.version).toBe(version);
  });

  it('does not shrink when the leader’s clock steps back, and continues when it steps ahead', async () => {
    const { clock, time, zookeeper } = await ready();
    const before = time.before();
    zookeeper.leaderTime = () => LEADER_EPOCH - 3_600_000 + clock.monotonic();
    await clock.advance(T);
    expect(time.before()).toBeGreaterThan(before);
    // The first write does not know of it yet.
    expect(time.before()).toBeLessThan(before + T / 3 + 20);
    expect(time.now()).toBeLessThan(LEADER_EPOCH);
    // The next tenure uses the record.
    expect(stampIn(zookeeper).timestamp).toBe(time.before());
    zookeeper.leaderTime = () => LEADER_EPOCH + 3_600_000 + clock.monotonic();
    await clock.advance(T);
    expect(time.before()).toBeGreaterThan(LEADER_EPOCH + 3_600_000 + T);
  });

  it('stops at the last write that is known to be applied: ids run out, and come back with the next one', async () => {
    const { clock, time, zookeeper, lease } = await ready();
    await clock.advance(T);
    const ids = await uniqueIds(lease, GREEDY);
    const [, last] = useUp(ids);
    expect(last).toBe(time.before() - 1);
    zookeeper.fault = (operation) =>
      operation === 'multi' ? Promise.reject(fails('connection-loss', 'not-applied')) : Promise.resolve();
    await clock.advance(T / 4);
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'IDS_EXHAUSTED' }));
    zookeeper.fault = undefined;
    await clock.advance(T / 3);
    expect(msOf(ids.next())).toBeGreaterThan(last);
  });

  it('counts a write whose answer was lost only once its record was seen (rule 5)', async () => {
    const { clock, time, zookeeper } = await ready();
    const before = time.before();
    let lost = 0;
    zookeeper.fault = async (operation, path, apply) => {
      if (operation === 'read' && lost > 0) throw fails('connection-loss', 'not-applied');
      if (operation !== 'multi' || path !== STAMP || lost > 0) return;
      lost += 1;
      apply();
      throw fails('connection-loss', 'unknown');
    };
    await clock.advance(T / 3 + 10);
    expect([time.before(), (stampIn(zookeeper).timestamp as number) > before]).toEqual([before, true]);
    zookeeper.fault = undefined;
    await clock.advance(T / 6);
    expect(time.before()).toBe(stampIn(zookeeper).timestamp);
  });
});

describe('two tenures of a node id never stamp the same millisecond', () => {
  it('when the first was released: the second continues right after the last millisecond that was reserved', async () => {
    const { clock, lease, zookeeper } = await ready();
    const ids = await uniqueIds(lease, { lagMs: 0, advanceMs: 500 });
    const [, last] = useUp(ids);
    await lease.release();
    expect(stampIn(zookeeper)).toEqual({ timestamp: LEADER_EPOCH + T, stampedUntil: last });
    const next = await hold(clock, new ScriptedZooKeeper(clock, zookeeper));
    const nextIds = await uniqueIds(next.lease, GREEDY);
    expect([next.lease.id, next.time.after]).toEqual([0, last]);
    // A tenure that made no ids passes on only what it has read.
    await next.lease.release();
    const third = await hold(clock, new ScriptedZooKeeper(clock, next.zookeeper));
    expect(useUp(await uniqueIds(third.lease, GREEDY))[0]).toBe(last + 1);
    expect(nextIds.node).toBe(8);
  });

  it('when the first was released, and the answer to that was lost', async () => {
    const { clock, lease, zookeeper, events } = await ready();
    const [, last] = useUp(await uniqueIds(lease, { lagMs: 0, advanceMs: 500 }));
    zookeeper.fault = async (operation, _path, apply) => {
      if (operation !== 'multi') return;
      apply();
      throw fails('connection-loss', 'unknown');
    };
    const released = lease.release();
    await clock.advance(1_000);
    await released;
    expect(stampIn(zookeeper).stampedUntil).toBe(last);
    expect([damage(events), events.at(-1)?.type]).toEqual([[], 'released']);
  });

  it('when the first was released, and did not know the current record just then', async () => {
    const { clock, lease, zookeeper } = await ready();
    let lost = 0;
    zookeeper.fault = async (operation, path, apply) => {
      if (operation === 'read' && path === STAMP && lost > 0) throw fails('connection-loss', 'not-applied');
      if (operation !== 'multi' || path !== STAMP || lost > 0) return;
      lost += 1;
      apply();
      throw fails('connection-loss', 'unknown');
    };
    await clock.advance(T / 3 + 10);
    const [, last] = useUp(await uniqueIds(lease, { lagMs: 0, advanceMs: 500 }));
    zookeeper.fault = undefined;
    await lease.release();
    expect([lost, stampIn(zookeeper).stampedUntil]).toEqual([1, last]);
  });

  it('when the first was released before its first write was answered: the second need not wait for times that were never used', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const { lease, time } = await hold(clock, zookeeper);
    let arrive: () => void = () => undefined;
    zookeeper.fault = (operation, _path, apply) => {
      if (operation !== 'multi') return Promise.resolve();
      arrive = apply;
      return new Promise(() => undefined);
    };
    const prepared = time.prepare();
    prepared.catch(() => undefined);
    await clock.advance(50);
    zookeeper.fault = undefined;
    const released = lease.release();
    arrive();
    await released;
    await expect(prepared).rejects.toMatchObject({ code: 'LEASE_RELEASED' });
    expect([stampIn(zookeeper), zookeeper.znodes.has(CLAIM)]).toEqual([
      { timestamp: expect.any(Number), stampedUntil: 0 },
      false,
    ]);
    expect([time.before(), time.after]).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  it('when the second was released before its first write arrived: the record of the first stays', async () => {
    const { clock, lease, zookeeper } = await ready();
    const [, last] = useUp(await uniqueIds(lease, { lagMs: 0, advanceMs: 500 }));
    await lease.release();
    const left = stampIn(zookeeper);
    const next = await hold(clock, new ScriptedZooKeeper(clock, zookeeper));
    next.zookeeper.fault = (operation) =>
      operation === 'multi' ? new Promise(() => undefined) : Promise.resolve();
    next.time.prepare().catch(() => undefined);
    await clock.advance(50);
    next.zookeeper.fault = undefined;
    await next.lease.release();
    expect([stampIn(zookeeper), left.stampedUntil, zookeeper.znodes.has(CLAIM)]).toEqual([left, last, false]);
  });

  it('when the first is cut off, or paused, and still believes that it holds the id', async () => {
    const { clock, lease, zookeeper, time } = await ready();
    const ids = await uniqueIds(lease, GREEDY);
    zookeeper.fault = () => new Promise(() => undefined);
    zookeeper.endSession();
    const next = await hold(clock, new ScriptedZooKeeper(clock, zookeeper));
    const nextIds = await uniqueIds(next.lease, { lagMs: 0, advanceMs: 2 * T });
    expect([lease.isValid(), next.lease.isValid(), next.time.after]).toEqual([true, true, time.before() - 1]);
    const [, last] = useUp(ids);
    expect(useUp(nextIds)[0]).toBeGreaterThan(last);
  });

  it('when a write of the first arrives after the second began, its claim having been deleted', async () => {
    const { clock, lease, zookeeper, time } = await ready();
    const before = time.before();
    let arrive: () => void = () => undefined;
    zookeeper.fault = (operation, path, apply) => {
      if (operation !== 'multi' || path !== STAMP) return Promise.resolve();
      return new Promise((resolve) => {
        arrive = () => {
          apply();
          resolve();
        };
      });
    };
    await clock.advance(T / 3);
    zookeeper.znodes.delete(CLAIM);
    const next = await hold(clock, new ScriptedZooKeeper(clock, zookeeper));
    await next.time.prepare();
    expect(arrive).toThrow(expect.objectContaining({ fault: 'bad-version' }));
    await settled();
    expect([time.before(), next.time.after]).toEqual([before, before - 1]);
    expect(stampIn(zookeeper).timestamp).toBe(next.time.before());
    clock.freeze(T);
    await lease.release();
  });

  it('when a write of the first arrives between the second one’s read and its first write', async () => {
    const { clock, zookeeper, time } = await ready();
    const before = time.before();
    let arrive: () => void = () => undefined;
    zookeeper.fault = (operation, path, apply) => {
      if (operation !== 'multi' || path !== STAMP) return Promise.resolve();
      arrive = apply;
      return new Promise(() => undefined);
    };
    await clock.advance(T / 3);
    zookeeper.znodes.delete(CLAIM);
    const second = new ScriptedZooKeeper(clock, zookeeper);
    const next = await hold(clock, second);
    let arrived = 0;
    second.fault = async (operation) => {
      if (operation === 'multi' && arrived === 0) arrive();
      if (operation === 'multi') arrived += 1;
    };
    const prepared = next.time.prepare();
    await clock.advance(1_000);
    await prepared;
    // It may have come to nothing for the first, but no other task may know that.
    expect(next.time.after).toBeGreaterThan(before);
    expect(time.before()).toBe(before);
  });

  it('when a write that the first made came before the second one’s, but its claim was gone by then', async () => {
    const { clock, lease, zookeeper, time } = await ready();
    const before = time.before();
    zookeeper.fault = async (operation, path, apply) => {
      if (operation !== 'multi' || path !== STAMP) return;
      // The claim has been deleted, and there is another one that has not written yet.
      zookeeper.put(CLAIM, '{"nonce":"other"}', 'b');
      apply();
    };
    await clock.advance(T / 3);
    expect(stampIn(zookeeper).timestamp).toBeGreaterThan(before);
    expect([time.before(), lease.isValid()]).toEqual([before, false]);
  });

  it('when a write that the first gave up arrives just after it saw its claim for the last time', async () => {
    const { clock, lease, zookeeper, time } = await ready();
    const before = time.before();
    let arrive: (() => void) | undefined;
    zookeeper.fault = async (operation, path, apply) => {
      if (operation === 'multi' && path === STAMP && arrive === undefined) {
        arrive = apply;
        throw fails('connection-loss', 'unknown');
      }
      if (operation !== 'read' || path !== STAMP || arrive === undefined) return;
      zookeeper.put(CLAIM, '{"nonce":"other"}', 'b');
      arrive();
    };
    await clock.advance(T);
    expect(stampIn(zookeeper).timestamp).toBeGreaterThan(before);
    expect([time.before(), lease.isValid()]).toEqual([before, false]);
  });

  it('when the record of the first is unreadable: the second waits for as long as the first could be ahead', async () => {
    const { clock, lease, zookeeper, time } = await ready();
    await lease.release();
    zookeeper.put(STAMP, 'garbage', undefined);
    const next = await hold(clock, new ScriptedZooKeeper(clock, zookeeper));
    await next.time.prepare();
    expect(next.time.after).toBeGreaterThanOrEqual(time.before());
  });
});

describe('a stamp that is damaged while the node id is held', () => {
  it.each<[string, (zookeeper: ScriptedZooKeeper) => void]>([
    ['deleted', ({ znodes }) => znodes.delete(STAMP)],
    [
      'deleted with all that is above it',
      ({ znodes }) =>
        [...znodes.keys()].filter((p) => p.includes('stamps')).forEach((p) => void znodes.delete(p)),
    ],
    ['overwritten with garbage', (zookeeper) => zookeeper.overwrite(STAMP, 'garbage')],
    ['put back to an earlier time', (zookeeper) => zookeeper.overwrite(STAMP, '{"timestamp":1}')],
    ['put far ahead', (zookeeper) => zookeeper.overwrite(STAMP, '{"timestamp":9000000000000}')],
    ['created again', (zookeeper) => zookeeper.put(STAMP, '{"timestamp":1}', undefined)],
  ])('when it was %s, is put right, reported once, and costs no heartbeat', async (_, spoil) => {
    const { clock, lease, zookeeper, time, events } = await ready();
    await clock.advance(T / 6);
    const before = time.before();
    for (const round of [1, 2]) {
      spoil(zookeeper);
      await clock.advance(T / 2);
      expect(stampIn(zookeeper)).toEqual({ timestamp: time.before(), nonce: expect.any(String) });
      expect(time.before()).toBeGreaterThan(before + (round * T) / 3);
    }
    expect(time.before()).toBeLessThan(time.now() + T + 1);
    expect(damage(events)).toEqual([expect.objectContaining({ key: STAMP })]);
    expect(events.filter(({ type }) => type === 'renewal-failed' || type === 'lost')).toEqual([]);
    expect(lease.isValid()).toBe(true);
  });

  it('and cannot be put right, lets the ids run out, and the lease live on', async () => {
    const { clock, lease, zookeeper, time, events } = await ready();
    const before = time.before();
    zookeeper.denied.add(STAMP);
    await clock.advance(5 * T);
    expect([lease.isValid(), time.before()]).toEqual([true, before]);
    expect(events.filter(({ type }) => type === 'renewal-failed' || type === 'lost')).toEqual([]);
    expect(damage(events)).toHaveLength(1);
    const ids = await uniqueIds(lease);
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'IDS_EXHAUSTED' }));
    await lease.release();
    expect([zookeeper.znodes.has(CLAIM), events.at(-1)?.type]).toEqual([false, 'released']);
  });
});

describe('making ids ready', () => {
  it('keeps trying as long as the lease is held, and then reports how that ended', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const { time, lease } = await hold(clock, zookeeper);
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'unknown'));
    const failing = time.prepare();
    failing.catch(() => undefined);
    await clock.advance(T);
    await expect(failing).rejects.toBe(lease.signal.reason);
    expect(() => time.check()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }));
    expect([clock.sleepers, zookeeper.watches.size]).toEqual([0, 0]);
  });

  it('succeeds as soon as ZooKeeper answers again, for all waiting callers, except the one that gave up', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const { time } = await hold(clock, zookeeper);
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'unknown'));
    const giveUp = new AbortController();
    const [impatient, patient, other] = [time.prepare(giveUp.signal), time.prepare(), time.prepare()];
    impatient.catch(() => undefined);
    await clock.advance(100);
    giveUp.abort(new Error('enough'));
    await expect(impatient).rejects.toThrow('enough');
    zookeeper.fault = undefined;
    await clock.advance(2_000);
    await Promise.all([patient, other]);
    expect(time.before()).toBeGreaterThan(LEADER_EPOCH);
  });

  it('is refused at once if the tree does not allow it', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    zookeeper.denied.add(STAMP);
    const { time, lease } = await hold(clock, zookeeper);
    await expect(time.prepare()).rejects.toMatchObject({ code: 'ZOOKEEPER_FAILED', fault: 'no-auth' });
    expect(lease.isValid()).toBe(true);
  });

  it('takes a first write whose answer was lost for its own', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const { time } = await hold(clock, zookeeper);
    let lost = 0;
    zookeeper.fault = async (operation, _path, apply) => {
      if (operation !== 'multi' || lost > 0) return;
      lost += 1;
      apply();
      throw fails('timeout', 'unknown');
    };
    const prepared = time.prepare();
    await clock.advance(1_000);
    await prepared;
    expect([time.after, time.before()]).toEqual([0, LEADER_EPOCH + T]);
  });

  it('does not count as its own share a write that was applied when its claim belonged to another task', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const { time } = await hold(clock, zookeeper);
    zookeeper.fault = async (operation, _path, apply) => {
      if (operation !== 'multi') return;
      zookeeper.put(CLAIM, '{"nonce":"other"}', 'b');
      apply();
    };
    await expect(time.prepare()).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'taken' });
    expect([time.before(), time.after]).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  it('does not count a first write that arrives after the claim was seen for the last time', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const { lease, time } = await hold(clock, zookeeper);
    let arrive: (() => void) | undefined;
    let sawClaim = false;
    zookeeper.fault = async (operation, path, apply) => {
      if (operation === 'multi' && arrive === undefined) {
        arrive = apply;
        throw fails('connection-loss', 'unknown');
      }
      if (operation === 'read' && path === STAMP && sawClaim) {
        zookeeper.put(CLAIM, '{"nonce":"other"}', 'b');
        arrive?.();
      }
      if (operation === 'read' && path === CLAIM) sawClaim = true;
    };
    const prepared = time.prepare();
    prepared.catch(() => undefined);
    await clock.advance(T);
    await expect(prepared).rejects.toBe(lease.signal.reason);
    expect([time.before(), time.after, stampIn(zookeeper).timestamp]).toEqual([
      0,
      Number.POSITIVE_INFINITY,
      T,
    ]);
  });

  it.each([
    'garbage',
    `{"timestamp":${Number.MAX_SAFE_INTEGER}}`,
    `{"timestamp":${2 ** 48}}`,
    `{"timestamp":5,"stampedUntil":${2 ** 48}}`,
    '{"timestamp":-1}',
  ])('takes %s for no time, says so, and begins after all that its writer may have made', async (data) => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    zookeeper.put('/discovery/stamps', '', undefined);
    zookeeper.put('/discovery/stamps/00', '', undefined);
    zookeeper.put(STAMP, data, undefined);
    const { time, events } = await hold(clock, zookeeper);
    await time.prepare();
    expect([time.after, stampIn(zookeeper).timestamp]).toEqual([LEADER_EPOCH + T, time.before()]);
    expect(damage(events)).toEqual([
      expect.objectContaining({ key: STAMP, problem: expect.stringMatching(/^it cannot be read/) }),
    ]);
  });

  it('reports once that a stamp is far ahead of the servers’ clock, and makers of ids wait', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    zookeeper.put('/discovery/stamps', '', undefined);
    zookeeper.put('/discovery/stamps/00', '', undefined);
    zookeeper.put(STAMP, `{"timestamp":${Date.UTC(2100, 0, 1)}}`, undefined);
    const { lease, events } = await hold(clock, zookeeper);
    const ids = await uniqueIds(lease);
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'IDS_EXHAUSTED' }));
    await clock.advance(T);
    expect(damage(events)).toEqual([
      expect.objectContaining({
        key: STAMP,
        problem: expect.stringMatching(
          /stamped up to 2099-12-31T23:59:59\.999Z, and the servers' clock says 2023-/,
        ),
      }),
    ]);
  });

  it('reports nothing if a task that crashed was ahead by a normal amount', async () => {
    const { clock, zookeeper } = await ready();
    zookeeper.endSession();
    const next = await hold(clock, new ScriptedZooKeeper(clock, zookeeper));
    await next.time.prepare();
    expect([damage(next.events), next.time.after]).toEqual([[], LEADER_EPOCH + T - 1]);
  });

  it.each<[string, string, (zookeeper: ScriptedZooKeeper) => void]>([
    [
      'the leader’s clock shows no usable time',
      '{"timestamp":5}',
      (zookeeper) => {
        zookeeper.leaderTime = () => -86_400_000;
      },
    ],
    ['there is no time after the stamp', `{"timestamp":${2 ** 48 - 1}}`, () => undefined],
  ])(
    'pauses between its attempts where %s, says so once, and succeeds when that is put right',
    async (_, data, spoil) => {
      const clock = new VirtualClock();
      const zookeeper = new ScriptedZooKeeper(clock);
      zookeeper.put('/discovery/stamps', '', undefined);
      zookeeper.put('/discovery/stamps/00', '', undefined);
      zookeeper.put(STAMP, data, undefined);
      spoil(zookeeper);
      const { time, events, lease } = await hold(clock, zookeeper);
      let prepared = false;
      const preparing = time.prepare().then(() => {
        prepared = true;
      });
      await clock.advance(60_000);
      expect([prepared, lease.isValid()]).toEqual([false, true]);
      // Some ten looks every two seconds.
      expect(zookeeper.calls.filter((call) => call === `read ${STAMP}`).length).toBeLessThan(60 * 8);
      expect(damage(events)).toEqual([
        expect.objectContaining({ key: STAMP, problem: expect.stringMatching(/^no times can be written/) }),
      ]);
      zookeeper.leaderTime = () => LEADER_EPOCH + clock.monotonic();
      zookeeper.znodes.delete(STAMP);
      await clock.advance(5_000);
      await preparing;
      expect(time.before()).toBeGreaterThan(LEADER_EPOCH);
    },
  );

  it('ends with the lease: an id that is requested after its release, or its deadline, is refused', async () => {
    const released = await ready();
    await released.lease.release();
    expect(() => released.time.check()).toThrow(
      expect.objectContaining({ code: 'LEASE_RELEASED', nodeId: 0 }),
    );
    await expect(released.time.prepare()).rejects.toMatchObject({ code: 'LEASE_RELEASED' });
    const paused = await ready();
    paused.clock.freeze(T);
    expect(() => paused.time.check()).toThrow(
      expect.objectContaining({ code: 'LEASE_LOST', reason: 'paused' }),
    );
    expect(paused.time.signal.aborted).toBe(true);
  });
});

describe('the width of a tenure', () => {
  const writtenWidth = ({ znodes }: ScriptedZooKeeper) =>
    (JSON.parse(String(znodes.get(CLAIM)?.data)) as { idWidth: number }).idWidth;

  it.each<[string, (zookeeper: ScriptedZooKeeper) => void]>([
    [
      'groups that appeared since the claim, although no watch has reported them',
      (zookeeper) => zookeeper.put('/discovery/nodes/01', '', undefined),
    ],
    [
      'wider ids that were made here before, although the groups are gone',
      (zookeeper) => zookeeper.put('/discovery/stamps', '{"idWidth":9}', undefined),
    ],
  ])('is that of %s', async (_, prepare) => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const { lease, time } = await hold(clock, zookeeper);
    prepare(zookeeper);
    expect(time.idWidth).toBe(8);
    const ids = await uniqueIds(lease);
    expect([time.idWidth, ids.layout.nodeBits]).toEqual([9, 9]);
    await clock.advance(0);
    expect(writtenWidth(zookeeper)).toBe(9);
  });

  it('is published only when the maker of ids uses it, not by a heartbeat either', async () => {
    const { clock, time, zookeeper } = await ready();
    const widths: number[] = [];
    let done: () => void = () => undefined;
    time.onWidth((width) => {
      widths.push(width);
      return new Promise<void>((resolve) => {
        done = resolve;
      });
    });
    zookeeper.put('/discovery/nodes/01', '', undefined);
    zookeeper.fireWatches();
    await clock.advance(T);
    expect([time.idWidth, widths, writtenWidth(zookeeper)]).toEqual([9, [9], 8]);
    done();
    await clock.advance(0);
    expect(writtenWidth(zookeeper)).toBe(9);
  });

  it('is never less than what was published: the groups that were there at the claim may be gone', async () => {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    zookeeper.put('/discovery/nodes/01', '', undefined);
    const { time } = await hold(clock, zookeeper);
    zookeeper.znodes.delete('/discovery/nodes/01');
    zookeeper.fireWatches();
    await time.prepare();
    await clock.advance(T);
    expect([time.idWidth, writtenWidth(zookeeper)]).toEqual([9, 9]);
  });
});
