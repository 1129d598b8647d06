import type { Clock } from '../../core/base/clock.js';
import { explain } from '../../core/base/errors.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import { type ClusterEvent, type ShardsReport, UNKNOWN_STORE } from '../wire/cluster-snapshot.js';
import type { DiscoveryStatusReport, StatusReport } from '../wire/status-report.js';
import { type ClusterScan, older } from './cluster-reader.js';
import { leaseChanges } from './lease-changes.js';
import { problemOf, totalsOf } from './listed-cluster.js';
import { PAUSE_FACTOR } from './scan-loop.js';
import { nodeReport, reportOf, withWrongVersions } from './status-report.js';

/** A scan of the leases, and who owns which shard if that is followed. */
export interface LeaseScan extends ClusterScan {
  readonly shards?: ShardsReport | undefined;
}

/** Minimum time from the beginning of one scan to the beginning of the next, in milliseconds. */
const SCAN_MS = 1_000;
/**
 * The longest pause, in milliseconds: the first scan of a large cluster takes long, since it reads
 * everything, but later ones do not.
 */
const LONGEST_PAUSE_MS = 10_000;
/** How many events are kept. */
const EVENTS = 200;

/** A {@link ClusterEvent} without its number and time. */
type EventFacts = Pick<ClusterEvent, 'kind' | 'text'> & Partial<ClusterEvent>;

/** What scans of the leases show, one after the other: the last result, the health of the store, and events. */
export class LeaseScans {
  store = UNKNOWN_STORE;
  /** As long as they do not change, they are the same object. */
  shards: ShardsReport | undefined;
  /** Why the last failed scan failed. */
  failure: unknown;
  /** The last events, numbered from 1, the oldest first. Without new events it is the same object. */
  events: readonly ClusterEvent[] = [];
  /** The last successful scan, and when it ended on the monotonic clock. */
  #last: { readonly scan: LeaseScan; readonly at: number } | undefined;
  /** How many scans have failed in a row. */
  #failures = 0;

  constructor(
    private readonly read: (signal: AbortSignal) => Promise<LeaseScan>,
    private readonly clock: Clock,
  ) {}

  /** The leases as of the last successful scan; none before it. */
  get nodes(): readonly NodeStatus[] {
    return this.#last?.scan.nodes ?? [];
  }

  /** Scans once. @throws `signal.reason` */
  async scan(signal: AbortSignal): Promise<void> {
    try {
      const scan = await this.read(signal);
      signal.throwIfAborted();
      this.#succeed(scan);
    } catch (error) {
      signal.throwIfAborted();
      this.#fail(error);
    }
  }

  /** The pause after a scan that took so long, both in milliseconds. */
  pauseMs(tookMs: number): number {
    const pauseMs =
      this.#failures > 0
        ? SCAN_MS * 2 ** (this.#failures - 1)
        : Math.max(SCAN_MS - tookMs, PAUSE_FACTOR * tookMs);
    return Math.min(pauseMs, LONGEST_PAUSE_MS);
  }

  /**
   * The report at this moment; null before the first successful scan. The ages are current. A lease that can no
   * longer be read keeps its last age.
   */
  report(discovery: DiscoveryStatusReport | null): StatusReport | null {
    if (this.#last === undefined) return null;
    const { scan, at } = this.#last;
    const { nodes, hints, head } = scan;
    const sinceMs = this.store.state === 'ok' ? this.clock.monotonic() - at : 0;
    const reports = withWrongVersions(nodes).map((node) =>
      nodeReport({ ...node, age: older(node.age, sinceMs) }, problemOf(node, hints?.cluster)),
    );
    return reportOf({ ...head, nodes: reports, discovery, totals: hints ? totalsOf(nodes, hints) : null });
  }

  #succeed(scan: LeaseScan): void {
    const before = this.#last;
    const { latencyMs, clockOffsetMs, shards } = scan;
    const at = this.clock.monotonic();
    this.#last = { scan, at };
    this.#failures = 0;
    if (this.store.state === 'failing')
      this.#log([{ kind: 'store-ok', text: 'the node ids can be looked at again' }]);
    const since = this.store.lookedAt;
    if (before) this.#log(scanChanges(before.scan, scan, at - before.at), since);
    this.#log(scan.foreignChanges?.() ?? [], since);
    const isSame = shards?.epoch === this.shards?.epoch && shards?.problem === this.shards?.problem;
    if (!isSame) this.shards = shards;
    const lookedAt = this.clock.now();
    this.store = { state: 'ok', problem: null, latencyMs, clockOffsetMs, lookedAt };
  }

  /** The earlier result stays as it was. */
  #fail(error: unknown): void {
    const problem = explain(error);
    this.failure = error;
    this.#failures += 1;
    if (this.store.state !== 'failing')
      this.#log([{ kind: 'store-failed', text: `the node ids cannot be looked at: ${problem}` }]);
    this.store = { ...this.store, state: 'failing', problem };
  }

  /** @param since after which time they happened; null if it is unknown */
  #log(added: readonly EventFacts[], since: number | null = null): void {
    if (added.length === 0) return;
    const at = this.clock.now();
    const first = (this.events.at(-1)?.id ?? 0) + 1;
    const numbered = added.map(
      (each, index): ClusterEvent => ({
        nodeId: null,
        version: null,
        taskId: null,
        previousTaskId: null,
        ...each,
        id: first + index,
        at,
        since,
      }),
    );
    this.events = [...this.events, ...numbered].slice(-EVENTS);
  }
}

/** The changes of a cluster between two scans that are `sinceMs` milliseconds apart, as events. */
function scanChanges(before: ClusterScan, after: ClusterScan, sinceMs: number): EventFacts[] {
  const [was, is] = [before.hints?.cluster, after.hints?.cluster];
  const nodes = was || is ? after.nodes : [...after.nodes, ...withoutZnodes(before.nodes, after.nodes)];
  // Node ids from ZooKeeper alone have versions that grow by any amount.
  const countsVersions = !after.head.allocation;
  return [
    ...resized(was?.size, is?.size),
    ...leaseChanges(before.nodes, nodes, { countsVersions, sinceMs, before: was, after: is }),
  ];
}

/**
 * If ZooKeeper alone gives out the node ids, an id whose znode is gone has no holder, and keeps its version.
 */
function withoutZnodes(before: readonly NodeStatus[], after: readonly NodeStatus[]): NodeStatus[] {
  const present = new Set(after.map(({ id }) => id));
  const gone = before.filter(({ id }) => !present.has(id));
  return gone.map((node) => ({
    ...node,
    state: 'released',
    taskId: undefined,
    idWidth: undefined,
    problem: undefined,
  }));
}

function resized(before: number | undefined, size: number | undefined): EventFacts[] {
  if (before === undefined || before === size) return [];
  if (size === undefined)
    return [{ kind: 'resized', text: 'the cluster is gone: there are no node ids any more' }];
  return [{ kind: 'resized', text: `the cluster has ${size} node ids now, ${before} before` }];
}
