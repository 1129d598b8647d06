import { readFileSync } from 'node:fs';
import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../base/clock.js';
import type { NodeHealth, NodeMonitor, NodePhase } from '../monitor/node-monitor.js';

interface NodeGaugesOptions {
  readonly monitor: NodeMonitor;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly registry: Registry;
}

const STATES = ['acquiring', 'held', 'stopping', 'released', 'lost', 'failed'] as const satisfies NodePhase[];
const DISCOVERY_STATES = ['ok', 'degraded'] as const;

/** What is true of a node id at the time of the scrape. */
export class NodeGauges {
  readonly #monitor: NodeMonitor;
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly #registry: Registry;

  constructor({ monitor, clock, registry }: NodeGaugesOptions) {
    this.#monitor = monitor;
    this.#clock = clock;
    this.#registry = registry;
    const health = () => monitor.health();
    this.#states(
      'nodelease_lease_state',
      'How far this process has got with its node id: 1 for the state that it is in.',
      STATES,
      () => health().state,
    );
    this.#value('nodelease_lease_held', 'Whether this process holds a node id that is valid right now: 1 or 0.', () =>
      this.#isHeld(health()) ? 1 : 0,
    );
    this.#value('nodelease_ready', 'Whether work may be sent here: 1 or 0.', () => (health().ready ? 1 : 0));
    this.#value(
      'nodelease_lease_retiring',
      'Whether a node id is held that the cluster has no more, and that is to be given up: 1 or 0.',
      () => (health().retiring ? 1 : 0),
    );
    this.#value('nodelease_lease_node_id', 'The node id that is, or was, held. Absent before.', () => health().nodeId);
    this.#value(
      'nodelease_lease_version',
      'The fencing token of the tenure: greater at every new one of the same node id. Absent before.',
      () => health().version,
    );
    this.#value(
      'nodelease_lease_remaining_seconds',
      'How long the lease stays valid unless it is renewed: 0 where none is held, infinite for a fixed node id.',
      () => this.#remainingMs(health()) / 1_000,
    );
    this.#value(
      'nodelease_store_clock_offset_seconds',
      'How far the clock of the store is ahead of the wall clock of this host, at the least. Absent as long as nothing is known of it.',
      () => this.#offsetMs() / 1_000,
    );
    this.#states(
      'nodelease_discovery_state',
      'Whether the announcement stands in ZooKeeper: 1 for the state that it is in. Absent without ZooKeeper.',
      DISCOVERY_STATES,
      () => health().discovery?.state,
    );
    this.#value(
      'nodelease_discovery_ready',
      'Whether the other nodes know of this tenure, or do not have to: 1 or 0. Absent without ZooKeeper.',
      () => {
        const { discovery } = health();
        return discovery === null ? null : Number(discovery.ready);
      },
    );
    const info = new Gauge({
      name: 'nodelease_build_info',
      help: 'Which nodelease this is: always 1.',
      labelNames: ['version'],
      registers: [registry],
    });
    info.set({ version: packageVersion() }, 1);
  }

  /** A gauge that is asked at every scrape; null and NaN for none. */
  #value(name: string, help: string, ask: () => number | null): void {
    const gauge: Gauge = new Gauge({
      ...{ name, help, registers: [this.#registry] },
      collect: () => {
        const value = ask();
        if (value === null || Number.isNaN(value)) gauge.remove();
        else gauge.set(value);
      },
    });
  }

  #states(name: string, help: string, states: readonly string[], ask: () => string | undefined): void {
    const gauge: Gauge<'state'> = new Gauge({
      ...{ name, help, labelNames: ['state'], registers: [this.#registry] },
      collect: () => {
        const now = ask();
        for (const state of states) {
          if (now === undefined) gauge.remove({ state });
          else gauge.set({ state }, state === now ? 1 : 0);
        }
      },
    });
  }

  #isHeld({ state }: NodeHealth): boolean {
    return state === 'held' || state === 'stopping';
  }

  #remainingMs(health: NodeHealth): number {
    if (!this.#isHeld(health)) return 0;
    return health.deadline === null ? Number.POSITIVE_INFINITY : Math.max(0, health.deadline - this.#clock.monotonic());
  }

  /** What has ended learns nothing any more: its clock would only drift away. */
  #offsetMs(): number {
    const time = this.#monitor.lease?.tenureTime;
    if (time === undefined || time.signal.aborted) return Number.NaN;
    const now = time.now();
    return now > 0 && Number.isFinite(now) ? now - this.#clock.now() : Number.NaN;
  }
}

function packageVersion(): string {
  const { version }: { version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}
