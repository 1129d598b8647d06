import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CAMUNDA_MARKER, camundaFree, camundaHeld } from '../../../test/support/camunda-objects.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { initializeCluster } from '../../core/lease/operate/initialize.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { ClusterFollower } from '../../node/monitor/cluster-follower.js';
import { clusterMetrics } from './cluster-metrics.js';

function scene() {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const store = new MemoryLeaseStore({ clock }, bucket);
  const session = new StoreSession(store, clock, 1_000);
  const follower = new ClusterFollower({ clock, random: seededRandom(1), session });
  const metrics = clusterMetrics(async () => follower);
  const scrape = async () => {
    const text = metrics.text();
    await clock.advance(10);
    return text;
  };
  return { clock, bucket, store, session, follower, scrape };
}

it('covers every node id of a cluster', async () => {
  const { clock, store, session, follower, scrape } = scene();
  const random = seededRandom(1);
  await initializeCluster({ session, clock, random, wanted: { nodes: 3, durationMs: 15_000 } });
  expect(await scrape()).toContain('nodelease_cluster_node_ids{state="vacant"} 3\n');
  const lease = await acquireLease({ store, clock, random, taskId: 'task', acquireTimeoutMs: 0 });
  await clock.advance(3_000);
  const text = await scrape();
  expect(text).toContain('nodelease_cluster_up 1\n');
  expect(text).toContain('nodelease_cluster_node_ids{state="held"} 1\n');
  expect(text).toContain(`nodelease_cluster_version{node_id="${lease.id}"} 1\n`);
  for (const id of [0, 1, 2])
    expect(text).toContain(`nodelease_cluster_history_known_since_seconds{node_id="${id}"} 0\n`);
  expect(text).toMatch(
    new RegExp(`nodelease_cluster_lease_remaining_seconds\\{node_id="${lease.id}"\\} 1[0-5]`),
  );
  expect(text).not.toContain('clock_offset_seconds{');
  await lease.release();
  await clock.advance(3_000);
  const later = await scrape();
  expect(later).toContain('nodelease_cluster_node_ids{state="released"} 1\n');
  expect(later).not.toContain('remaining_seconds{');
  const { id } = await acquireLease({ store, clock, random, taskId: 'task', acquireTimeoutMs: 0 });
  await evictHolder(session, id);
  await clock.advance(3_000);
  const last = await scrape();
  expect(last).toContain('nodelease_cluster_node_ids{state="evicted"} 1\n');
  expect(last).not.toContain('remaining_seconds{');
  await follower.close();
});

it('shows how far the holders’ clocks of a Camunda cluster are apart', async () => {
  const { clock, bucket, follower, scrape } = scene();
  const lease = (id: number, aheadMs: number) =>
    camundaHeld({ id, taskId: `task-${id}`, version: 2, timestamp: clock.now() + 15_000 + aheadMs });
  for (const { key, body, metadata } of [
    lease(0, 0),
    lease(1, 9_000),
    lease(2, 0),
    camundaFree(3),
    CAMUNDA_MARKER,
  ])
    bucket.create(key, body, metadata);
  const text = await scrape();
  expect(text).toContain('nodelease_cluster_node_ids{state="held"} 3\n');
  expect(text).toMatch(/nodelease_cluster_holder_clock_offset_seconds\{node_id="1"\} 9\n/);
  await follower.close();
});

it('is described in docs/operate/metrics.md: every metric with its type and labels', async () => {
  const { clock, bucket, follower, scrape } = scene();
  bucket.create('node-ids-initialized', '', {});
  const { key, body, metadata } = camundaHeld({
    id: 0,
    taskId: 'task',
    version: 2,
    timestamp: clock.now() + 15_000,
  });
  bucket.create(key, body, metadata);
  const types = [...(await scrape()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [
    name,
    type,
  ]);
  const docs = readFileSync(new URL('../../../docs/operate/metrics.md', import.meta.url), 'utf8');
  expect(
    [...docs.matchAll(/^\| `(nodelease_cluster_\w+)` \| (\w+) \|/gm)].map(([, name, type]) => [name, type]),
  ).toEqual(types);
  await follower.close();
});
