import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Clock } from '../base/clock.js';
import type { MonitorEvent, NodeMonitor } from '../monitor/node-monitor.js';
import type { MetricsText } from './node-app.js';
import { NodeCounters } from './node-counters.js';
import { NodeGauges } from './node-gauges.js';

/** Whose metrics they are, and where they go. */
export interface NodeMetricsOptions {
  readonly monitor: NodeMonitor;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /**
   * Where the metrics go: one of your own, which you serve yourself, keeps its default labels and gets none of the process metrics, which it
   * has already or does not want.
   *
   * @default a registry of its own, with metrics of the process beside those of the lease
   */
  readonly registry?: Registry | undefined;
}

/**
 * The metrics of one process' node id, in the text format of Prometheus. `docs/metrics.md` lists them.
 *
 * Make it before the node id is acquired: counters count what happens from then on. Gauges tell what is true when they are asked, so that a
 * process which was paused reports at once that it holds nothing any more.
 *
 * ```ts
 * const monitor = new NodeMonitor();
 * const metrics = new NodeMetrics({ monitor, clock: systemClock });
 * await using lease = await acquire({ monitor });
 * ```
 */
export class NodeMetrics implements MetricsText {
  readonly #registry: Registry;
  readonly #forget: () => void;

  /** @throws Error when the registry has metrics of these names already: there is one `NodeMetrics` to a registry */
  constructor({ monitor, clock, registry }: NodeMetricsOptions) {
    this.#registry = registry ?? Registry.merge([processMetrics()]);
    new NodeGauges({ monitor, clock, registry: this.#registry });
    const counters = new NodeCounters({ monitor, clock, registry: this.#registry });
    this.#forget = monitor.onEvent((event: MonitorEvent) => counters.count(event));
  }

  /** That of the text format. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** What is true now. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Counts nothing any more. The metrics of the process are shared, and go on. */
  close(): void {
    this.#forget();
  }
}

/**
 * Gauges among prom-client's that are named like counters, which the official checker refuses; counting them walks through all handles at every
 * scrape.
 */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'] as const;

let collected: Registry | undefined;

/**
 * The usual metrics of this process, or thread: prom-client's default ones. Collected from the first call on, once however often it is called:
 * what measures the event loop and the garbage collection cannot be taken away again.
 *
 * What is NOT guaranteed: that each of several readers sees all of the event loop. Its delays are those since anybody read them last.
 */
export function processMetrics(): Registry {
  if (collected === undefined) {
    collected = new Registry();
    collectDefaultMetrics({ register: collected });
    for (const name of MISNAMED) collected.removeSingleMetric(name);
  }
  return collected;
}
