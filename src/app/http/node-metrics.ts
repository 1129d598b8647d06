import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { checked, having } from '../../core/base/arguments.js';
import type { Clock } from '../../core/base/clock.js';
import { systemClock } from '../../core/base/system.js';
import { VERSION } from '../../core/base/version.js';
import type { NodeMonitor } from '../../node/runtime/node-monitor.js';
import { SHARD_GAUGES } from '../../node/shards/shard-gauges.js';
import type { NodeHealth, NodePhase } from '../../node/wire/node-health.js';
import type { MetricsText } from './node-app.js';
import { nodeCounters } from './node-counters.js';

/** Settings of {@link NodeMetrics}. */
export interface NodeMetricsOptions {
  readonly monitor: NodeMonitor;
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /**
   * One of your own, which you serve yourself, keeps its default labels.
   * @default a new one, with the metrics of the process as well
   */
  readonly registry?: Registry | undefined;
}

/**
 * The metrics of one process' node id, in the text format of Prometheus. Make it before the node id is
 * acquired: counters count what happens from then on. Gauges are computed when they are read: a process
 * that was paused reports at once that it holds nothing any more.
 *
 * ```ts
 * const monitor = new NodeMonitor();
 * const metrics = new NodeMetrics({ monitor });
 * await using lease = await acquire({ monitor });
 * ```
 */
export class NodeMetrics implements MetricsText {
  readonly #registry: Registry;
  readonly #forget: () => void;

  /**
   * @throws Error when the registry has metrics of these names already: there is one `NodeMetrics` to a
   * registry
   */
  constructor(options: NodeMetricsOptions) {
    const {
      monitor,
      clock = systemClock,
      registry = Registry.merge([processMetrics()]),
    } = checked(options, {
      monitor: having('a NodeMonitor', 'health', 'onEvent'),
    });
    this.#registry = registry;
    registerGauges(monitor, clock, registry);
    this.#forget = monitor.onEvent(nodeCounters(monitor, clock, registry));
  }

  /** That of the text format. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** What is true now. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Counts nothing any more. The metrics of the process are shared, and continue. */
  close(): void {
    this.#forget();
  }
}

const STATES: readonly NodePhase[] = ['acquiring', 'held', 'stopping', 'released', 'lost', 'failed'];

/** Registers what is true of a node id at the time of the scrape. */
function registerGauges(monitor: NodeMonitor, clock: Pick<Clock, 'now' | 'monotonic'>, registry: Registry) {
  const registers = [registry];
  /** Null and NaN: the gauge has no value. */
  const value = (name: string, help: string, ask: (health: NodeHealth) => number | null) => {
    const collect = () => {
      const now = ask(monitor.health());
      if (now === null || Number.isNaN(now)) gauge.remove();
      else gauge.set(now);
    };
    const gauge: Gauge = new Gauge({ name, help, registers, collect });
  };
  const states = (
    name: string,
    help: string,
    all: readonly string[],
    ask: (health: NodeHealth) => string | undefined,
  ) => {
    const collect = () => {
      const now = ask(monitor.health());
      for (const state of all) {
        if (now === undefined) gauge.remove({ state });
        else gauge.set({ state }, state === now ? 1 : 0);
      }
    };
    const gauge = new Gauge({ name, help, labelNames: ['state'], registers, collect });
  };
  states(
    'nodelease_lease_state',
    'How far this process has got with its node id: 1 for the state that it is in.',
    STATES,
    ({ state }) => state,
  );
  value(
    'nodelease_lease_held',
    'Whether this process holds a node id that is valid right now: 1 or 0.',
    (health) => Number(isHeld(health)),
  );
  value('nodelease_ready', 'Whether work may be sent here: 1 or 0.', ({ ready }) => Number(ready));
  value(
    'nodelease_lease_retiring',
    'Whether a node id is held that the cluster has no more, and that is to be given up: 1 or 0.',
    ({ retiring }) => Number(retiring),
  );
  value(
    'nodelease_lease_node_id',
    'The node id that is, or was, held. Absent before.',
    ({ nodeId }) => nodeId,
  );
  value(
    'nodelease_lease_version',
    'The fencing token of the tenure: greater at every new one of the same node id. Absent before.',
    ({ version }) => version,
  );
  value(
    'nodelease_lease_remaining_seconds',
    'How long the lease stays valid unless it is renewed: 0 where none is held, infinite for a fixed node id.',
    (health) => remainingMs(health, clock) / 1_000,
  );
  value(
    'nodelease_store_clock_offset_seconds',
    'How far the clock of the store is ahead of the wall clock of this host, at the least. Absent as long as nothing is known of it.',
    () => offsetMs(monitor, clock) / 1_000,
  );
  states(
    'nodelease_discovery_state',
    'Whether the announcement stands in ZooKeeper: 1 for the state that it is in. Absent without ZooKeeper.',
    ['ok', 'degraded'],
    ({ discovery }) => discovery?.state,
  );
  value(
    'nodelease_discovery_ready',
    'Whether the other nodes know of this tenure, or do not have to: 1 or 0. Absent without ZooKeeper.',
    ({ discovery }) => discovery && Number(discovery.ready),
  );
  for (const [name, help] of Object.entries(SHARD_GAUGES))
    value(
      name,
      `${help} Absent where the node takes part in no shards.`,
      () => monitor.lease?.home?.work?.gauges?.()[name] ?? null,
    );
  const info = new Gauge({
    name: 'nodelease_build_info',
    help: 'Which nodelease this is: always 1.',
    labelNames: ['version'],
    registers,
  });
  info.set({ version: VERSION }, 1);
}

function isHeld({ state, nodeId }: NodeHealth) {
  return state === 'held' || (state === 'stopping' && nodeId !== null);
}

function remainingMs(health: NodeHealth, clock: Pick<Clock, 'monotonic'>) {
  if (!isHeld(health)) return 0;
  return health.deadline === null
    ? Number.POSITIVE_INFINITY
    : Math.max(0, health.deadline - clock.monotonic());
}

/** What has ended learns nothing any more: its clock would only drift away. */
function offsetMs(monitor: NodeMonitor, clock: Pick<Clock, 'now'>) {
  const time = monitor.lease?.tenureTime;
  if (time === undefined || time.signal.aborted) return Number.NaN;
  const now = time.now();
  return now > 0 && Number.isFinite(now) ? now - clock.now() : Number.NaN;
}

/**
 * Gauges of prom-client that are named like counters, which the official checker refuses; counting them walks
 * through all handles each time.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

let collected: Registry | undefined;

/**
 * prom-client's default metrics of this process, or thread, collected once from the first call on: what
 * measures the event loop and the garbage collection cannot be removed. With several readers the delays of
 * the event loop are those since the last reading of any.
 */
function processMetrics() {
  if (collected) return collected;
  collected = new Registry();
  collectDefaultMetrics({ register: collected });
  for (const name of MISNAMED) collected.removeSingleMetric(name);
  return collected;
}
