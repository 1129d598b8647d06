import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import { type HeldLease, type LeaseState, released, retired } from '../../core/lease/model/lease-state.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { initializeCluster } from '../../core/lease/operate/initialize.js';
import { inspectCluster } from '../../core/lease/operate/inspect.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import type { LockReport } from '../wire/cluster-snapshot.js';
import { ClusterFollower } from './cluster-follower.js';
import { wholeCluster } from './listed-cluster.js';
import { statusReport } from './status-report.js';

async function scene({ nodes = 3, resolutionMs = 1 }: { nodes?: number; resolutionMs?: number } = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, resolutionMs);
  const store = new MemoryLeaseStore({ clock, resolutionMs }, bucket);
  const admin = new StoreSession(store, clock, 1_000);
  const calls: MemoryCall[] = [];
  let network: (call: MemoryCall) => Promise<void> = async () => undefined;
  const looked = store.connect(async (call, apply) => {
    calls.push(call);
    await network(call);
    return apply();
  });
  const create = (size: number) =>
    initializeCluster({
      session: admin,
      clock,
      random: seededRandom(1),
      wanted: { nodes: size, durationMs: 15_000, graceMs: 1_000 },
    });
  if (nodes > 0) await create(nodes);
  const follower = new ClusterFollower({
    clock,
    random: seededRandom(2),
    session: new StoreSession(looked, clock, 1_000),
  });
  const write = (id: number, state: LeaseState) => {
    const { body, metadata } = nativeCodec.encode(state);
    bucket.replace(`${id}.json`, body, metadata, bucket.read(`${id}.json`)?.etag ?? '');
  };
  let renewal = 0;
  const lease = (taskId: string, version: number): HeldLease => {
    renewal += 1;
    const timestamp = clock.monotonic() + 15_000;
    const times = { timestamp, durationMs: 15_000, acquiredAt: 0, narrowIdsUntil: 0 };
    return { kind: 'held', taskId, version, knownNodes: {}, nonce: 'n', renewal, idWidth: 8, ...times };
  };
  let updates = 0;
  let lastEvent = 0;
  return {
    clock,
    bucket,
    admin,
    calls,
    create,
    follower,
    /** How often listeners were called since this was last called. */
    updates: () => {
      const count = updates;
      updates = 0;
      return count;
    },
    write,
    lease,
    hold: (id: number, taskId: string, version: number) => write(id, lease(taskId, version)),
    follow: () =>
      follower.follow(() => {
        updates += 1;
      }),
    setNetwork: (next: (call: MemoryCall) => Promise<void>) => {
      network = next;
    },
    /** The events since this was last called. */
    events: () => {
      const news = follower.current().events.filter(({ id }) => id > lastEvent);
      lastEvent += news.length;
      return news.map(({ kind, nodeId, version }) => [kind, nodeId, version]);
    },
  };
}

const away = async () => {
  throw new StoreError('no connection', { fault: 'unreachable', outcome: 'not-applied' });
};

describe('a cluster that is followed', () => {
  it('has vacant node ids where there is no object yet, and no damaged ones when bootstrap ends between its listing and its reading', async () => {
    const { clock, bucket, follower, follow, setNetwork, events } = await scene({ nodes: 0 });
    const settings = newCluster({ nodes: 3 });
    const writeSettings = (proven: boolean, bootstrapped: boolean) => {
      const body = encodeCluster({ ...settings, proven, bootstrapped });
      const etag = bucket.read('cluster.json')?.etag;
      if (etag === undefined) bucket.create('cluster.json', body, {});
      else bucket.replace('cluster.json', body, {}, etag);
    };
    const shown = async () =>
      (await follower.snapshot()).report?.nodes.map(({ state, problem }) => [state, problem]);
    writeSettings(false, false);
    follow();
    await clock.advance(0);
    expect(await shown()).toEqual(Array(3).fill(['vacant', null]));
    // As the settings are written when the probe has passed; the next listing has that, and no objects.
    writeSettings(true, false);
    setNetwork(async (call) => {
      if (call.operation !== 'read' || call.key !== 'cluster.json') return;
      for (const id of [0, 1, 2]) bucket.create(`${id}.json`, '', {});
      writeSettings(true, true);
    });
    await clock.advance(1_000);
    expect((await follower.snapshot()).report?.cluster?.bootstrapped).toBe(true);
    expect(await shown()).toEqual(Array(3).fill(['vacant', null]));
    expect(events()).toEqual([]);
    setNetwork(async () => undefined);
    bucket.remove('1.json');
    await clock.advance(2_000);
    expect((await shown())?.[1]).toEqual([
      'absent',
      'lease object is absent although the cluster is bootstrapped',
    ]);
  });

  it('is reported as by inspectCluster, with any content and at any age', async () => {
    for (const resolutionMs of [1, 1_000]) {
      const { clock, bucket, admin, follower, hold, write, lease, follow } = await scene({
        nodes: 8,
        resolutionMs,
      });
      follow();
      const same = async () => {
        const status = await inspectCluster(admin);
        expect((await follower.snapshot()).report).toEqual(
          statusReport('memory:', status && wholeCluster(status)),
        );
      };
      await clock.advance(0);
      await same();
      hold(0, 'a', 1);
      hold(1, 'b', 7);
      write(2, released(lease('c', 3), undefined, 0));
      write(3, {
        kind: 'retired',
        version: 2,
        timestamp: 1,
        durationMs: 0,
        stampedUntil: undefined,
        generation: 1,
      });
      bucket.remove('4.json');
      bucket.replace('5.json', 'garbage', {}, bucket.read('5.json')?.etag ?? '');
      await evictHolder(admin, 1);
      // Scans, a second each: until the lease has expired, and until it may be taken.
      for (let second = 0; second < 20; second += 1) {
        await clock.advance(1_000);
        await same();
      }
      hold(0, 'd', 2);
      await clock.advance(1_000);
      await same();
    }
  });

  it('reports acquisitions, renewals, releases, losses and take-overs', async () => {
    const { clock, follow, events, hold, write, lease, updates, follower } = await scene();
    follow();
    await clock.advance(100);
    expect([updates(), events()]).toEqual([1, []]);
    hold(0, 'a', 1);
    await clock.advance(1_000);
    expect(events()).toEqual([['acquired', 0, 1]]);
    hold(0, 'a', 1);
    await clock.advance(1_000);
    expect([updates(), events()]).toEqual([2, []]);
    write(0, released(lease('a', 1), undefined, 0));
    await clock.advance(1_000);
    expect(events()).toEqual([['released', 0, 1]]);
    hold(0, 'b', 2);
    await clock.advance(1_000);
    expect(events()).toEqual([['acquired', 0, 2]]);
    await clock.advance(15_000);
    expect(events()).toEqual([['overdue', 0, 2]]);
    await clock.advance(2_000);
    expect(events()).toEqual([]);
    hold(0, 'c', 3);
    await clock.advance(1_000);
    const [change] = (await follower.snapshot()).events.slice(-1);
    expect(change).toMatchObject({
      kind: 'taken-over',
      nodeId: 0,
      version: 3,
      taskId: 'c',
      previousTaskId: 'b',
      at: clock.now() - 100,
    });
    expect(change?.text).toBe('c took over node id 0 from b at version 3');
  });

  it('does not call it a take-over when an id changes hands faster than a lease could expire', async () => {
    const { clock, follow, events, hold } = await scene();
    hold(0, 'a', 1);
    follow();
    await clock.advance(100);
    hold(0, 'b', 2);
    await clock.advance(1_000);
    expect(events()).toEqual([['acquired', 0, 2]]);
  });

  it('reports after a gap without followers what it finds, and when the gap began', async () => {
    const { clock, follow, hold, follower } = await scene();
    const leave = follow();
    hold(0, 'task-26', 9);
    await clock.advance(1_100);
    leave();
    const seen = follower.current().store.lookedAt;
    await clock.advance(20 * 60_000);
    hold(0, 'task-119', 40);
    follow();
    await clock.advance(1_100);
    const text = 'task-119 holds node id 0 at version 40: up to 31 tenures since the last look';
    expect(follower.current().events.at(-1)).toMatchObject({
      kind: 'acquired',
      previousTaskId: null,
      text,
      since: seen,
    });
  });

  it('shrinks and grows again under its followers, and names the holders of retired ids', async () => {
    const { clock, bucket, calls, hold, write, lease, events, follower, follow } = await scene({ nodes: 6 });
    hold(0, 'a', 1);
    hold(4, 'b', 3);
    follow();
    await clock.advance(100);
    const resize = (size: number, generation: number) => {
      const { body = '', etag = '' } = bucket.read('cluster.json') ?? {};
      bucket.replace(
        'cluster.json',
        JSON.stringify({ ...JSON.parse(body), size, generation, peak: 6 }),
        {},
        etag,
      );
    };
    resize(2, 1);
    for (const id of [2, 3, 5]) write(id, retired({ kind: 'vacant' }, 1));
    await clock.advance(1_000);
    const draining = [{ id: 4, version: 3, taskId: 'b' }];
    expect(follower.current().report?.draining).toEqual(draining);
    expect(events()).toEqual([['resized', null, null]]);
    const { report } = await follower.snapshot();
    expect([report.nodes.map(({ id }) => id), report.draining, report.totals?.retired]).toEqual([
      [0, 1],
      draining,
      3,
    ]);

    // Renewals of retired ids cost nothing.
    calls.length = 0;
    hold(4, 'b', 3);
    await clock.advance(1_000);
    expect(calls).toEqual([{ operation: 'list' }]);

    write(4, retired(released(lease('b', 3), undefined, 0), 1));
    await clock.advance(1_000);
    expect((await follower.snapshot()).report.draining).toEqual([]);
    expect(events()).toEqual([]);

    resize(6, 2);
    await clock.advance(1_000);
    expect(events()).toEqual([['resized', null, null]]);
    const grown = (await follower.snapshot()).report;
    expect(grown.nodes.map(({ state, version }) => `${state} ${version}`)).toEqual([
      ...['held 1', 'vacant 0', 'vacant 0', 'vacant 0', 'released 3', 'vacant 0'],
    ]);
  });

  it('is scanned again soon after a first scan that took long, as that of a large cluster does', async () => {
    const { clock, hold, events, follow, setNetwork } = await scene({ nodes: 400 });
    setNetwork(async ({ operation }) => {
      if (operation === 'read') await clock.sleep(900);
    });
    follow();
    await clock.advance(24_000);
    hold(7, 'a', 1);
    await clock.advance(11_500);
    expect(events()).toEqual([['acquired', 7, 1]]);
  });

  it('reads the locks every ten seconds while it is followed, and keeps the last ones while they cannot be read', async () => {
    const { clock, admin } = await scene();
    const times: number[] = [];
    let locks: LockReport[] | undefined = [];
    const follower = new ClusterFollower({
      ...{ clock, random: seededRandom(2), session: admin },
      locks: async () => {
        times.push(clock.monotonic());
        return locks ?? away();
      },
    });
    await clock.advance(30_000);
    expect([times, follower.current().locks]).toEqual([[], undefined]);
    const begun = clock.monotonic();
    const unfollow = follower.follow(() => undefined);
    await clock.advance(5_000);
    const first = follower.current().locks;
    locks = undefined;
    await clock.advance(20_000);
    expect(times).toEqual([begun, begun + 10_000, begun + 20_000]);
    expect(follower.current().locks).toBe(first);
    unfollow();
    await clock.advance(60_000);
    expect(times).toHaveLength(3);
    // Hundreds of them are read more rarely: a read of each would be ten in a second.
    const lock = {
      name: 'a',
      state: 'held',
      holder: 'b',
      token: 1,
      since: 0,
      until: 0,
      problem: null,
      once: null,
    } as const;
    locks = new Array<LockReport>(300).fill(lock);
    follower.follow(() => undefined);
    await clock.advance(29_000);
    expect(times).toHaveLength(4);
    await follower.close();
  });

  it('has no locks of earlier followers for a later one, until they have been read again', async () => {
    const { clock, admin } = await scene();
    const follower = new ClusterFollower({
      ...{ clock, random: seededRandom(2), session: admin },
      locks: async (signal) => {
        await clock.sleep(3_000, signal);
        return [];
      },
    });
    const locksAfter = async (ms: number) => {
      await clock.advance(ms);
      const { locks, report } = follower.current();
      return [locks, report !== null];
    };
    const leave = follower.follow(() => undefined);
    expect(await locksAfter(4_000)).toEqual([[], true]);
    leave();
    await clock.advance(1_000);
    // A page that is loaded again.
    follower.follow(() => undefined)();
    expect(await locksAfter(0)).toEqual([[], true]);
    await clock.advance(3_600_000);
    follower.follow(() => undefined);
    expect(await locksAfter(1_000)).toEqual([undefined, true]);
    expect(await locksAfter(3_000)).toEqual([[], true]);
    await follower.close();
  });

  it('reads the locks again where it was left while it read them', async () => {
    const { clock, admin } = await scene();
    const follower = new ClusterFollower({
      ...{ clock, random: seededRandom(2), session: admin },
      locks: async (signal) => {
        await clock.sleep(1_000, signal);
        return [];
      },
    });
    const leave = follower.follow(() => undefined);
    await clock.advance(500);
    leave();
    await clock.advance(0);
    follower.follow(() => undefined);
    await clock.advance(3_000);
    expect(follower.current().locks).toEqual([]);
    await follower.close();
  });

  it('reports evictions, damage, repair and growth', async () => {
    const { clock, admin, bucket, create, follow, events, hold, follower, write } = await scene();
    hold(0, 'a', 1);
    hold(1, 'b', 1);
    follow();
    await clock.advance(100);
    await evictHolder(admin, 0);
    await clock.advance(1_000);
    expect(events()).toEqual([['evicted', 0, 2]]);
    // A holder whose lease has expired has no time left that must pass.
    await clock.advance(17_000);
    events();
    await evictHolder(admin, 1);
    await clock.advance(1_000);
    expect(events()).toEqual([['evicted', 1, 2]]);
    const { body = '', metadata = {} } = bucket.read('2.json') ?? {};
    bucket.remove('2.json');
    await clock.advance(1_000);
    expect(events()).toEqual([['damaged', 2, 0]]);
    bucket.create('2.json', body, metadata);
    write(1, {
      kind: 'retired',
      version: 2,
      timestamp: 1,
      durationMs: 0,
      stampedUntil: undefined,
      generation: 1,
    });
    await clock.advance(1_000);
    expect(events()).toEqual([
      ['retired', 1, 2],
      ['restored', 2, 0],
    ]);
    bucket.remove('cluster.json');
    for (const id of [3, 4]) bucket.create(`${id}.json`, '', {});
    await create(5);
    await clock.advance(1_000);
    expect(events()).toEqual([['resized', null, null]]);
    expect((await follower.snapshot()).report.nodes).toHaveLength(5);
    bucket.remove('cluster.json');
    await clock.advance(1_000);
    expect(follower.current().report).toMatchObject({ cluster: null });
    expect(events()).toEqual([['resized', null, null]]);
    const { report, events: all } = await follower.snapshot();
    expect([report.cluster, report.nodes, all.at(-1)?.text]).toEqual([
      null,
      [],
      'the cluster is gone: there are no node ids any more',
    ]);
  });

  it('is reported from its beginning', async () => {
    const { clock, follower, create, follow, events, hold } = await scene({ nodes: 0 });
    follow();
    await clock.advance(100);
    expect((await follower.snapshot()).report).toMatchObject({ store: 'memory:', cluster: null, nodes: [] });
    await create(2);
    hold(1, 'a', 1);
    await clock.advance(1_000);
    expect(follower.current().report).toMatchObject({
      cluster: { size: 2 },
      nodes: [{ state: 'vacant' }, { taskId: 'a' }],
    });
    expect(events()).toEqual([['acquired', 1, 1]]);
  });

  it('does not report as repaired what is created for the first time', async () => {
    const { clock, bucket, follow, events } = await scene({ nodes: 3 });
    const { body = '' } = bucket.read('cluster.json') ?? {};
    const set = (isDone: boolean) => {
      const settings = JSON.stringify({ ...JSON.parse(body), bootstrapped: isDone });
      bucket.replace('cluster.json', settings, {}, bucket.read('cluster.json')?.etag ?? '');
    };
    set(false);
    bucket.remove('2.json');
    follow();
    await clock.advance(100);
    bucket.create('2.json', '', {});
    set(true);
    await clock.advance(1_000);
    expect(events()).toEqual([]);
  });

  it('is reported with its age at the time of the call', async () => {
    const { clock, hold, follower, follow } = await scene();
    hold(0, 'a', 1);
    follow();
    await clock.advance(0);
    const before = await follower.snapshot();
    await clock.advance(900);
    const after = await follower.snapshot();
    expect(after.report.nodes[0]?.expiresInMs).toBe((before.report.nodes[0]?.expiresInMs ?? 0) - 900);
    expect(after.store.lookedAt).toBe(before.store.lookedAt);
  });

  it('is not shown in an old state to followers that come back: not before the next scan', async () => {
    const { clock, hold, follower, follow, setNetwork } = await scene();
    hold(0, 'a', 1);
    const leave = follow();
    await clock.advance(100);
    leave();
    await clock.advance(60_000);
    setNetwork(() => clock.sleep(400));
    follow();
    expect(follower.current()).toMatchObject({ report: null, store: { state: 'unknown' }, tree: null });
    await clock.advance(900);
    expect(follower.current()).toMatchObject({
      report: { nodes: [{ state: 'expired' }, {}, {}] },
      store: { state: 'ok' },
    });
  });

  it('is the same but for the ages until the next scan has ended', async () => {
    const { clock, hold, follower, follow } = await scene();
    hold(0, 'a', 1);
    follow();
    await clock.advance(100);
    const before = follower.current();
    await clock.advance(800);
    const after = follower.current();
    expect([after.revision, after.store]).toEqual([before.revision, before.store]);
    expect(after.store).toBe(before.store);
    await clock.advance(200);
    expect(follower.current().revision).toBe(before.revision + 1);
  });

  it('keeps the last 200 events, numbered', async () => {
    const { clock, follower, follow, hold } = await scene({ nodes: 60 });
    follow();
    await clock.advance(100);
    for (let round = 1; round <= 5; round += 1) {
      for (let id = 0; id < 60; id += 1) hold(id, `t${round}`, round);
      await clock.advance(1_000);
    }
    const { events } = await follower.snapshot();
    expect(events.map(({ id }) => id)).toEqual(Array.from({ length: 200 }, (_, index) => 101 + index));
  });
});

describe('what following a cluster costs', () => {
  it('is one LIST a second, and a read for each lease that was written', async () => {
    const { clock, follow, calls, hold } = await scene({ nodes: 20 });
    follow();
    await clock.advance(100);
    expect(calls).toHaveLength(1 + 1 + 20);
    calls.length = 0;
    hold(3, 'a', 1);
    hold(7, 'b', 1);
    await clock.advance(10_000);
    expect(calls.filter(({ operation }) => operation === 'list')).toHaveLength(10);
    expect(calls.flatMap((call) => (call.operation === 'read' ? [call.key] : []))).toEqual([
      '3.json',
      '7.json',
    ]);
  });

  it('is no more than a hundred reads a scan, which does not hide new and lost holders', async () => {
    const { clock, follow, calls, hold, write, lease, events } = await scene({ nodes: 500 });
    for (let id = 0; id < 400; id += 1) hold(id, `t${id}`, 1);
    follow();
    await clock.advance(100);
    calls.length = 0;
    events();
    for (let round = 0; round < 5; round += 1) {
      for (let id = 0; id < 399; id += 1) hold(id, `t${id}`, 1);
      if (round === 2) write(399, released(lease('t399', 1), undefined, 0));
      if (round === 2) hold(450, 'new', 1);
      await clock.advance(1_000);
      expect(calls.filter(({ operation }) => operation === 'read').length).toBeLessThanOrEqual(100);
      calls.length = 0;
      if (round === 2)
        expect(events()).toEqual([
          ['released', 399, 1],
          ['acquired', 450, 1],
        ]);
    }
    // Within a few scans each has its turn.
    const read = new Set<string>();
    for (let round = 0; round < 5; round += 1) {
      for (let id = 0; id < 400; id += 1) hold(id, `t${id}`, 1);
      await clock.advance(1_000);
      for (const call of calls) if (call.operation === 'read') read.add(call.key);
    }
    expect(read.size).toBe(400);
  });

  it('is nothing while there is no follower', async () => {
    const { clock, follow, calls, follower } = await scene();
    const stop = follow();
    const stopOther = follower.follow(() => undefined);
    await clock.advance(5_000);
    stop();
    stop();
    const before = calls.length;
    await clock.advance(1_000);
    expect(calls.length).toBeGreaterThan(before);
    stopOther();
    calls.length = 0;
    await clock.advance(60_000);
    expect(calls).toEqual([]);
    expect(clock.sleepers).toBe(0);
  });

  it('is one scan for many snapshots at one time, and no scan if the last one is fresh', async () => {
    const { clock, calls, follower } = await scene();
    await Promise.all(Array.from({ length: 20 }, () => follower.snapshot()));
    expect(calls.filter(({ operation }) => operation === 'list')).toHaveLength(1);
    await clock.advance(1_900);
    await follower.snapshot();
    expect(calls.filter(({ operation }) => operation === 'list')).toHaveLength(1);
    await clock.advance(200);
    await follower.snapshot();
    expect(calls.filter(({ operation }) => operation === 'list')).toHaveLength(2);
  });

  it('is no more for callers that repeatedly ask and hang up at once', async () => {
    for (const way of ['snapshot', 'follow'] as const) {
      for (const hangUpMs of [10, 50]) {
        const { clock, calls, follower, setNetwork } = await scene();
        setNetwork(() => clock.sleep(30));
        for (let elapsed = 0; elapsed < 20_000; elapsed += hangUpMs) {
          const abort = new AbortController();
          const stop = way === 'follow' ? follower.follow(() => undefined) : () => abort.abort();
          const asked =
            way === 'snapshot' ? follower.snapshot(abort.signal).catch(() => undefined) : undefined;
          await clock.advance(hangUpMs);
          stop();
          await asked;
        }
        const lists = calls.filter(({ operation }) => operation === 'list').length;
        expect({ way, hangUpMs, few: lists <= 21, lists }).toEqual({ way, hangUpMs, few: true, lists });
        expect(lists).toBeGreaterThan(5);
      }
    }
  });

  it('is no more for followers that leave after a notification, and come back at once', async () => {
    const { clock, calls, follower } = await scene();
    for (let elapsed = 0; elapsed < 20_000; elapsed += 100) {
      const stop = follower.follow(() => undefined);
      await clock.advance(100);
      stop();
    }
    expect(calls.filter(({ operation }) => operation === 'list').length).toBeLessThanOrEqual(21);
  });

  it('is never two scans at once, and a scan that takes long is followed by a pause', async () => {
    const { clock, calls, follow, setNetwork } = await scene();
    setNetwork(() => clock.sleep(900));
    follow();
    await clock.advance(20_000);
    // A LIST of 900 ms, and a pause of twice that.
    const lists = calls.filter(({ operation }) => operation === 'list').length;
    expect(lists).toBeGreaterThanOrEqual(6);
    expect(lists).toBeLessThanOrEqual(8);
  });
});

describe('a store that is slow to list', () => {
  it('is waited for, longer than for a single request', async () => {
    const { clock, follower, setNetwork } = await scene();
    setNetwork(async ({ operation }) => {
      if (operation === 'list') await clock.sleep(8_000);
    });
    const asked = follower.snapshot();
    asked.catch(() => undefined);
    await clock.advance(8_000);
    await expect(asked).resolves.toMatchObject({ store: { state: 'ok', latencyMs: 8_000 } });
  });
});

describe('a store that fails', () => {
  it('is reported once, read ever more rarely, and found again', async () => {
    const { clock, calls, follow, events, follower, setNetwork, hold } = await scene();
    hold(0, 'a', 1);
    follow();
    await clock.advance(100);
    events();
    setNetwork(away);
    calls.length = 0;
    await clock.advance(60_000);
    expect(events()).toEqual([['store-failed', null, null]]);
    expect(calls.length).toBeGreaterThanOrEqual(7);
    expect(calls.length).toBeLessThanOrEqual(11);
    const { store, report } = await follower.snapshot();
    expect(store).toMatchObject({
      state: 'failing',
      problem: 'no connection',
      lookedAt: clock.now() - 60_100,
    });
    // The last known state.
    expect(report.nodes[0]).toMatchObject({ state: 'held', expiresInMs: expect.closeTo(15_000, -1) });
    setNetwork(async () => undefined);
    hold(0, 'a', 1);
    await clock.advance(10_000);
    expect(follower.current().store).toMatchObject({ state: 'ok', problem: null });
    expect(events()).toEqual([['store-ok', null, null]]);
    calls.length = 0;
    await clock.advance(5_000);
    expect(calls.filter(({ operation }) => operation === 'list')).toHaveLength(5);
  });

  it('is the reason for a missing snapshot, until there was one', async () => {
    const { follower, follow, setNetwork, clock } = await scene();
    setNetwork(away);
    await expect(follower.snapshot()).rejects.toThrow('no connection');
    follow();
    await clock.advance(1_000);
    setNetwork(async () => undefined);
    await clock.advance(10_000);
    expect((await follower.snapshot()).report.nodes).toHaveLength(3);
  });

  it('does not keep callers that no longer want to wait, and the scan ends with the last of them', async () => {
    const { clock, follower, setNetwork } = await scene();
    setNetwork(() => clock.sleep(900));
    const abort = new AbortController();
    const asked = [follower.snapshot(abort.signal), follower.snapshot(abort.signal)];
    await settled();
    abort.abort(new Error('enough'));
    for (const each of asked) await expect(each).rejects.toThrow('enough');
    setNetwork(async () => undefined);
    const again = follower.snapshot();
    await clock.advance(1_000);
    await expect(again).resolves.toMatchObject({ store: { state: 'ok' } });
  });

  it('gets no request once the follower is closed', async () => {
    const { clock, follower, follow, calls, setNetwork } = await scene();
    setNetwork(() => clock.sleep(900));
    follow();
    await clock.advance(100);
    await follower.close();
    await follower.close();
    calls.length = 0;
    await clock.advance(20_000);
    expect(calls).toEqual([]);
    expect(follower.follow(() => undefined)).toBeTypeOf('function');
    await expect(follower.snapshot()).rejects.toThrow();
  });
});

describe('known nodes in a large cluster', () => {
  it('are reported if they are wrong, and in full if there are few', async () => {
    for (const [nodes, known] of [
      [256, { 1: 1, 2: 5 }],
      [257, { 2: 5 }],
    ] as const) {
      const { follower, write, lease, hold } = await scene({ nodes });
      hold(1, 'a', 1);
      hold(2, 'b', 6);
      write(0, { ...lease('c', 1), knownNodes: { 1: 1, 2: 5 } });
      expect((await follower.snapshot()).report.nodes[0]?.knownNodes).toEqual(known);
    }
  });
});
