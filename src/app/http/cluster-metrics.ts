import { Gauge, Registry } from 'prom-client';
import type { ClusterView } from '../../node/monitor/cluster-view.js';
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
export class ClusterMetrics implements MetricsText {
  readonly #registry = new Registry();
  readonly #nodeIds = this.#gauge(
    'nodelease_cluster_node_ids',
    'How many node ids are in that state.',
    'state',
  );
  readonly #version = this.#gauge(
    'nodelease_cluster_version',
    'The highest version of a node id so far.',
    'node_id',
  );
  readonly #remaining = this.#gauge(
    'nodelease_cluster_lease_remaining_seconds',
    'How much longer a lease is valid by the store’s time unless it is renewed; below 0 once it is overdue. Absent without a holder.',
    'node_id',
  );
  readonly #knownSince = this.#gauge(
    'nodelease_cluster_history_known_since_seconds',
    'From when on the history of a node id has every tenure, in seconds since the Unix epoch by the store’s time: 0 where none was forgotten. Absent where nothing is known.',
    'node_id',
  );
  readonly #offset = this.#gauge(
    'nodelease_cluster_holder_clock_offset_seconds',
    'How far the clock of a holder seems to be ahead of the other holders’. Of Camunda’s clusters only.',
    'node_id',
  );
  readonly #up = this.#gauge(
    'nodelease_cluster_up',
    'Whether the last scan of the cluster has succeeded: 1 or 0.',
  );

  /** @param cluster what is looked at; the caller closes it */
  constructor(private readonly cluster: () => Promise<ClusterView>) {}

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** @throws {StoreError} or {ZooKeeperError} while the cluster has never been read */
  async text(): Promise<string> {
    const view = await this.cluster();
    const {
      report: { nodes },
      store,
    } = await view.snapshot();
    this.#up.set(store.state === 'ok' ? 1 : 0);
    for (const state of STATES)
      this.#nodeIds.set({ state }, nodes.filter((node) => node.state === state).length);
    for (const gauge of [this.#version, this.#remaining, this.#knownSince, this.#offset]) gauge.reset();
    const single = nodes.length > MAX_SERIES ? [] : nodes;
    for (const { id, knownSince } of view.tenures(new Set(single.map((node) => node.id))))
      if (knownSince !== null) this.#knownSince.set({ node_id: String(id) }, knownSince / 1_000);
    for (const { id, version, expiresInMs, camunda } of single) {
      const labels = { node_id: String(id) };
      this.#version.set(labels, version);
      if (expiresInMs !== null) this.#remaining.set(labels, expiresInMs / 1_000);
      if (camunda && camunda.clockOffsetMs !== null) this.#offset.set(labels, camunda.clockOffsetMs / 1_000);
    }
    return this.#registry.metrics();
  }

  #gauge(name: string, help: string, ...labelNames: string[]): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }
}
