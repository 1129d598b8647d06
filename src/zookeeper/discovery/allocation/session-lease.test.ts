import { describe, expect, it } from 'vitest';
import {
  type Fault,
  fails,
  pathOf,
  ScriptedZooKeeper,
  SESSION_MS,
} from '../../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { LeaseEvent } from '../../../core/lease/model/lease.js';
import { BoundSession } from '../../client/bound-session.js';
import type { SessionState } from '../../client/session-state.js';
import type { Znode } from '../../client/zookeeper.js';
import { acquireFromZooKeeper } from './acquire-from-zookeeper.js';

// The deadline, and the calls of unknown outcome, in virtual time. What servers really do is tested on real
// ones.

const T = SESSION_MS;
const PATH = '/discovery/nodes/00/08';
/** The claim of another task, which makes ids of any width. */
const ADOPTED = '{"idWidth":16}';

async function hold(own: object = {}, prepare?: (zookeeper: ScriptedZooKeeper, clock: VirtualClock) => void) {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  prepare?.(zookeeper, clock);
  const events: LeaseEvent[] = [];
  const onEvent = (event: LeaseEvent) => events.push(event);
  const pending = acquireFromZooKeeper({
    zookeeper,
    clock,
    random: seededRandom(1),
    taskId: 'task',
    onEvent,
    ...own,
  });
  pending.catch(() => undefined);
  await clock.advance(0);
  return { clock, zookeeper, events, pending };
}

/** One that has been held for a while: the last heartbeat was sent at `beatAt`. */
async function held() {
  const setUp = await hold();
  const lease = await setUp.pending;
  await setUp.clock.advance(T);
  const beatAt = setUp.clock.monotonic();
  expect(lease.deadline).toBe(beatAt + T / 2);
  return { ...setUp, lease, beatAt };
}

it.each([
  [undefined, 8_000],
  [0, 8_000],
  [60_000, 60_000],
])('with %s ms to wait for an id, the first session is waited for %i ms', async (acquireTimeoutMs, waits) => {
  const asked: unknown[] = [];
  const { pending } = await hold({ acquireTimeoutMs }, (zookeeper) => {
    zookeeper.whenConnected = async (call?: { timeoutMs?: number }) => {
      asked.push(call?.timeoutMs);
      throw fails('timeout', 'not-applied');
    };
  });
  await expect(pending).rejects.toMatchObject({ fault: 'timeout' });
  expect(asked).toEqual([waits]);
});

describe('an id that is held by a session', () => {
  it('is probed by a heartbeat every sixth of the time-out that changes no data, and each moves the deadline', async () => {
    const { clock, events, lease, zookeeper } = await held();
    const version = zookeeper.znodes.get(PATH)?.stat.version;
    const renewed = events.length;
    await clock.advance(10 * T);
    expect(events.slice(renewed).filter(({ type }) => type === 'renewed')).toHaveLength(60);
    expect(events.at(-1)).toEqual({ type: 'renewed', deadline: 11 * T + T / 2, tookMs: 0 });
    expect([lease.deadline, lease.isValid()]).toEqual([11 * T + T / 2, true]);
    expect(zookeeper.znodes.get(PATH)?.stat.version).toBe(version);
  });

  it('counts its deadline from before the heartbeat was sent, however late the answer comes (rule 3)', async () => {
    const { clock, lease, zookeeper, beatAt } = await held();
    zookeeper.fault = (operation) => (operation === 'multi' ? clock.sleep(400) : Promise.resolve());
    await clock.advance(T / 6 + 399);
    expect(lease.deadline).toBe(beatAt + T / 2);
    await clock.advance(1);
    expect(lease.deadline).toBe(beatAt + T / 6 + T / 2);
  });

  it('is not prolonged by reads that are answered while writes are not: a server without a leader continues to answer reads', async () => {
    const { clock, lease, zookeeper, beatAt } = await held();
    zookeeper.fault = (operation) =>
      operation === 'multi' ? new Promise(() => undefined) : Promise.resolve();
    await clock.advance((T * 5) / 12 + 1);
    expect(lease.signal.reason).toMatchObject({ reason: 'unreachable', deadline: beatAt + T / 2 });
  });

  it('survives an outage that ends before the stop point', async () => {
    const { clock, lease, zookeeper } = await held();
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'unknown'));
    await clock.advance(T / 3);
    zookeeper.fault = undefined;
    await clock.advance(2 * T);
    expect(lease.isValid()).toBe(true);
  });

  it.each([
    ['fail', () => Promise.reject(fails('connection-loss', 'unknown'))],
    ['hang for ever', () => new Promise<void>(() => undefined)],
  ])('is lost before its deadline when calls %s, with time left to end the work', async (_, fault) => {
    const { clock, lease, zookeeper, beatAt, events } = await held();
    zookeeper.fault = fault;
    await clock.advance(T / 3);
    expect(lease.signal.aborted).toBe(false);
    await clock.advance(T / 12 + 1);
    expect(lease.signal.reason).toMatchObject({
      code: 'LEASE_LOST',
      reason: 'unreachable',
      deadline: beatAt + T / 2,
    });
    expect([lease.isValid(), clock.monotonic() < beatAt + T / 2]).toEqual([false, true]);
    expect(events.some(({ type }) => type === 'renewal-failed')).toBe(true);
    expect(events.at(-1)?.type).toBe('lost');
  });

  it('is known to be lost at the moment of waking from a pause past its deadline, before any timer has run', async () => {
    const { clock, lease } = await held();
    clock.freeze(T / 2);
    expect(lease.isValid()).toBe(false);
    await clock.advance(0);
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
  });

  it('is over although a heartbeat was sent in time, if its answer comes after a pause past the deadline (rule 3)', async () => {
    const { clock, lease, zookeeper, beatAt } = await held();
    zookeeper.fault = async (operation) => {
      if (operation !== 'multi') return;
      zookeeper.fault = undefined;
      clock.freeze(T / 3 + 1);
    };
    await clock.advance(T / 6);
    expect([lease.isValid(), lease.deadline]).toEqual([false, beatAt + T / 2]);
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
  });

  it.each<[string, SessionState[]]>([
    ['expires', [{ status: 'expired', sessionId: 'a' }]],
    ['is replaced by another', [{ status: 'connected', sessionId: 'b', timeoutMs: T, server: 'x:1' }]],
    ['is closed', [{ status: 'closed' }]],
  ])('is lost at once when its session %s', async (_, states) => {
    const { lease, zookeeper, clock } = await held();
    for (const state of states) zookeeper.become(state);
    expect(lease.isValid()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'taken', deadline: clock.monotonic() });
  });

  it('is not lost while its session is suspended, and goes by the shorter time-out that another server grants', async () => {
    const { clock, lease, zookeeper, beatAt } = await held();
    zookeeper.become({ status: 'suspended', sessionId: 'a', timeoutMs: T });
    expect(lease.isValid()).toBe(true);
    zookeeper.become({ status: 'connected', sessionId: 'a', timeoutMs: T / 2, server: 'y:1' });
    expect(lease.deadline).toBe(beatAt + T / 4);
    await clock.advance(2 * T);
    expect(lease.deadline - clock.monotonic()).toBeLessThanOrEqual(T / 4);
    expect(lease.isValid()).toBe(true);
  });

  it.each<[string, (zookeeper: ScriptedZooKeeper) => void]>([
    ['deleted', (zookeeper) => zookeeper.znodes.delete(PATH)],
    [
      'deleted and made by another session',
      (zookeeper) => zookeeper.put(PATH, String(zookeeper.znodes.get(PATH)?.data), 'b'),
    ],
    ['overwritten', (zookeeper) => zookeeper.put(PATH, '{"nonce":"other"}', 'a')],
    ['overwritten by what is no JSON', (zookeeper) => zookeeper.put(PATH, 'me', 'a')],
  ])(
    'is lost when its znode was %s: at once by the watch, and by the next heartbeat in any case',
    async (_, spoil) => {
      const watched = await held();
      spoil(watched.zookeeper);
      watched.zookeeper.fireWatches();
      expect(watched.lease.signal.reason).toMatchObject({ reason: 'taken' });
      const unwatched = await held();
      spoil(unwatched.zookeeper);
      await unwatched.clock.advance(T / 6);
      expect(unwatched.lease.signal.reason).toMatchObject({ reason: 'taken' });
    },
  );

  it('records its holder, version and id width in its znode, and again when groups appear', async () => {
    const { pending, zookeeper, clock } = await hold({ data: { address: '10.0.0.1', version: 'not ours' } });
    const lease = await pending;
    const written = () => JSON.parse(String(zookeeper.znodes.get(PATH)?.data)) as Record<string, unknown>;
    const expected = {
      taskId: 'task',
      nodeId: 0,
      version: lease.version,
      idWidth: 8,
      address: '10.0.0.1',
      nonce: expect.any(String),
    };
    expect(written()).toEqual(expected);
    expect(BigInt(lease.version)).toBe(zookeeper.znodes.get(PATH)?.stat.createdZxid);
    zookeeper.put('/discovery/nodes/02', '', undefined);
    zookeeper.fireWatches();
    await clock.advance(0);
    expect(written()).toEqual({ ...expected, idWidth: 10 });
  });

  it('is released once, for any number of calls, and leaves no timer, watch or listener behind', async () => {
    const { clock, lease, zookeeper, events } = await held();
    await Promise.all([lease.release(), lease[Symbol.asyncDispose]()]);
    expect([...zookeeper.znodes.keys()].filter((path) => path === PATH)).toEqual([]);
    expect(events.filter(({ type }) => type === 'released')).toHaveLength(1);
    expect([lease.isValid(), lease.signal.aborted]).toEqual([false, false]);
    expect([clock.sleepers, zookeeper.watches.size, zookeeper.listeners.size]).toEqual([0, 0, 0]);
    const calls = zookeeper.calls.length;
    await clock.advance(10 * T);
    expect(zookeeper.calls.length).toBe(calls);
  });

  it('leaves no timer, watch or listener behind when it is lost, and its release removes nothing', async () => {
    const { clock, lease, zookeeper } = await held();
    clock.freeze(T);
    await lease.release();
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
    expect([clock.sleepers, zookeeper.watches.size, zookeeper.listeners.size]).toEqual([0, 0, 0]);
    expect(zookeeper.znodes.has(PATH)).toBe(true);
  });

  it('removes no znode that belongs to another task by now', async () => {
    const { lease, zookeeper } = await held();
    zookeeper.put(PATH, '{"nonce":"other"}', 'b');
    await lease.release();
    expect(zookeeper.znodes.has(PATH)).toBe(true);
  });

  it('gives a release up after a while when no server answers, and does not throw', async () => {
    const { clock, lease, zookeeper, events } = await held();
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'unknown'));
    const ending = lease.release();
    await clock.advance(3_000);
    await ending;
    expect(events.at(-1)).toMatchObject({ type: 'release-failed' });
  });
});

describe('claiming an id', () => {
  const onClaim =
    (act: (apply: () => void, attempt: number) => Promise<void>): Fault =>
    async (operation, path, apply) => {
      if (operation === 'multi' && path.startsWith('/discovery/nodes/')) await act(apply, ++attempts);
    };
  let attempts = 0;
  const idsIn = (zookeeper: ScriptedZooKeeper) =>
    [...zookeeper.znodes.keys()].filter((path) => /nodes\/00\/../.test(path));

  it('takes a claim whose answer was lost for its own where the next server lags behind it, and claims no second id (rule 5)', async () => {
    attempts = 0;
    const { pending, zookeeper, clock } = await hold({}, (script) => {
      let unseen: Znode | undefined;
      script.fault = onClaim(async (apply, attempt) => {
        // A write brings the server up to date.
        if (unseen) script.znodes.set(PATH, unseen);
        if (attempt > 1) return;
        apply();
        unseen = script.znodes.get(PATH);
        script.znodes.delete(PATH);
        throw fails('connection-loss', 'unknown');
      });
    });
    await clock.advance(0);
    expect((await pending).id).toBe(0);
    expect([idsIn(zookeeper), attempts]).toEqual([[PATH], 2]);
  });

  it('tries again if the claim of unknown outcome was not applied', async () => {
    attempts = 0;
    const { pending, zookeeper, clock } = await hold({}, (script) => {
      script.fault = onClaim(async (_, attempt) => {
        if (attempt === 1) throw fails('timeout', 'unknown');
      });
    });
    await clock.advance(1_000);
    await pending;
    expect([idsIn(zookeeper).length, attempts]).toEqual([1, 3]);
  });

  it('begins again in the next session when the first one ends on the way, and leaves the first one’s znodes to it', async () => {
    attempts = 0;
    const { pending, events } = await hold({}, (script) => {
      script.fault = onClaim(async (_, attempt) => {
        if (attempt > 1) return;
        script.become({ status: 'connected', sessionId: 'b', timeoutMs: T, server: 'x:1' });
        throw fails('session-expired', 'unknown');
      });
    });
    const lease = await pending;
    expect([lease.id, lease.isValid(), attempts]).toEqual([0, true, 2]);
    expect(events.map(({ type }) => type)).toEqual(['store-failed', 'acquired']);
  });

  it('is certain of an id only when the leader has surely heard of the session, if this process was paused before', async () => {
    const { pending, zookeeper, clock, events } = await hold({}, (script) => {
      script.activity.begin(-0.9 * T, T);
      script.heardBy = (at) => script.activity.heardBy(at);
    });
    await clock.advance(T / 4 - 1);
    expect([zookeeper.znodes.has(PATH), new Set(events.map(({ type }) => type))]).toEqual([
      true,
      new Set(['waiting']),
    ]);
    await clock.advance(T / 12 + 1);
    const lease = await pending;
    expect(lease.deadline - clock.monotonic()).toBeGreaterThanOrEqual(T / 4);
    await clock.advance(5 * T);
    expect(lease.isValid()).toBe(true);
  });

  it('counts nothing that was sent in another session', () => {
    const zookeeper = new ScriptedZooKeeper(new VirtualClock());
    zookeeper.heardBy = () => 1_000;
    expect(['a', 'b'].map((id) => new BoundSession(zookeeper, id).heardBy(2_000))).toEqual([
      1_000,
      Number.NEGATIVE_INFINITY,
    ]);
  });

  it('claims another id if one that is not certain yet is deleted, and gives up if heartbeats are too slow to be certain', async () => {
    const stale = (script: ScriptedZooKeeper) => {
      script.activity.begin(-0.9 * T, T);
      script.heardBy = (at) => script.activity.heardBy(at);
    };
    const one = await hold({}, stale);
    one.zookeeper.znodes.delete(PATH);
    await one.clock.advance(T);
    expect((await one.pending).isValid()).toBe(true);

    const slow = await hold({ acquireTimeoutMs: 2 * T }, (script, clock) => {
      stale(script);
      script.fault = (operation) => (operation === 'multi' ? clock.sleep(T / 3) : Promise.resolve());
    });
    await slow.clock.advance(3 * T);
    await expect(slow.pending).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
  });

  it('chooses another free id if other tasks are faster, and never holds two', async () => {
    let races = 0;
    const { pending, zookeeper, clock } = await hold({}, (script) => {
      script.fault = async (operation, path) => {
        if (operation === 'multi' && /nodes\/..\/../.test(path) && races++ < 3) script.put(path, '{}', 'b');
      };
    });
    await clock.advance(0);
    const lease = await pending;
    expect(idsIn(zookeeper)).toHaveLength(4);
    expect(zookeeper.znodes.get(pathOf(lease.id + 8))?.stat.owner).toBe('a');
  });

  it('fills a group before it takes an id of the next one', async () => {
    const { pending, clock } = await hold({}, (script) => {
      for (let index = 8; index < 255; index += 1) script.put(pathOf(index), ADOPTED, 'b');
      script.put('/discovery/nodes/00', '', undefined);
      let raced = false;
      script.fault = async (operation, path) => {
        if (raced || operation !== 'multi' || !path.startsWith('/discovery/nodes/')) return;
        raced = true;
        script.put(path, ADOPTED, 'b');
        script.znodes.delete(pathOf(100));
      };
    });
    await clock.advance(0);
    expect((await pending).id + 8).toBe(100);
  });

  it('refuses a transaction id that is too large for a version, and leaves its znode to the session', async () => {
    const { pending, zookeeper } = await hold({}, (script) => {
      script.zxid = 1n << 53n;
    });
    await expect(pending).rejects.toMatchObject({
      code: 'ZOOKEEPER_FAILED',
      fault: 'refused',
      message: expect.stringContaining('9007199254740991'),
    });
    zookeeper.endSession();
    expect(idsIn(zookeeper)).toEqual([]);
  });

  it('refuses a bad task id', async () => {
    const { pending } = await hold({ taskId: 'two words' });
    await expect(pending).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting: 'taskId' });
  });

  it('gives up at once, or in time, when all ids are taken', async () => {
    for (const acquireTimeoutMs of [0, 45_000]) {
      const { pending, clock, events } = await hold({ maxGroups: 1, acquireTimeoutMs }, (script) => {
        for (let index = 8; index < 256; index += 1) script.put(pathOf(index), '{}', 'b');
      });
      await clock.advance(acquireTimeoutMs);
      await expect(pending).rejects.toMatchObject({
        code: 'ACQUIRE_TIMEOUT',
        message: expect.stringContaining('none of the 248 node ids'),
      });
      expect(clock.monotonic()).toBe(acquireTimeoutMs);
      expect(events.some(({ type }) => type === 'waiting')).toBe(acquireTimeoutMs > 0);
    }
  });
});
