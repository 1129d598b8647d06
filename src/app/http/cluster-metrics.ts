import { Gauge, Registry } from 'prom-client';
import type { ClusterView } from '../../node/monitor/cluster-follower.js';
import type { NodeReport } from '../../node/wire/status-report.js';
import type { MetricsText } from './node-app.js';

/** With more node ids than this, there are no time series per node id: only the number in each state. */
const MAX_SERIES = 1_000;
const STATES: readonly NodeReport['state'][] = [
  'held',
  'expired',
  'vacant',
  'released',
  'evicted',
  'retired',
  'absent',
  'unreadable',
];

/**
 * The metrics of a cluster that is looked at, in the text format of Prometheus. A scrape scans the cluster
 * unless that has just been done.
 */
export function clusterMetrics(cluster: () => Promise<ClusterView>): MetricsText {
  const registry = new Registry();
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const nodeIds = gauge('nodelease_cluster_node_ids', 'How many node ids are in that state.', 'state');
  const highest = gauge('nodelease_cluster_version', 'The highest version of a node id so far.', 'node_id');
  const remaining = gauge(
    'nodelease_cluster_lease_remaining_seconds',
    'How much longer a lease is valid by the store’s time unless it is renewed; below 0 once it is overdue. Absent without a holder.',
    'node_id',
  );
  const known = gauge(
    'nodelease_cluster_history_known_since_seconds',
    'From when on the history of a node id has every tenure, in seconds since the Unix epoch by the store’s time: 0 where none was forgotten. Absent where nothing is known.',
    'node_id',
  );
  const offset = gauge(
    'nodelease_cluster_holder_clock_offset_seconds',
    'How far the clock of a holder seems to be ahead of the other holders’. Of Camunda’s clusters only.',
    'node_id',
  );
  const up = gauge('nodelease_cluster_up', 'Whether the last scan of the cluster has succeeded: 1 or 0.');
  const text = async () => {
    const view = await cluster();
    const {
      report: { nodes },
      store,
    } = await view.snapshot();
    up.set(store.state === 'ok' ? 1 : 0);
    for (const state of STATES) nodeIds.set({ state }, nodes.filter((node) => node.state === state).length);
    for (const each of [highest, remaining, known, offset]) each.reset();
    const single = nodes.length > MAX_SERIES ? [] : nodes;
    for (const { id, knownSince } of view.tenures(new Set(single.map((node) => node.id))))
      if (knownSince !== null) known.set({ node_id: String(id) }, knownSince / 1_000);
    for (const { id, version, taskId, expiresInMs, camunda } of single) {
      const labels = { node_id: String(id) };
      highest.set(labels, version);
      // Of an evicted one, it says until when it is not free.
      if (taskId !== null && expiresInMs !== null) remaining.set(labels, expiresInMs / 1_000);
      if (camunda && camunda.clockOffsetMs !== null) offset.set(labels, camunda.clockOffsetMs / 1_000);
    }
    return registry.metrics();
  };
  return { contentType: registry.contentType, text };
}
