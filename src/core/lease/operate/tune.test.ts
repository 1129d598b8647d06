import { describe, expect, it } from 'vitest';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { type LeaseStore, StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { type AcquireLeaseOptions, acquireLease } from '../acquire/acquire-lease.js';
import { decodeCluster } from '../model/cluster-config.js';
import type { LeaseEvent } from '../model/lease.js';
import { StoreSession } from '../session/store-session.js';
import { evictHolder } from './evict.js';
import { initializeCluster, repairCluster } from './initialize.js';
import { tuneCluster } from './tune.js';

/** A cluster in virtual time, whose leases last that long, and an operator. */
async function scene(durationMs: number, nodes = 1) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const direct = new MemoryLeaseStore({ clock }, bucket);
  const network: {
    fault?: (call: MemoryCall, apply: () => void) => Promise<void> | void;
    calls: MemoryCall[];
  } = { calls: [] };
  const store = direct.connect(async (call, apply) => {
    network.calls.push(call);
    await network.fault?.(call, () => void apply());
    return apply();
  });
  const events: LeaseEvent[] = [];
  let tasks = 0;
  const start = (own: Partial<AcquireLeaseOptions> = {}) => {
    tasks += 1;
    return acquireLease({
      ...{ store, clock, random: seededRandom(tasks), taskId: `task-${tasks}`, nodes, durationMs },
      ...{ onEvent: (event: LeaseEvent) => events.push(event), ...own },
    });
  };
  const session = new StoreSession(direct, clock, 1_000);
  const random = seededRandom(99);
  await initializeCluster({ session, clock, random, wanted: { nodes, durationMs, graceMs: 1_000 } });
  const tune = (wanted: number, graceMs?: number, by: LeaseStore = direct) =>
    inVirtualTime(
      clock,
      tuneCluster({
        session: new StoreSession(by, clock, 1_000),
        clock,
        random,
        durationMs: wanted,
        graceMs,
      }),
    );
  const config = async () => decodeCluster((await direct.read('cluster.json'))?.body ?? '');
  const lasts = async () => JSON.parse((await direct.read('0.json'))?.body ?? '').durationMs;
  return { clock, bucket, direct, network, events, start, session, tune, config, lasts };
}

describe('another duration for a live cluster', () => {
  it('comes with the renewals of each holder, whose deadline never moves back, from 60 s to 5 s in seven (rule 14)', async () => {
    const { clock, start, tune, events, lasts, direct } = await scene(60_000);
    const expires: (number | undefined)[] = [];
    const recording = direct.connect(async (_, apply) => apply());
    const replace = recording.replace.bind(recording);
    recording.replace = (...call: Parameters<LeaseStore['replace']>) => {
      if (call[0] === '0.json') expires.push(call[4]?.expiresAfterMs);
      return replace(...call);
    };
    const lease = await inVirtualTime(clock, start({ store: recording }));
    expires.length = 0;
    await clock.advance(20_000);
    expect(await tune(5_000)).toEqual({
      kind: 'tuned',
      from: { durationMs: 60_000, graceMs: 1_000 },
      to: { durationMs: 5_000, graceMs: 1_000 },
      late: [{ id: 0, taskId: 'task-1', durationMs: 60_000 }],
    });
    // It reads the settings after a renewal.
    await clock.advance(20_000);
    const shown: number[] = [];
    let deadline = lease.deadline;
    for (let ms = 0; ms < 60_000; ms += 100) {
      await clock.advance(100);
      expect(lease.deadline).toBeGreaterThanOrEqual(deadline);
      deadline = lease.deadline;
      const last = await lasts();
      if (last !== shown.at(-1)) shown.push(last);
    }
    expect(shown.map((ms) => Math.round(ms / 100) / 10)).toEqual([60, 40, 26.7, 17.8, 11.9, 7.9, 5.3, 5]);
    // A mark on etcd lasts as long as the write that it is of.
    expect(expires.slice(2, 9)).toEqual(shown.slice(1).map((ms) => ms + 1_000));
    expect((await tune(5_000)).kind === 'tuned' && (await tune(5_000))).toMatchObject({ late: [] });
    expect(events.some(({ type }) => type === 'lost' || type === 'renewal-failed')).toBe(false);
    // Renewals, margin and patience are those of the short lease now.
    events.length = 0;
    await clock.advance(10_000);
    expect(events.filter(({ type }) => type === 'renewed').length).toBe(6);
  });

  it('counts, where it is longer, from the write that has it, and not once it is read', async () => {
    const { clock, start, tune, network, lasts } = await scene(5_000);
    const lease = await inVirtualTime(clock, start());
    await tune(60_000);
    await clock.advance(2_000);
    const before = lease.deadline;
    network.fault = (call) => {
      if (call.operation === 'replace')
        throw new StoreError('lost', { fault: 'unreachable', outcome: 'not-applied' });
    };
    await clock.advance(2_000);
    expect(lease.deadline).toBe(before);
    network.fault = () => undefined;
    await clock.advance(10_000);
    expect([lease.isValid(), await lasts()]).toEqual([true, 60_000]);
  });

  it('keeps the patience of the lease that it has during an outage', async () => {
    const { clock, start, tune, network, events } = await scene(60_000);
    const lease = await inVirtualTime(clock, start());
    await clock.advance(20_000);
    await tune(5_000);
    await clock.advance(21_000);
    network.fault = () => {
      throw new StoreError('away', { fault: 'unreachable', outcome: 'not-applied' });
    };
    await clock.advance(45_000);
    expect(lease.isValid()).toBe(true);
    network.fault = () => undefined;
    await clock.advance(30_000);
    expect(lease.isValid()).toBe(true);
    expect(events.some(({ type }) => type === 'lost')).toBe(false);
  });

  it('is one write, which a repeated call does not repeat, and which is noted, eight changes at most', async () => {
    const { tune, config, bucket, clock } = await scene(15_000);
    await clock.advance(1_000);
    await tune(20_000);
    const etag = bucket.read('cluster.json')?.etag;
    expect(await tune(20_000)).toMatchObject({ kind: 'tuned', from: { durationMs: 20_000 } });
    expect(bucket.read('cluster.json')?.etag).toBe(etag);
    for (let seconds = 21; seconds < 30; seconds += 1) await tune(seconds * 1_000);
    await tune(5_000);
    const { tuned = [], longestMs, durationMs } = await config();
    expect([durationMs, longestMs, tuned.length]).toEqual([5_000, 29_000, 8]);
    expect(tuned[0]).toEqual({
      at: expect.closeTo(clock.now(), -3),
      from: { durationMs: 29_000, graceMs: 1_000 },
      to: { durationMs: 5_000, graceMs: 1_000 },
    });
  });

  it('reads after a lost reply, and says whose times apply after a conflict', async () => {
    const { direct, tune, bucket, config } = await scene(15_000);
    const flaky = (act: (apply: () => void) => void) => {
      let isFirst = true;
      return direct.connect(async (call, apply) => {
        if (call.operation !== 'replace' || !isFirst) return apply();
        isFirst = false;
        act(apply);
        throw new StoreError('lost', { fault: 'unreachable', outcome: 'unknown' });
      });
    };
    const lossy = flaky((apply) => void apply());
    expect(await tune(30_000, 2_000, lossy)).toMatchObject({
      kind: 'tuned',
      from: { durationMs: 15_000, graceMs: 1_000 },
      to: { durationMs: 30_000, graceMs: 2_000 },
    });
    expect((await config()).tuned?.length).toBe(1);
    const change = (times: object) => {
      const { body = '', etag = '' } = bucket.read('cluster.json') ?? {};
      bucket.replace('cluster.json', JSON.stringify({ ...JSON.parse(body), ...times }), {}, etag);
    };
    const others = flaky(() => change({ durationMs: 20_000 }));
    expect(await tune(60_000, undefined, others)).toEqual({
      kind: 'superseded',
      to: { durationMs: 20_000, graceMs: 2_000 },
    });
    // A change of something else is none of the times.
    const another = flaky(() => change({ size: 2 }));
    expect((await tune(60_000, undefined, another)).kind).toBe('tuned');
  });

  it('keeps the grace at a thousandth of the duration, and refuses what no cluster could have', async () => {
    const { tune, config } = await scene(15_000);
    await tune(7_200_000);
    expect(await config()).toMatchObject({ durationMs: 7_200_000, graceMs: 7_200 });
    await tune(5_000);
    expect((await config()).graceMs).toBe(7_200);
    await expect(tune(7_200_000, 7_199)).rejects.toMatchObject({ setting: 'graceMs' });
    await expect(tune(999)).rejects.toMatchObject({ setting: 'durationMs' });
  });

  it('refuses renewals that the store does not keep up with', async () => {
    const { direct, tune, config } = await scene(15_000);
    const slow = Object.assign(
      direct.connect(async (_, apply) => apply()),
      { minWriteIntervalMs: 1_000 },
    );
    await expect(tune(2_999, undefined, slow)).rejects.toMatchObject({ setting: 'durationMs' });
    expect((await tune(3_000, undefined, slow)).kind).toBe('tuned');
    expect((await config()).durationMs).toBe(3_000);
  });

  it('says that there is no cluster', async () => {
    const { tune, clock } = await scene(15_000);
    expect(await tune(5_000, undefined, new MemoryLeaseStore({ clock }))).toEqual({ kind: 'no-cluster' });
  });
});

describe('the longest duration that there was (rule 15)', () => {
  it('is for how long a damaged lease is watched, and its holder may trust it', async () => {
    const { clock, bucket, tune, session } = await scene(60_000);
    await tune(5_000);
    const { etag = '' } = bucket.read('0.json') ?? {};
    bucket.replace('0.json', 'damage', { version: '3' }, etag);
    const waits: number[] = [];
    await inVirtualTime(clock, repairCluster({ session, clock, onWait: (ms) => waits.push(ms) }));
    expect(waits).toEqual([61_001 + 2]);
    expect(JSON.parse(bucket.read('0.json')?.body ?? '')).toMatchObject({
      released: true,
      durationMs: 60_000,
    });
  });
});

describe('a lease whose duration the settings no longer have', () => {
  it('is the one by which a forced release and a take-over go (rules 4 and 9)', async () => {
    const { clock, start, tune, session, network } = await scene(60_000);
    await inVirtualTime(clock, start());
    await tune(5_000);
    network.fault = (call) => {
      if (call.operation === 'replace')
        throw new StoreError('away', { fault: 'unreachable', outcome: 'not-applied' });
    };
    expect(await evictHolder(session, 0)).toMatchObject({ kind: 'evicted', durationMs: 60_000 });
    network.fault = () => undefined;
    const begun = clock.monotonic();
    await inVirtualTime(clock, start());
    expect(clock.monotonic() - begun).toBeGreaterThan(61_000);
  });
});

describe('a task that waits while leases have another duration than the settings', () => {
  it('reads each lease that looks expired once, and not again and again', async () => {
    const nodes = 40;
    const { clock, start, tune, network } = await scene(60_000, nodes);
    for (let held = 0; held < nodes; held += 1) await inVirtualTime(clock, start());
    // No holder follows yet.
    await tune(5_000);
    await clock.advance(9_000);
    network.calls.length = 0;
    const waiting = start({ acquireTimeoutMs: 9_000 });
    waiting.catch(() => undefined);
    await clock.advance(10_000);
    const reads = network.calls.filter((call) => call.operation === 'read' && call.key !== 'cluster.json');
    expect(reads.length).toBe(nodes);
    await expect(waiting).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
  });

  it('waits with a sticky key for its former lease, however short those of the settings are', async () => {
    const { clock, start, tune, network } = await scene(60_000, 2);
    const killed = { isGone: false };
    const former = await inVirtualTime(clock, start({ sticky: 'one' }));
    network.fault = (call) => {
      if (killed.isGone && call.operation === 'replace' && call.key === `${former.id}.json`)
        throw new StoreError('gone', { fault: 'unreachable', outcome: 'not-applied' });
    };
    killed.isGone = true;
    await tune(5_000);
    await clock.advance(30_000);
    killed.isGone = false;
    void former.release();
    const next = start({ sticky: 'one', stickyWaitMs: 60_000 });
    expect((await inVirtualTime(clock, next)).id).toBe(former.id);
  });
});
