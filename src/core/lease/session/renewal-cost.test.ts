import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import { CLUSTER_KEY, encodeCluster } from '../model/cluster-config.js';
import { leaseTiming } from '../model/lease-timing.js';
import { readCluster } from './cluster-store.js';
import { monthlyRequests } from './renewal-cost.js';
import { StoreSession } from './store-session.js';

const DURATION = 15_000;

/**
 * A holder some durations after it has acquired its node id and created the missing objects, with its
 * requests since then.
 */
async function holder(settingsIntervalMs?: number) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const calls: MemoryCall[] = [];
  const direct = new MemoryLeaseStore({ clock }, bucket);
  const network = { isAway: false };
  const store = direct.connect(async (call, apply) => {
    calls.push(call);
    // Only reads fail: the lease is still renewed.
    if (network.isAway && call.operation === 'read')
      throw new StoreError('away', { fault: 'unreachable', outcome: 'unknown' });
    return apply();
  });
  const wanted = { taskId: 'task', nodes: 2, durationMs: DURATION, graceMs: 1_000, settingsIntervalMs };
  const start = () => acquireLease({ clock, random: seededRandom(1), store, ...wanted });
  const lease = await start();
  await clock.advance(4 * DURATION + 1_000);
  calls.length = 0;
  const session = new StoreSession(direct, clock, 1_000);
  return { clock, calls, network, lease, session, start };
}

function counted(calls: readonly MemoryCall[]) {
  const of = (...operations: string[]) =>
    calls.filter(({ operation }) => operations.includes(operation)).length;
  return { put: of('create', 'replace'), get: of('read'), list: of('list') };
}

describe('what a held lease costs', () => {
  it.each<[string, number | undefined, number, { put: number; get: number; list: number }]>([
    ['3 PUT and 3 GET', undefined, DURATION, { put: 3, get: 3, list: 0 }],
    [
      '3 PUT and 1 GET where the settings are read once a duration',
      DURATION,
      DURATION,
      { put: 3, get: 1, list: 0 },
    ],
    [
      '24 PUT and 2 GET where they are read every minute, of 8 durations',
      60_000,
      8 * DURATION,
      { put: 24, get: 2, list: 0 },
    ],
    [
      '3 PUT and 3 GET where the interval is hardly longer than that of renewals',
      7_000,
      DURATION,
      { put: 3, get: 3, list: 0 },
    ],
  ])('is %s, and a holder makes as many', async (_, settingsIntervalMs, ms, requests) => {
    const times = (30 * 86_400_000) / ms;
    expect(monthlyRequests({ nodes: 1, durationMs: DURATION, settingsIntervalMs })).toMatchObject({
      ...{ put: times * requests.put, get: times * requests.get },
    });
    const { clock, calls, lease } = await holder(settingsIntervalMs);
    // With such a long interval, the time may begin anywhere between two reads.
    await clock.advance(ms);
    expect(counted(calls)).toEqual(requests);
    calls.length = 0;
    await lease.release();
    expect(counted(calls)).toEqual({ put: 1, get: 0, list: 0 });
  });

  it('is a month of it for each node id', () => {
    expect(monthlyRequests({ nodes: 20, durationMs: DURATION })).toEqual({
      put: 10_368_000,
      get: 10_368_000,
    });
    expect(monthlyRequests({ nodes: 1, durationMs: DURATION, settingsIntervalMs: 3_600_000 })).toEqual({
      put: 518_400,
      get: 720,
    });
  });
});

describe('a holder that reads the cluster’s settings less often', () => {
  it.each<[string, number | undefined]>([
    ['at its next renewal', undefined],
    ['after no more than the interval, to the nearest renewal', 60_000],
  ])('learns that its node id is retired %s', async (_, settingsIntervalMs) => {
    const { clock, session, start } = await holder(settingsIntervalMs);
    const last = await start();
    const cluster = await readCluster(session);
    if (cluster === undefined) throw new Error('there is no cluster');
    const config = { ...cluster.config, size: 1, peak: 2, generation: 1 };
    await clock.advance(7 * DURATION);
    await session.write(
      CLUSTER_KEY,
      { body: encodeCluster(config, cluster.body), metadata: {} },
      cluster.etag,
    );
    const { renewEveryMs } = leaseTiming(DURATION);
    const learnMs = (settingsIntervalMs ?? renewEveryMs / 2) + renewEveryMs / 2;
    expect([last.id, last.retiring.aborted]).toEqual([1, false]);
    await clock.advance(learnMs);
    expect([last.retiring.aborted, last.isValid()]).toEqual([true, true]);
  });

  it('reads again at the next renewal if the answer was missing', async () => {
    const { clock, calls, network } = await holder(60_000);
    network.isAway = true;
    await clock.advance(75_000);
    network.isAway = false;
    calls.length = 0;
    await clock.advance(5_000);
    expect(counted(calls)).toEqual({ put: 1, get: 1, list: 0 });
    await clock.advance(50_000);
    expect(counted(calls)).toEqual({ put: 11, get: 1, list: 0 });
  });
});
