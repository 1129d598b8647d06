import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../base/clock.js';
import type { DiscoveryEvent } from '../discovery/discovery.js';
import { issuedIds } from '../id/lease-ids.js';
import type { LeaseEvent, LossReason } from '../lease/model/lease.js';
import type { MonitorEvent, NodeMonitor } from '../monitor/node-monitor.js';

interface NodeCountersOptions {
  readonly monitor: NodeMonitor;
  readonly clock: Pick<Clock, 'now'>;
  readonly registry: Registry;
}

const LOSS_REASONS = ['unreachable', 'taken', 'paused'] as const satisfies LossReason[];

/** From a request within one's own region to one that was nearly given up, in seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** What has happened to a node id since the process began. */
export class NodeCounters {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #renewals: Counter<'outcome'>;
  readonly #renewalDuration: Histogram;
  readonly #acquisitionDuration: Gauge;
  readonly #acquisitionRequests: Gauge;
  readonly #acquiredAt: Gauge;
  readonly #takeovers: Counter;
  readonly #losses: Counter<'reason'>;
  readonly #releases: Counter<'outcome'>;
  readonly #storeFailures: Counter<'during'>;
  readonly #waits: Counter;
  readonly #degradations: Counter;
  readonly #readyDuration: Gauge;

  constructor({ monitor, clock, registry }: NodeCountersOptions) {
    const registers = [registry];
    const counter = (name: string, help: string) => new Counter({ name, help, registers });
    /** Every label value is there from the start, with 0: a counter that begins with 1 has no increase. */
    const labelled = <L extends string>(name: string, help: string, label: L, values: readonly string[]) => {
      const made: Counter<L> = new Counter({ name, help, labelNames: [label], registers });
      for (const value of values) made.inc({ [label]: value } as Record<L, string>, 0);
      return made;
    };
    /** A gauge without a value: 0 would be one. */
    const absent = (name: string, help: string) => {
      const made: Gauge = new Gauge({ name, help, registers });
      made.remove();
      return made;
    };
    this.#clock = clock;
    this.#renewals = labelled(
      'nodelease_lease_renewals_total',
      'Attempts to renew the lease, by outcome. One that failed is tried again until the lease has to be given up.',
      'outcome',
      ['renewed', 'failed'],
    );
    this.#renewalDuration = new Histogram({
      name: 'nodelease_lease_renewal_duration_seconds',
      help: 'How long renewals took that came through, with all their attempts.',
      buckets: BUCKETS,
      registers,
    });
    this.#acquisitionDuration = absent(
      'nodelease_lease_acquisition_duration_seconds',
      'How long it took to acquire the node id, with all waiting. Absent before.',
    );
    this.#acquisitionRequests = absent(
      'nodelease_lease_acquisition_requests',
      'Requests that it took to acquire the node id. Absent before.',
    );
    this.#acquiredAt = absent(
      'nodelease_lease_acquired_timestamp_seconds',
      'When the node id was acquired, by the wall clock of this host, in seconds since the Unix epoch. Absent before.',
    );
    this.#takeovers = counter(
      'nodelease_lease_takeovers_total',
      'Node ids acquired by taking over a lease that had expired: its holder was killed, cut off or paused.',
    );
    this.#losses = labelled(
      'nodelease_lease_losses_total',
      'Leases lost against the will of this process, by reason.',
      'reason',
      LOSS_REASONS,
    );
    this.#releases = labelled(
      'nodelease_lease_releases_total',
      'Leases given back, by outcome. One that failed is left to expire.',
      'outcome',
      ['released', 'failed'],
    );
    this.#storeFailures = labelled(
      'nodelease_store_failures_total',
      'Requests to the store, or to ZooKeeper where it gives out the node ids, that failed; nearly all are tried again.',
      'during',
      ['acquire', 'renew', 'release'],
    );
    this.#waits = counter('nodelease_lease_acquisition_waits_total', 'Looks at the store that found no node id free.');
    this.#degradations = counter(
      'nodelease_discovery_degradations_total',
      'How often the announcement in ZooKeeper has become degraded, or degraded in another way.',
    );
    this.#readyDuration = absent(
      'nodelease_discovery_ready_duration_seconds',
      'How long it took until the other nodes knew of this tenure, or did not have to. Absent before, and without ZooKeeper.',
    );
    const issued: Counter = new Counter({
      name: 'nodelease_ids_issued_total',
      help: 'Unique ids made by the generator of the lease, uniqueIds().',
      registers,
      collect: () => {
        issued.reset();
        if (monitor.lease !== undefined) issued.inc(issuedIds(monitor.lease));
      },
    });
  }

  count(event: MonitorEvent): void {
    if (event.type === 'lease') this.#countLease(event.event);
    else if (event.type === 'discovery') this.#countDiscovery(event.event);
  }

  #countLease(event: LeaseEvent): void {
    switch (event.type) {
      case 'waiting':
        this.#waits.inc();
        break;
      case 'store-failed':
        this.#storeFailures.inc({ during: 'acquire' });
        break;
      case 'acquired':
        this.#acquisitionDuration.set(event.tookMs / 1_000);
        this.#acquisitionRequests.set(event.requests);
        this.#acquiredAt.set(this.#clock.now() / 1_000);
        if (event.from === 'expired') this.#takeovers.inc();
        break;
      case 'renewed':
        this.#renewals.inc({ outcome: 'renewed' });
        this.#renewalDuration.observe(event.tookMs / 1_000);
        break;
      case 'renewal-failed':
        this.#renewals.inc({ outcome: 'failed' });
        this.#storeFailures.inc({ during: 'renew' });
        break;
      case 'lost':
        this.#losses.inc({ reason: event.error.reason });
        break;
      case 'released':
        this.#releases.inc({ outcome: 'released' });
        break;
      case 'release-failed':
        this.#releases.inc({ outcome: 'failed' });
        this.#storeFailures.inc({ during: 'release' });
    }
  }

  #countDiscovery(event: DiscoveryEvent): void {
    if (event.type === 'degraded') this.#degradations.inc();
    else if (event.type === 'ready') this.#readyDuration.set(event.readiness.tookMs / 1_000);
  }
}
