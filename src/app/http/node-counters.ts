import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../../core/base/clock.js';
import { issuedIds } from '../../core/id/lease-ids.js';
import type { LeaseEvent, LossReason } from '../../core/lease/model/lease.js';
import type { MonitorEvent, NodeMonitor } from '../../node/runtime/node-monitor.js';

const LOSS_REASONS: readonly LossReason[] = ['unreachable', 'denied', 'taken', 'paused'];

/** From a request within one's own region to one that was nearly given up, in seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Registers the metrics of what happens to a node id from now on. The returned function counts an event. */
export function nodeCounters(
  monitor: NodeMonitor,
  clock: Pick<Clock, 'now'>,
  registry: Registry,
): (event: MonitorEvent) => void {
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
  const renewals = labelled(
    'nodelease_lease_renewals_total',
    'Attempts to renew the lease, by outcome. One that failed is tried again until the lease has to be given up.',
    'outcome',
    ['renewed', 'failed'],
  );
  const renewalDuration: Histogram = new Histogram({
    name: 'nodelease_lease_renewal_duration_seconds',
    help: 'How long renewals took that came through, with all their attempts.',
    buckets: BUCKETS,
    registers,
  });
  const acquisitionDuration = absent(
    'nodelease_lease_acquisition_duration_seconds',
    'How long it took to acquire the node id, with all waiting. Absent before.',
  );
  const acquisitionRequests = absent(
    'nodelease_lease_acquisition_requests',
    'Requests that it took to acquire the node id. Absent before.',
  );
  const acquiredAt = absent(
    'nodelease_lease_acquired_timestamp_seconds',
    'When the node id was acquired, by the wall clock of this host, in seconds since the Unix epoch. Absent before.',
  );
  const takeovers = counter(
    'nodelease_lease_takeovers_total',
    'Node ids acquired by taking over a lease that had expired: its holder was killed, cut off or paused.',
  );
  const losses = labelled(
    'nodelease_lease_losses_total',
    'Leases lost against the will of this process, by reason.',
    'reason',
    LOSS_REASONS,
  );
  const releases = labelled(
    'nodelease_lease_releases_total',
    'Leases given back, by outcome. One that failed is left to expire.',
    'outcome',
    ['released', 'failed'],
  );
  const storeFailures = labelled(
    'nodelease_store_failures_total',
    'Requests to the store, or to ZooKeeper where it gives out the node ids, that failed; nearly all are tried again.',
    'during',
    ['acquire', 'renew', 'release'],
  );
  const waits = counter(
    'nodelease_lease_acquisition_waits_total',
    'Looks at the store that found no node id free.',
  );
  const degradations = counter(
    'nodelease_discovery_degradations_total',
    'How often the announcement in ZooKeeper has become degraded, or degraded in another way.',
  );
  const readyDuration = absent(
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

  const countLease = (event: LeaseEvent) => {
    switch (event.type) {
      case 'waiting':
        return waits.inc();
      case 'store-failed':
        return storeFailures.inc({ during: 'acquire' });
      case 'acquired':
        if (event.from === 'expired') takeovers.inc();
        acquisitionDuration.set(event.tookMs / 1_000);
        acquisitionRequests.set(event.requests);
        return acquiredAt.set(clock.now() / 1_000);
      case 'renewed':
        renewals.inc({ outcome: 'renewed' });
        return renewalDuration.observe(event.tookMs / 1_000);
      case 'renewal-failed':
        renewals.inc({ outcome: 'failed' });
        return storeFailures.inc({ during: 'renew' });
      case 'lost':
        return losses.inc({ reason: event.error.reason });
      case 'released':
        return releases.inc({ outcome: 'released' });
      case 'release-failed':
        releases.inc({ outcome: 'failed' });
        return storeFailures.inc({ during: 'release' });
    }
  };
  return (news) => {
    if (news.type === 'lease') countLease(news.event);
    if (news.type !== 'discovery') return;
    if (news.event.type === 'degraded') degradations.inc();
    if (news.event.type === 'ready') readyDuration.set(news.event.readiness.tookMs / 1_000);
  };
}
