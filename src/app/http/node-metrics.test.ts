import { readFile } from 'node:fs/promises';
import performance from 'node:perf_hooks';
import { Counter, Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { shardFleet } from '../../../test/support/shard-fleet.js';
import { shrinkSettings } from '../../../test/support/shrunk-cluster.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { uniqueIds } from '../../core/id/lease-ids.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import { staticLease } from '../../core/lease/hold/static-lease.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { NodeMonitor } from '../../node/runtime/node-monitor.js';
import { encodeMap, ownerless, SHARDS_KEY } from '../../node/shards/shard-map.js';
import type { Discovery } from '../../zookeeper/discovery/discovery.js';
import { NodeMetrics } from './node-metrics.js';

const DURATION = 15_000;
const open: NodeMetrics[] = [];

/** The samples of a scrape by name and labels, as in its text. */
async function scrape(metrics: NodeMetrics): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1).replace('Inf', 'Infinity')),
    ]),
  );
}

/** Only ours, without the buckets of histograms. */
async function ours(metrics: NodeMetrics): Promise<Record<string, number>> {
  return Object.fromEntries(
    [...(await scrape(metrics))].filter(
      ([name]) => name.startsWith('nodelease_') && !name.includes('_bucket'),
    ),
  );
}

function watched({ nodes = 1 } = {}) {
  const clock = new VirtualClock();
  const monitor = new NodeMonitor();
  const metrics = new NodeMetrics({ monitor, clock });
  open.push(metrics);
  const network = { isDown: false };
  const bucket = new MemoryBucket(clock, 1);
  const direct = new MemoryLeaseStore({ clock }, bucket);
  const store = direct.connect(async (_call, apply) => {
    if (network.isDown) throw new StoreError('no answer', { fault: 'unreachable', outcome: 'unknown' });
    return apply();
  });
  const settings = { clock, random: seededRandom(1), nodes, durationMs: DURATION, graceMs: 1_000 };
  const acquire = async () => {
    const lease = await acquireLease({ ...settings, store, taskId: 'task', onEvent: monitor.onLeaseEvent });
    monitor.hold(lease);
    await clock.advance(500);
    return lease;
  };
  return {
    clock,
    monitor,
    metrics,
    network,
    bucket,
    acquire,
    settings,
    direct,
    session: new StoreSession(direct, clock, 1_000),
  };
}

afterEach(() => {
  for (const metrics of open.splice(0)) metrics.close();
});

describe('the metrics of a node id', () => {
  it('are there before anything has happened: counters with 0 for every label, and no value where there is none', async () => {
    const { metrics } = watched();
    const text = await ours(metrics);
    expect(text).toMatchObject({
      'nodelease_lease_state{state="acquiring"}': 1,
      'nodelease_lease_state{state="held"}': 0,
      nodelease_lease_held: 0,
      nodelease_ready: 0,
      nodelease_lease_retiring: 0,
      nodelease_lease_remaining_seconds: 0,
      'nodelease_lease_renewals_total{outcome="renewed"}': 0,
      'nodelease_lease_renewals_total{outcome="failed"}': 0,
      'nodelease_lease_losses_total{reason="unreachable"}': 0,
      'nodelease_lease_losses_total{reason="denied"}': 0,
      'nodelease_lease_losses_total{reason="taken"}': 0,
      'nodelease_lease_losses_total{reason="paused"}': 0,
      'nodelease_lease_releases_total{outcome="released"}': 0,
      'nodelease_store_failures_total{during="renew"}': 0,
      nodelease_lease_takeovers_total: 0,
      nodelease_ids_issued_total: 0,
      nodelease_discovery_degradations_total: 0,
    });
    for (const name of ['node_id', 'version', 'acquisition_requests', 'acquired_timestamp_seconds']) {
      expect(Object.keys(text)).not.toContain(`nodelease_lease_${name}`);
    }
    expect(Object.keys(text).join()).not.toMatch(/clock_offset|discovery_state|discovery_ready/);
  });

  it('show the shards that a node runs, that are to move, and that have no owner, and how old the map is', async () => {
    const fleet = shardFleet({ count: 4 });
    const { lease } = await fleet.task({ stopMs: 60_000 });
    await fleet.untilAllRun();
    const monitor = new NodeMonitor();
    const metrics = new NodeMetrics({ monitor, clock: fleet.clock });
    open.push(metrics);
    expect(Object.keys(await ours(metrics)).join()).not.toContain('shards');
    monitor.hold(lease);
    await fleet.clock.advance(2_000);
    const before = await ours(metrics);
    expect(before).toMatchObject({ nodelease_shards_owned: 4, nodelease_shards_moving: 0 });
    expect(before).toMatchObject({ nodelease_shards_orphaned: 0 });
    await fleet.clock.advance(2_000);
    const age = 'nodelease_shards_epoch_age_seconds';
    expect((await ours(metrics))[age]).toBeCloseTo((before[age] ?? 0) + 2, 3);
    await fleet.task();
    await fleet.clock.advance(30_000);
    expect(await ours(metrics)).toMatchObject({ nodelease_shards_owned: 2, nodelease_shards_moving: 2 });
    fleet.bucket.remove(SHARDS_KEY);
    const { epoch } = fleet.tasks[0]?.shards ?? { epoch: 0 };
    const none = { ...ownerless(epoch + 1, 4), frozen: true };
    fleet.bucket.create(SHARDS_KEY, encodeMap(none), {});
    await fleet.clock.advance(6_000);
    expect(await ours(metrics)).toMatchObject({ nodelease_shards_owned: 0, nodelease_shards_orphaned: 4 });
  });

  it('show the shards that do not start on a node, and how many starts have failed', async () => {
    const fleet = shardFleet({ count: 2 });
    const start = () => Promise.reject(new Error('disk full'));
    const { lease } = await fleet.task({ start });
    const monitor = new NodeMonitor();
    const metrics = new NodeMetrics({ monitor, clock: fleet.clock });
    open.push(metrics);
    monitor.hold(lease);
    await fleet.clock.advance(4_000);
    const figures = await ours(metrics);
    expect(figures).toMatchObject({ nodelease_shards_owned: 0, nodelease_shards_failing: 2 });
    expect(figures.nodelease_shards_failed_starts).toBe(4);
  });

  it('say which version of the package it is', async () => {
    const { version } = JSON.parse(
      await readFile(new URL('../../../package.json', import.meta.url), 'utf8'),
    ) as { version: string };
    expect(await ours(watched().metrics)).toMatchObject({
      [`nodelease_build_info{version="${version}"}`]: 1,
    });
  });

  it('show a held lease, and the time to its deadline at the moment of the scrape', async () => {
    const { clock, metrics, acquire } = watched();
    await acquire();
    expect(await ours(metrics)).toMatchObject({
      ...{
        'nodelease_lease_state{state="acquiring"}': 0,
        'nodelease_lease_state{state="held"}': 1,
        nodelease_lease_held: 1,
      },
      ...{
        nodelease_ready: 1,
        nodelease_lease_node_id: 0,
        nodelease_lease_version: 1,
        nodelease_lease_remaining_seconds: 14.5,
      },
      nodelease_lease_acquired_timestamp_seconds: clock.wallOffset / 1_000,
    });
    expect((await ours(metrics)).nodelease_lease_acquisition_requests).toBeGreaterThan(1);
    clock.freeze(3_000);
    expect(await ours(metrics)).toMatchObject({ nodelease_lease_remaining_seconds: 11.5 });
    clock.freeze(DURATION);
    expect(await ours(metrics)).toMatchObject({
      ...{
        nodelease_lease_remaining_seconds: 0,
        nodelease_lease_held: 0,
        nodelease_ready: 0,
        'nodelease_lease_state{state="lost"}': 1,
      },
    });
  });

  it('count renewals and their durations, and attempts that failed', async () => {
    const { clock, metrics, network, acquire } = watched();
    const lease = await acquire();
    await clock.advance(10_000);
    expect(await ours(metrics)).toMatchObject({
      'nodelease_lease_renewals_total{outcome="renewed"}': 2,
      'nodelease_lease_renewals_total{outcome="failed"}': 0,
      nodelease_lease_renewal_duration_seconds_count: 2,
    });
    network.isDown = true;
    await clock.advance(6_000);
    network.isDown = false;
    await clock.advance(4_000);
    expect(lease.isValid()).toBe(true);
    const text = await ours(metrics);
    const failed = text['nodelease_lease_renewals_total{outcome="failed"}'] as number;
    expect(failed).toBeGreaterThan(0);
    expect(text).toMatchObject({
      'nodelease_store_failures_total{during="renew"}': failed,
      'nodelease_store_failures_total{during="acquire"}': 0,
      nodelease_lease_renewal_duration_seconds_count:
        text['nodelease_lease_renewals_total{outcome="renewed"}'],
    });
    expect(text.nodelease_lease_renewal_duration_seconds_sum).toBeGreaterThan(0.5);
  });

  it('count a loss once, with its reason', async () => {
    const { clock, metrics, session, acquire } = watched();
    await acquire();
    await evictHolder(session, 0);
    await clock.advance(DURATION);
    expect(await ours(metrics)).toMatchObject({
      ...{
        'nodelease_lease_losses_total{reason="taken"}': 1,
        'nodelease_lease_losses_total{reason="unreachable"}': 0,
      },
      ...{
        'nodelease_lease_state{state="lost"}': 1,
        nodelease_lease_held: 0,
        nodelease_lease_node_id: 0,
        nodelease_lease_version: 1,
      },
    });
  });

  it('show that the node id that is held is being retired, and that no work may be sent here any more', async () => {
    const { clock, metrics, bucket, settings, direct, acquire } = watched({ nodes: 2 });
    await acquireLease({ ...settings, store: direct, taskId: 'first' });
    const lease = await acquire();
    expect(await ours(metrics)).toMatchObject({ nodelease_lease_retiring: 0, nodelease_ready: 1 });
    shrinkSettings(bucket, 1);
    await clock.advance(DURATION);
    expect(await ours(metrics)).toMatchObject({
      nodelease_lease_retiring: 1,
      nodelease_ready: 0,
      nodelease_lease_held: 1,
    });
    await lease.release();
    expect(await ours(metrics)).toMatchObject({
      nodelease_lease_retiring: 0,
      nodelease_ready: 0,
      nodelease_lease_held: 0,
    });
  });

  it('count a take-over of an expired lease, and the waits before it', async () => {
    const { clock, metrics, acquire, direct, settings } = watched();
    const gone = direct.connect(async (call, apply) =>
      call.operation === 'replace' && clock.monotonic() > 100 ? new Promise(() => {}) : apply(),
    );
    await acquireLease({ ...settings, store: gone, taskId: 'killed' });
    await clock.advance(200);
    const waiting = acquire();
    await clock.advance(3 * DURATION);
    await waiting;
    const text = await ours(metrics);
    expect(text).toMatchObject({ nodelease_lease_takeovers_total: 1, nodelease_lease_version: 2 });
    expect(text.nodelease_lease_acquisition_waits_total).toBeGreaterThan(0);
    expect(text.nodelease_lease_acquisition_duration_seconds).toBeGreaterThan(DURATION / 1_000);
  });

  it('count a release, and one that failed', async () => {
    const first = watched();
    await (await first.acquire()).release();
    expect(await ours(first.metrics)).toMatchObject({
      ...{
        'nodelease_lease_releases_total{outcome="released"}': 1,
        'nodelease_lease_state{state="released"}': 1,
        nodelease_lease_held: 0,
      },
    });
    const second = watched();
    const lease = await second.acquire();
    second.network.isDown = true;
    const releasing = lease.release();
    await second.clock.advance(10_000);
    await releasing;
    expect(await ours(second.metrics)).toMatchObject({
      ...{
        'nodelease_lease_releases_total{outcome="failed"}': 1,
        'nodelease_lease_releases_total{outcome="released"}': 0,
      },
      'nodelease_store_failures_total{during="release"}': 1,
    });
  });

  it("show how far the store's clock is ahead of this host's, while the lease is held", async () => {
    const { clock, metrics, acquire } = watched();
    const lease = await acquire();
    clock.wallOffset -= 90_000;
    expect((await ours(metrics)).nodelease_store_clock_offset_seconds).toBeCloseTo(90, 1);
    await lease.release();
    expect(Object.keys(await ours(metrics))).not.toContain('nodelease_store_clock_offset_seconds');
  });

  it('count the unique ids that were made, also where they are made in runs', async () => {
    const { clock, metrics, acquire } = watched();
    const lease = await acquire();
    const preparing = uniqueIds(lease);
    await clock.advance(100);
    const ids = await preparing;
    expect(await ours(metrics)).toMatchObject({ nodelease_ids_issued_total: 0 });
    ids.next();
    ids.fill(new BigUint64Array(100));
    expect(await ours(metrics)).toMatchObject({ nodelease_ids_issued_total: 101 });
    await clock.advance(4_000);
    for (let i = 0; i < 1_000; i += 1) ids.next();
    expect(await ours(metrics)).toMatchObject({ nodelease_ids_issued_total: 1_101 });
    await lease.release();
    expect(await ours(metrics)).toMatchObject({ nodelease_ids_issued_total: 1_101 });
  });

  it('show no lease of a process that stops before it acquires one', async () => {
    const { monitor, metrics } = watched();
    monitor.stopping();
    expect(await ours(metrics)).toMatchObject({
      'nodelease_lease_state{state="stopping"}': 1,
      nodelease_lease_held: 0,
      nodelease_lease_remaining_seconds: 0,
    });
  });

  it('know a fixed node id, which is valid for ever', async () => {
    const { metrics, monitor } = watched();
    monitor.hold(staticLease({ id: 7, taskId: 'web-7' }));
    expect(await ours(metrics)).toMatchObject({
      ...{
        nodelease_lease_held: 1,
        nodelease_lease_node_id: 7,
        nodelease_lease_remaining_seconds: Number.POSITIVE_INFINITY,
      },
    });
  });

  it('cover discovery where there is one', async () => {
    const { metrics, monitor } = watched();
    const discovery = { isReady: false, state: { status: 'degraded', problem: 'away' } };
    monitor.hold(staticLease({ id: 7, taskId: 'web-7' }), discovery as Discovery);
    monitor.onDiscoveryEvent({ type: 'degraded', problem: 'away' });
    expect(await ours(metrics)).toMatchObject({
      ...{
        'nodelease_discovery_state{state="ok"}': 0,
        'nodelease_discovery_state{state="degraded"}': 1,
        nodelease_discovery_ready: 0,
      },
      ...{ nodelease_discovery_degradations_total: 1, nodelease_lease_held: 1, nodelease_ready: 0 },
    });
    monitor.onDiscoveryEvent({
      type: 'ready',
      readiness: { ready: true, why: 'known', ignorant: [], tookMs: 250 },
    });
    discovery.isReady = true;
    discovery.state = { status: 'synced', problem: '' };
    expect(await ours(metrics)).toMatchObject({
      ...{
        'nodelease_discovery_state{state="ok"}': 1,
        'nodelease_discovery_state{state="degraded"}': 0,
        nodelease_discovery_ready: 1,
      },
      ...{ nodelease_discovery_ready_duration_seconds: 0.25, nodelease_ready: 1 },
    });
  });

  it('go into your own registry with your metrics, without the metrics of the process', async () => {
    const registry = new Registry();
    registry.setDefaultLabels({ service: 'orders' });
    new Counter({ name: 'orders_total', help: 'Orders.', registers: [registry] }).inc();
    const metrics = new NodeMetrics({ monitor: new NodeMonitor(), clock: new VirtualClock(), registry });
    open.push(metrics);
    const names = [...(await scrape(metrics)).keys()];
    expect(names).toContain('orders_total{service="orders"}');
    expect(names).toContain('nodelease_lease_held{service="orders"}');
    expect(names.filter((name) => /^(nodejs|process)_/.test(name))).toEqual([]);
    expect(await registry.metrics()).toBe(await metrics.text());
  });

  it('count nothing any more once they are closed', async () => {
    const { metrics, acquire } = watched();
    metrics.close();
    await acquire();
    expect((await ours(metrics)).nodelease_lease_acquisition_requests).toBeUndefined();
  });

  it('measure the event loop once, however many of them are made: that cannot be ended', () => {
    const measure = vi.spyOn(performance, 'monitorEventLoopDelay');
    const observe = vi.spyOn(performance.PerformanceObserver.prototype, 'observe');
    for (let i = 0; i < 50; i += 1)
      new NodeMetrics({ monitor: new NodeMonitor(), clock: new VirtualClock() }).close();
    expect(measure.mock.calls.length).toBeLessThanOrEqual(1);
    expect(observe.mock.calls.length).toBeLessThanOrEqual(1);
    vi.restoreAllMocks();
  });

  it('include the metrics of the process and its event loop, also in the second of two', async () => {
    const [, { metrics }] = [watched(), watched()];
    const names = [...(await scrape(metrics)).keys()].join('\n');
    for (const name of [
      'nodejs_eventloop_lag_max_seconds',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
    ])
      expect(names).toContain(name);
  });
});
