import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { type LeaseStore, StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import { encodeCluster } from '../model/cluster-config.js';
import type { LeaseEvent } from '../model/lease.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseTiming } from '../model/lease-timing.js';
import { evictHolder } from '../operate/evict.js';
import { readCluster } from '../session/cluster-store.js';
import { StoreSession } from '../session/store-session.js';
import { afterWork } from './lease-home.js';

const DURATION = 15_000;

type Fault = (call: MemoryCall, apply: () => void) => Promise<void>;

/** One held lease, and a network whose behaviour can be set. */
async function hold(nodes = 1, durationMs = DURATION) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const direct = new MemoryLeaseStore({ clock }, bucket);
  const network: { fault: Fault | undefined; calls: MemoryCall[] } = { fault: undefined, calls: [] };
  const store = direct.connect(async (call, apply) => {
    network.calls.push(call);
    await network.fault?.(call, () => void apply());
    return apply();
  });
  const events: LeaseEvent[] = [];
  const start = (own: object) =>
    acquireLease({
      clock,
      random: seededRandom(1),
      taskId: 'task',
      nodes,
      durationMs,
      graceMs: 1_000,
      store,
      ...own,
    });
  const lease = await start({ onEvent: (event: LeaseEvent) => events.push(event) });
  await clock.advance(1_500);
  const session = new StoreSession(direct, clock, 1_000);
  /** What was asked of the lease's object since. */
  const asked = () =>
    network.calls.flatMap((call) => ('key' in call && call.key === '0.json' ? [call.operation] : []));
  return { clock, bucket, direct, network, asked, events, lease, session, start };
}

const lost = (outcome: 'unknown' | 'not-applied') =>
  new StoreError('fault', { fault: 'unreachable', outcome });
const onWrites =
  (act: (apply: () => void) => Promise<void>): Fault =>
  async (call, apply) => {
    if (call.operation === 'replace') await act(apply);
  };

describe('a held lease', () => {
  it('is renewed after every third of its duration', async () => {
    const { clock, direct, lease, events } = await hold();
    await clock.advance(60_000);
    expect(lease.isValid()).toBe(true);
    const renewals = events.filter(({ type }) => type === 'renewed').length;
    expect(renewals).toBe(Math.floor(61_500 / (DURATION / 3)));
    expect(JSON.parse((await direct.read('0.json'))?.body ?? '')).toMatchObject({
      version: 1,
      renewal: renewals,
    });
  });

  it('counts its deadline from before the request was sent, however late the reply comes (rule 3)', async () => {
    const { clock, lease, network } = await hold();
    network.fault = onWrites(() => clock.sleep(1_000));
    await clock.advance(4_000);
    expect(lease.deadline).toBe(DURATION);
    await clock.advance(1_000);
    expect(lease.deadline).toBe(5_000 + DURATION);
  });

  it('writes the known nodes with its next renewal', async () => {
    const { clock, direct, lease } = await hold();
    lease.setKnownNodes({ 7: 3 });
    await clock.advance(5_000);
    expect(JSON.parse((await direct.read('0.json'))?.body ?? '').knownNodesMapping).toEqual({ 7: 3 });
  });

  it('shows a mark only once a renewal with it is applied, not by an earlier one with an equal mark', async () => {
    const { clock, direct, lease, network } = await hold();
    const shown = async () => JSON.parse((await direct.read('0.json'))?.body ?? '').shards;
    const mark = lease.home?.mark ?? expect.unreachable();
    const equal = { shards: { epoch: 0 } };
    await Promise.all([mark(equal), clock.advance(1_500)]);
    expect(await shown()).toEqual({ epoch: 0 });
    // The write that takes it back gets no reply, and may still be applied.
    void mark({});
    const order: string[] = [];
    let again: Promise<unknown> | undefined;
    network.fault = onWrites(async () => {
      if (again === undefined) {
        again = mark(equal).then(() => order.push('marked'));
        throw lost('unknown');
      }
      await settled();
      order.push('written');
    });
    await clock.advance(6_000);
    expect(order).toEqual(['written', 'marked']);
  });

  it('gives the store with each write the age from which other tasks may take it, and none with the tombstone', async () => {
    const clock = new VirtualClock();
    const ages: (number | undefined)[] = [];
    class RecordingStore extends MemoryLeaseStore {
      override replace(...[key, body, metadata, etag, options]: Parameters<LeaseStore['replace']>) {
        if (key === '0.json') ages.push(options?.expiresAfterMs);
        return super.replace(key, body, metadata, etag, options);
      }
    }
    const bucket = new MemoryBucket(clock, 1);
    const settings = {
      clock,
      random: seededRandom(1),
      taskId: 'task',
      nodes: 1,
      durationMs: DURATION,
      graceMs: 1_000,
    };
    const first = await acquireLease({ ...settings, store: new MemoryLeaseStore({ clock }, bucket) });
    await first.release();
    const lease = await acquireLease({ ...settings, store: new RecordingStore({ clock }, bucket) });
    await clock.advance(6_000);
    await lease.release();
    expect(ages).toEqual([16_000, 16_000, undefined]);
  });

  it('survives an outage that ends before the stop point', async () => {
    const { clock, lease, network } = await hold();
    network.fault = () => Promise.reject(lost('not-applied'));
    await clock.advance(9_000);
    network.fault = undefined;
    await clock.advance(20_000);
    expect(lease.isValid()).toBe(true);
  });

  it('is lost before its deadline when the store stays away, with time left to end the work', async () => {
    const { clock, lease, network } = await hold();
    network.fault = () => Promise.reject(lost('not-applied'));
    await clock.advance(10_900);
    expect(lease.signal.aborted).toBe(false);
    await clock.advance(100);
    expect(lease.signal.reason).toMatchObject({
      code: 'LEASE_LOST',
      reason: 'unreachable',
      deadline: DURATION,
    });
    expect([lease.isValid(), clock.monotonic() < DURATION]).toEqual([false, true]);
  });

  it('is lost before its deadline when requests hang for ever', async () => {
    const { clock, lease, network } = await hold();
    network.fault = () => new Promise(() => undefined);
    await clock.advance(11_001);
    expect(lease.signal.reason).toMatchObject({ reason: 'unreachable', deadline: DURATION });
  });

  it('reports the answer of the store as the cause of its loss, not that the last attempts ran out of time, and the time of the whole renewal', async () => {
    const { clock, lease, network, events } = await hold();
    const expired = new StoreError('access denied (ExpiredToken)', {
      fault: 'denied',
      outcome: 'not-applied',
    });
    network.fault = () =>
      clock.monotonic() < 9_000 ? Promise.reject(expired) : new Promise(() => undefined);
    await clock.advance(11_001);
    expect(lease.signal.reason).toMatchObject({ reason: 'denied', deadline: DURATION, cause: expired });
    expect(lease.signal.reason.detail).toMatch(
      /^could not be renewed: access denied \(ExpiredToken\); then .*: no answer within the last \d{3} of 7500 ms$/,
    );
    expect(events.filter(({ type }) => type === 'lost')).toHaveLength(1);
  });

  it('is denied only if that was the last answer: an earlier refusal is not reported', async () => {
    const { clock, lease, network } = await hold();
    const failures = {
      denied: new StoreError('403', { fault: 'denied', outcome: 'not-applied' }),
      unavailable: new StoreError('503', { fault: 'unavailable', outcome: 'unknown' }),
    };
    // First a renewal that is refused once and then succeeds, then one that fails for good.
    network.fault = () => (clock.monotonic() < 5_050 ? Promise.reject(failures.denied) : Promise.resolve());
    await clock.advance(4_500);
    expect(lease.isValid()).toBe(true);
    network.fault = () => Promise.reject(lost('not-applied'));
    await clock.advance(DURATION);
    expect(lease.signal.reason).toMatchObject({
      reason: 'unreachable',
      detail: 'could not be renewed: fault',
    });
    const other = await hold();
    other.network.fault = () =>
      Promise.reject(other.clock.monotonic() < 8_000 ? failures.denied : failures.unavailable);
    await other.clock.advance(DURATION);
    expect(other.lease.signal.reason).toMatchObject({
      reason: 'unreachable',
      detail: 'could not be renewed: 503',
    });
  });

  it('is kept on a store that takes longer for every request than a first attempt waits', async () => {
    const { clock, lease, network, events } = await hold();
    network.fault = () => clock.sleep(leaseTiming(DURATION).requestTimeoutMs * 1.2);
    await clock.advance(4 * DURATION);
    expect(lease.isValid()).toBe(true);
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
  });

  it('counts a renewal as applied although its reply was lost (rule 5)', async () => {
    const { clock, lease, network, asked, events } = await hold();
    let losses = 0;
    network.fault = onWrites(async (apply) => {
      losses += 1;
      if (losses > 1) return;
      apply();
      throw lost('unknown');
    });
    network.calls.length = 0;
    await clock.advance(5_000);
    // That it was applied is read once, and nothing is written again.
    expect(asked()).toEqual(['replace', 'read']);
    await clock.advance(25_000);
    expect(asked().filter((operation) => operation === 'read')).toHaveLength(1);
    expect([losses > 1, lease.isValid()]).toEqual([true, true]);
    expect(events.some(({ type }) => type === 'lost')).toBe(false);
  });

  it('is written again at once if the write was not applied, and read first if that is unknown', async () => {
    for (const outcome of ['not-applied', 'unknown'] as const) {
      const { clock, network, asked, events, lease } = await hold();
      network.calls.length = 0;
      network.fault = onWrites(async () => {
        network.fault = undefined;
        throw lost(outcome);
      });
      await clock.advance(4_500);
      expect(asked()).toEqual(['replace', ...(outcome === 'unknown' ? ['read'] : []), 'replace']);
      expect(events.at(-1)).toMatchObject({ type: 'renewed', deadline: lease.deadline });
      expect(lease.deadline).toBeGreaterThan(DURATION);
    }
  });

  it('reads its object until it knows what is in it, before it writes again', async () => {
    const { clock, network, asked, events, lease } = await hold();
    let late = () => undefined as unknown;
    network.fault = onWrites(async (apply) => {
      late = apply;
      throw lost('unknown');
    });
    await clock.advance(3_501);
    network.calls.length = 0;
    // Its write arrives just before the next one, and reading that fails at first.
    network.fault = async ({ operation }) => {
      if (operation === 'replace') late();
      else if (asked().filter((each) => each === 'read').length === 2) throw lost('not-applied');
    };
    await clock.advance(1_000);
    expect(asked()).toEqual(['read', 'replace', 'read', 'read']);
    expect(events.flatMap((event) => (event.type === 'renewed' ? [event.deadline] : []))).toEqual([
      lease.deadline,
    ]);
  });

  it('does not count a write that was not applied, although the object has an older own write', async () => {
    const { clock, lease, network } = await hold();
    let refused = false;
    network.fault = onWrites(async () => {
      refused = true;
      throw lost('unknown');
    });
    await clock.advance(6_000);
    expect([refused, lease.deadline]).toEqual([true, DURATION]);
  });

  it('survives a renewal that arrives long after it was given up', async () => {
    const { clock, lease, network } = await hold();
    let first = true;
    network.fault = onWrites(async (apply) => {
      if (!first) return;
      first = false;
      void clock.sleep(4_000).then(apply);
      throw lost('unknown');
    });
    await clock.advance(60_000);
    expect(lease.isValid()).toBe(true);
  });

  it('survives a renewal that the network delivers twice, the second answer being a refusal', async () => {
    const { clock, lease, network, asked } = await hold();
    network.fault = onWrites(async (apply) => apply());
    network.calls.length = 0;
    await clock.advance(4_000);
    expect(asked()).toEqual(['replace', 'read']);
    await clock.advance(56_000);
    expect([lease.isValid(), lease.deadline > 60_000]).toEqual([true, true]);
  });

  const changed = (change: object) => (held: object) => JSON.stringify({ ...held, ...change });
  it.each([
    ['has been deleted', () => undefined, 'its object has been deleted'],
    ['has been emptied', () => '', 'its object has been emptied'],
    ['is damaged', () => '{', 'its object is damaged: '],
    [
      'names another task',
      changed({ taskId: 'other', version: 2, nonce: 'x' }),
      'task other holds it at version 2',
    ],
    ['names another run with its task id', changed({ nonce: 'x' }), 'task task holds it at version 1'],
    ['has another version', changed({ version: 2 }), 'task task holds it at version 2'],
    ['has a renewal to come', changed({ renewal: 9 }), 'its object has renewal 9, which it never sent'],
  ])('is lost at the next renewal when its object %s', async (_, change, detail) => {
    const { clock, bucket, lease, events } = await hold();
    const body = change(JSON.parse(bucket.read('0.json')?.body ?? ''));
    bucket.remove('0.json');
    if (body !== undefined) bucket.create('0.json', body, {});
    await clock.advance(5_000);
    expect(lease.signal.reason).toMatchObject({
      reason: 'taken',
      deadline: 5_000,
      detail: expect.stringContaining(detail),
    });
    expect(events.some(({ type }) => type === 'renewed')).toBe(false);
  });

  it('replaces an earlier write of its own that came back with the store, which is no failure (rule 13)', async () => {
    const { clock, bucket, lease, network, asked, events } = await hold();
    const earlier = bucket.read('0.json')?.body ?? '';
    await clock.advance(4_000);
    bucket.remove('0.json');
    bucket.create('0.json', earlier, {});
    [network.calls.length, events.length] = [0, 0];
    await clock.advance(5_000);
    expect(asked()).toEqual(['replace', 'read', 'replace']);
    expect(events).toMatchObject([{ type: 'renewed', deadline: lease.deadline }]);
    expect(lease.deadline).toBeGreaterThan(9_000 + DURATION);
  });

  it.each([12_500, 14_999])('is lost in time after a pause until its stop point: %i ms', async (atMs) => {
    const { clock, lease, network } = await hold();
    network.calls.length = 0;
    clock.freeze(atMs - 1_500);
    await clock.advance(0);
    expect(lease.signal.reason).toMatchObject({
      reason: 'unreachable',
      deadline: DURATION,
      detail: 'no renewal came through in time',
    });
    expect(network.calls).toEqual([]);
  });

  it('gives a first attempt that hangs a twelfth of the duration, also after a renewal that was retried', async () => {
    const { clock, network } = await hold();
    network.fault = async () => {
      network.fault = undefined;
      throw lost('not-applied');
    };
    await clock.advance(5_000);
    const times: number[] = [];
    network.fault = () => {
      times.push(clock.monotonic());
      return new Promise(() => undefined);
    };
    await clock.advance(8_500);
    const [first = 0, second = 0, third = 0] = times;
    const { requestTimeoutMs, backoff } = leaseTiming(DURATION);
    expect(second - first - requestTimeoutMs).toBeLessThan(2 * backoff.first);
    expect(third - second).toBeGreaterThanOrEqual(2 * requestTimeoutMs);
  });

  it.each([
    [15_000, 1_250],
    [60_000, 4_000],
  ])('limits the requests of its work, too: with %i ms to %i ms', async (durationMs, timeoutMs) => {
    const { lease } = await hold(1, durationMs);
    expect((await lease.home?.session())?.timeoutMs).toBe(timeoutMs);
  });

  it('reads the width of ids once before the first one, and leaves no listener behind', async () => {
    const { lease, network } = await hold();
    network.calls.length = 0;
    const stop = new AbortController();
    for (let times = 0; times < 2; times += 1) await lease.tenureTime?.prepare(stop.signal);
    expect(network.calls).toEqual([{ operation: 'read', key: 'cluster.json' }]);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  it.each([
    [undefined, 12],
    [9_000, 6],
  ])(
    'reads the settings with the renewal that is nearest to their interval: %s',
    async (settingsIntervalMs, reads) => {
      const it = await hold(2);
      await it.start({ settingsIntervalMs });
      await it.lease.release();
      it.network.calls.length = 0;
      await it.clock.advance(60_000);
      expect(it.network.calls.filter((call) => 'key' in call && call.key === 'cluster.json')).toHaveLength(
        reads,
      );
    },
  );

  it('is over at its deadline, and not before', async () => {
    const { clock, lease } = await hold();
    const check = () => lease.tenureTime?.check();
    clock.freeze(DURATION - 1_501);
    expect(lease.isValid()).toBe(true);
    check();
    clock.freeze(1);
    expect(lease.isValid()).toBe(false);
    expect(check).toThrow('its deadline passed 0 ms ago: no renewal came through in time');
  });

  it('reports each attempt of a renewal that failed, and how long it took', async () => {
    const { clock, lease, network, events } = await hold();
    network.fault = async () => {
      if (events.filter(({ type }) => type === 'renewal-failed').length < 2) throw lost('not-applied');
      await clock.sleep(40);
    };
    await clock.advance(4_500);
    const begun = 5_000;
    expect(events.slice(-3)).toMatchObject([
      { type: 'renewal-failed', error: { message: 'fault' }, attempt: 1 },
      { type: 'renewal-failed', attempt: 2 },
      { type: 'renewed', deadline: lease.deadline },
    ]);
    const renewed = events.at(-1);
    expect(renewed).toMatchObject({ tookMs: lease.deadline - DURATION + 40 - begun });
  });

  it('knows at the moment of waking from a pause past its deadline that it is lost, before any timer has run', async () => {
    const { clock, lease } = await hold();
    clock.freeze(DURATION);
    expect(lease.isValid()).toBe(false);
    await clock.advance(0);
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
  });

  it('notices within a second of waking that the machine was suspended, although timers did not run meanwhile', async () => {
    class SuspendableClock extends VirtualClock {
      suspendedMs = 0;
      override monotonic() {
        return super.monotonic() + this.suspendedMs;
      }
    }
    const clock = new SuspendableClock();
    const options = {
      clock,
      random: seededRandom(1),
      taskId: 'task',
      nodes: 1,
      durationMs: DURATION,
      graceMs: 1_000,
    };
    const lease = await acquireLease({ store: new MemoryLeaseStore({ clock }), ...options });
    await clock.advance(1_500);
    clock.suspendedMs = 3_600_000;
    expect(lease.isValid()).toBe(false);
    await clock.advance(1_000);
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
  });

  // After the first pause, the deadline that the renewal itself would set is still ahead.
  it.each([
    ['', DURATION - 4_000],
    [', for longer than the renewed lease', 2 * DURATION],
  ])(
    'is over although a renewal was sent in time, if its reply comes after a pause past the deadline (rule 3)%s',
    async (_, pauseMs) => {
      const { clock, lease, network, events } = await hold();
      network.fault = onWrites(async () => {
        network.fault = undefined;
        clock.freeze(pauseMs);
      });
      await clock.advance(5_000);
      expect(lease.isValid()).toBe(false);
      await clock.advance(0);
      expect(lease.signal.reason).toMatchObject({
        reason: 'paused',
        deadline: DURATION + (pauseMs - (DURATION - 5_000)),
      });
      expect(lease.deadline).toBe(DURATION);
      expect(events.some(({ type }) => type === 'renewed')).toBe(false);
    },
  );

  it('is over, too, if the reply to a read of the object comes only then', async () => {
    const { clock, lease, network } = await hold();
    network.fault = async ({ operation }, apply) => {
      if (operation === 'replace') {
        apply();
        throw lost('unknown');
      }
      network.fault = undefined;
      clock.freeze(DURATION - 4_000);
    };
    await clock.advance(6_000);
    expect([network.fault, lease.isValid(), lease.deadline]).toEqual([undefined, false, DURATION]);
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
  });

  it('keeps its deadline when the wall clock jumps', async () => {
    const { clock, lease } = await hold();
    clock.wallOffset += 86_400_000;
    await clock.advance(10_000);
    clock.wallOffset -= 2 * 86_400_000;
    await clock.advance(30_000);
    expect(lease.isValid()).toBe(true);
  });

  it('survives 10,000 renewals without a listener, timer or waiting request left over', async () => {
    const { clock, lease, network, events } = await hold();
    const listeners = () => getEventListeners(lease.signal, 'abort').length;
    const before = [clock.sleepers, listeners()];
    await clock.advance((10_000 * DURATION) / 3);
    expect(events.filter(({ type }) => type === 'renewed').length).toBeGreaterThanOrEqual(10_000);
    expect([clock.sleepers, listeners()]).toEqual(before);
    expect(lease.isValid()).toBe(true);
    await lease.release();
    expect(clock.sleepers).toBe(0);
    expect(network.calls.filter(({ operation }) => operation === 'replace').length).toBeLessThan(10_010);
  });
});

describe('releasing', () => {
  it('leaves a tombstone that keeps the version, and happens once for any number of calls', async () => {
    const { direct, lease, network, asked, clock } = await hold();
    network.calls.length = 0;
    const [first, second] = [lease.release(), lease[Symbol.asyncDispose]()];
    await Promise.all([first, second]);
    expect(asked()).toEqual(['replace']);
    expect(nativeCodec.decode((await direct.read('0.json'))?.body ?? '', {})).toMatchObject({
      kind: 'released',
      version: 1,
    });
    expect([lease.isValid(), lease.signal.aborted]).toEqual([false, false]);
    const calls = network.calls.length;
    await clock.advance(60_000);
    expect(network.calls.length).toBe(calls);
  });

  it('reports the loss of a lease that is released at its deadline', async () => {
    const { clock, lease } = await hold();
    clock.freeze(DURATION - 1_500);
    await lease.release();
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
  });

  it('reports the loss of a lease that expired before its release, and writes nothing', async () => {
    const { clock, direct, lease, events } = await hold();
    clock.freeze(DURATION);
    await lease.release();
    expect(lease.signal.reason).toMatchObject({ reason: 'paused' });
    expect(events.at(-1)?.type).toBe('lost');
    expect(lease.signal.reason.detail).toBe('its deadline passed 1500 ms ago: it was released too late');
    expect(nativeCodec.decode((await direct.read('0.json'))?.body ?? '', {})).toMatchObject({ kind: 'held' });
  });

  it('gives up after a while when the store is away, and does not throw', async () => {
    const { clock, lease, network, events } = await hold();
    network.fault = () => Promise.reject(lost('not-applied'));
    const ending = lease.release();
    await clock.advance(4_000);
    await ending;
    expect(events.at(-1)).toMatchObject({ type: 'release-failed' });
  });

  it('keeps in its tombstone the timestamp of a renewal without a reply', async () => {
    const { clock, direct, lease, network } = await hold();
    await clock.advance(2_000);
    network.fault = onWrites(async (apply) => {
      apply();
      throw lost('unknown');
    });
    await clock.advance(1_600);
    network.fault = undefined;
    const { timestamp } = JSON.parse((await direct.read('0.json'))?.body ?? '');
    expect(timestamp).toBeGreaterThan(clock.wallOffset + DURATION);
    const ending = lease.release();
    await clock.advance(1_000);
    await ending;
    expect(JSON.parse((await direct.read('0.json'))?.body ?? '')).toEqual({
      released: true,
      version: 1,
      timestamp,
      stampedUntil: 0,
    });
  });

  it.each([
    ['has been deleted', undefined],
    ['names another task', { taskId: 'other', version: 2, nonce: 'x' }],
    ['is a tombstone', { released: true, taskId: undefined, version: 2 }],
  ])('writes nothing where its object %s after a renewal without a reply', async (_, change) => {
    const { clock, bucket, lease, network, events } = await hold();
    network.fault = onWrites(() => Promise.reject(lost('unknown')));
    await clock.advance(3_501);
    network.fault = undefined;
    const body = change && JSON.stringify({ ...JSON.parse(bucket.read('0.json')?.body ?? ''), ...change });
    bucket.remove('0.json');
    if (body !== undefined) bucket.create('0.json', body, {});
    await lease.release();
    expect([events.at(-1)?.type, bucket.read('0.json')?.body]).toEqual(['released', body]);
  });

  it('keeps the timestamp that it knows where the store has gone back to an earlier write', async () => {
    const { clock, bucket, lease, network } = await hold();
    const earlier = bucket.read('0.json')?.body ?? '';
    await clock.advance(4_000);
    const { timestamp } = JSON.parse(bucket.read('0.json')?.body ?? '');
    network.fault = onWrites(() => Promise.reject(lost('unknown')));
    await clock.advance(4_501);
    network.fault = undefined;
    bucket.remove('0.json');
    bucket.create('0.json', earlier, {});
    const ending = lease.release();
    await clock.advance(1_000);
    await ending;
    expect(JSON.parse(bucket.read('0.json')?.body ?? '')).toMatchObject({ released: true, timestamp });
  });

  it('is not confused by a tombstone whose reply was lost', async () => {
    const { clock, direct, lease, network } = await hold();
    network.fault = onWrites(async (apply) => {
      apply();
      throw lost('unknown');
    });
    const ending = lease.release();
    await clock.advance(4_000);
    await ending;
    expect(nativeCodec.decode((await direct.read('0.json'))?.body ?? '', {})).toMatchObject({
      kind: 'released',
      version: 1,
    });
  });

  it.each([
    ['denied', 1, 'release-failed'],
    ['unreachable', 3, 'released'],
  ] as const)('is tried again where that may help: a store that is %s', async (fault, writes, end) => {
    const { clock, lease, network, events } = await hold();
    const failure = new StoreError('fault', { fault, outcome: 'not-applied' });
    network.calls.length = 0;
    network.fault = onWrites(async () => {
      if (network.calls.filter(({ operation }) => operation === 'replace').length < 3) throw failure;
    });
    const ending = lease.release();
    await clock.advance(2_000);
    await ending;
    expect(events.at(-1)?.type).toBe(end);
    expect(network.calls.filter(({ operation }) => operation === 'replace')).toHaveLength(writes);
  });

  it('comes after a renewal of its own that arrives late', async () => {
    const { clock, bucket, direct, lease, network, events } = await hold();
    let arrives: () => void = () => undefined;
    let timestamp: number | undefined;
    network.fault = onWrites(async (apply) => {
      arrives();
      arrives = apply;
      throw lost('unknown');
    });
    await clock.advance(3_501);
    network.fault = onWrites(async () => {
      arrives();
      network.fault = undefined;
      timestamp = JSON.parse(bucket.read('0.json')?.body ?? '').timestamp;
    });
    const ending = lease.release();
    await clock.advance(2_000);
    await ending;
    expect(events.at(-1)?.type).toBe('released');
    expect(nativeCodec.decode((await direct.read('0.json'))?.body ?? '', {})).toMatchObject({
      kind: 'released',
      timestamp,
    });
    expect(timestamp).toBeGreaterThan(clock.wallOffset + DURATION);
  });

  it.each([
    [true, 'released'],
    [false, 'release-failed'],
  ])(
    'ends the attached work first, and gives the lease back only if all of it has ended: %s',
    async (hasEnded, end) => {
      const { lease, events } = await hold();
      const valid: boolean[] = [];
      const work = {
        end: async () => {
          valid.push(lease.isValid());
          return hasEnded;
        },
      };
      lease.home?.attach(work);
      await lease.release();
      expect([valid, events.at(-1)?.type]).toEqual([[true], end]);
      if (!hasEnded)
        expect(events.at(-1)).toMatchObject({
          error: { message: 'work that relies on it may not have ended' },
        });
    },
  );

  it('interrupts a renewal that is under way, and still leaves a tombstone', async () => {
    const { clock, direct, lease, network } = await hold();
    let stalled = false;
    network.fault = onWrites(async (apply) => {
      if (stalled) return;
      stalled = true;
      apply();
      await new Promise(() => undefined);
    });
    await clock.advance(4_000);
    expect(stalled).toBe(true);
    await lease[Symbol.asyncDispose]();
    expect(nativeCodec.decode((await direct.read('0.json'))?.body ?? '', {})).toMatchObject({
      kind: 'released',
    });
  });
});

it('a lease without a home has no work to end first', async () => {
  const ends: boolean[] = [];
  await afterWork(undefined, async (workEnded) => void ends.push(workEnded));
  expect(ends).toEqual([true]);
});

describe('a lease whose node id the cluster retires', () => {
  const resize = async ({ session }: Awaited<ReturnType<typeof hold>>, size: number, generation: number) => {
    const cluster = await readCluster(session);
    if (cluster === undefined) throw new Error('no cluster');
    const body = encodeCluster(
      { ...cluster.config, size, generation, peak: 2, bootstrapped: true },
      cluster.body,
    );
    expect(await session.write('cluster.json', { body, metadata: {} }, cluster.etag)).toMatchObject({
      status: 'written',
    });
  };

  it('reports it once, at a renewal, is still renewed, and never withdraws the report', async () => {
    const it = await hold(2);
    const second: LeaseEvent[] = [];
    const lease = await it.start({ store: it.direct, onEvent: (event: LeaseEvent) => second.push(event) });
    expect(lease.id).toBe(1);
    await resize(it, 1, 1);
    expect(lease.retiring.aborted).toBe(false);
    await it.clock.advance(DURATION / 3);
    expect(lease.retiring.reason).toMatchObject({ code: 'LEASE_RETIRING', nodeId: 1, version: 1, size: 1 });
    expect([lease.isValid(), lease.signal.aborted]).toEqual([true, false]);
    await it.clock.advance(2 * DURATION);
    await resize(it, 2, 2);
    await it.clock.advance(DURATION);
    expect([lease.isValid(), lease.retiring.aborted]).toEqual([true, true]);
    expect(second.filter(({ type }) => type === 'retiring')).toEqual([{ type: 'retiring', size: 1 }]);
    expect([it.lease.retiring.aborted, it.events.some(({ type }) => type === 'retiring')]).toEqual([
      false,
      false,
    ]);
    await lease.release();
    expect(getEventListeners(lease.retiring, 'abort')).toEqual([]);
    await it.lease.release();
  });

  it('does not report it once it is released or lost', async () => {
    for (const end of ['release', 'evict'] as const) {
      const it = await hold(2);
      const lease = await it.start({ store: it.direct });
      if (end === 'release') await lease.release();
      else await evictHolder(it.session, lease.id);
      await resize(it, 1, 1);
      await it.clock.advance(DURATION);
      expect(lease.retiring.aborted).toBe(false);
      await it.lease.release();
    }
  });
});

describe("an operator's forced release", () => {
  it('stops the holder at its next renewal, and no task gets the id while the holder may still trust its lease (rules 1 and 9)', async () => {
    const { clock, lease, session, start, direct } = await hold();
    expect(await evictHolder(session, 0)).toMatchObject({ kind: 'evicted', taskId: 'task', version: 2 });
    const evictedAt = clock.monotonic();
    const next = start({ taskId: 'next', store: direct, random: seededRandom(2) });
    await settled();
    expect(lease.isValid()).toBe(true);
    await clock.advance(5_000);
    expect(lease.signal.reason).toMatchObject({
      reason: 'taken',
      message: expect.stringContaining('released at version 2'),
    });
    await clock.advance(20_000);
    expect((await next).version).toBe(3);
    expect((await next).deadline - DURATION).toBeGreaterThan(evictedAt);
  });

  it('frees an id at once if its lease has expired anyway', async () => {
    const { clock, session, network, direct } = await hold();
    network.fault = () => Promise.reject(lost('not-applied'));
    await clock.advance(20_000);
    expect(await evictHolder(session, 0)).toMatchObject({ kind: 'evicted', version: 2 });
    expect(nativeCodec.decode((await direct.read('0.json'))?.body ?? '', {})).toMatchObject({
      kind: 'released',
      durationMs: 0,
    });
  });

  it('writes nothing when no task holds the id', async () => {
    const { lease, session } = await hold(2);
    await lease.release();
    expect(await evictHolder(session, 0)).toEqual({ kind: 'not-held', state: 'released' });
    expect(await evictHolder(session, 1)).toEqual({ kind: 'not-held', state: 'vacant' });
    await expect(evictHolder(session, 2)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });
});
