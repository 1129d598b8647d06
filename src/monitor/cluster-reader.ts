import type { Clock } from '../base/clock.js';
import { concurrently } from '../base/concurrently.js';
import { CLUSTER_KEY, type ClusterConfig } from '../lease/model/cluster-config.js';
import { refuseForeign } from '../lease/model/foreign-cluster.js';
import { nativeCodec } from '../lease/model/lease-codec.js';
import { leaseKey, revived } from '../lease/model/lease-state.js';
import { type LeaseReading, type NodeStatus, nodeStatus, readingOf, SharedKnowledge } from '../lease/operate/inspect.js';
import { readCluster } from '../lease/session/cluster-store.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../lease/session/store-session.js';
import type { Interval, ListedObject } from '../store/lease-store.js';
import type { ClusterScan, ClusterSource } from './cluster-source.js';
import { type ListedCluster, listedCluster, problemOf } from './listed-cluster.js';
import { reportHead } from './status-report.js';

/** Maximum number of objects that are read again in one scan. */
const READS_A_LOOK = 100;
/** Reads under way at once. */
const READS = 16;
/** Maximum number of ids beyond the cluster's size that are read. */
const MOST_DRAINING = 100;

/** What is known of one lease object. */
interface Known {
  readonly reading: LeaseReading;
  /** Of the state that was read; undefined for an absent one. */
  readonly etag: string | undefined;
  /** How old that state was when it was read, and when that was, on the monotonic clock; the age is undefined for an absent one. */
  readonly age: Interval | undefined;
  readonly readAt: number;
}

/** The rows of a LIST that are about leases, by their ids, and when it was made, on the monotonic clock. */
interface Leases {
  readonly rows: ReadonlyMap<number, ListedObject>;
  readonly at: number;
}

/** How far the reading of lease objects in one scan has come. */
export interface ReadProgress {
  readonly done: number;
  readonly of: number;
}

/** What a {@link ClusterReader} is to read. */
export interface ClusterReaderOptions {
  /** The node ids that are of interest, in ascending order; what it throws, the scan throws. @default all of them */
  readonly choose?: ((hints: ListedCluster) => readonly number[]) | undefined;
  /** Called for each lease object that was read. Must not throw. */
  readonly onProgress?: ((progress: ReadProgress) => void) | undefined;
}

/**
 * Scans a cluster in a store repeatedly, as cheaply as possible: a scan is one LIST, of as many pages as it takes, and one
 * GET for each object that was written since it was read.
 *
 * The first scan reads all objects. Each further one reads at most a hundred of them: first those that may have changed hands, then those
 * whose reading is the oldest. The others that were written count as renewed, at the age that the LIST tells, until their turn comes.
 *
 * Ids beyond the cluster's size that seem to be held are read once, a hundred of them at most.
 */
export class ClusterReader implements ClusterSource {
  latencyMs: number | null = null;
  readonly #known = new Map<number, Known>();
  #listing: Leases = { rows: new Map(), at: 0 };
  #cluster: { readonly config: ClusterConfig; readonly etag: string } | undefined;
  readonly #knowledge = new SharedKnowledge();

  constructor(
    private readonly session: StoreSession,
    private readonly clock: Clock,
    private readonly options: ClusterReaderOptions = {},
  ) {}

  async look(signal: AbortSignal): Promise<ClusterScan> {
    const begun = this.clock.monotonic();
    const { objects } = await this.session.list({ signal, timeoutMs: Math.max(UNHURRIED_LISTING_MS, this.session.listTimeoutMs) });
    const listedAt = this.clock.monotonic();
    this.latencyMs = listedAt - begun;
    const cluster = await this.#readCluster(
      objects.find(({ key }) => key === CLUSTER_KEY),
      signal,
    );
    if (cluster === undefined) {
      await refuseForeign(this.session, objects, { signal });
      return this.#nothing();
    }

    const hints = listedCluster(objects, cluster);
    const listing = { rows: hints.rows, at: listedAt };
    const ids = this.options.choose?.(hints) ?? Array.from({ length: cluster.size }, (_, id) => id);
    const draining = hints.draining.slice(0, MOST_DRAINING);
    this.#forgetAllBut(ids, draining);
    const toRead = [...this.#toRead(ids, listing, cluster.bootstrapped), ...draining.filter((id) => !this.#isKnownHeld(id))];
    let done = 0;
    const read = async (id: number, own: AbortSignal) => {
      await this.#read(id, own);
      done += 1;
      this.options.onProgress?.({ done, of: toRead.length });
    };
    await concurrently(toRead, READS, read, signal);
    this.#listing = listing;

    const justRead = new Set(toRead);
    const now = this.clock.monotonic();
    const statusOf = (id: number) => this.#status(id, justRead.has(id), cluster, now);
    const nodes = ids.map(statusOf);
    const stillHeld = draining.map(statusOf).filter(({ state }) => state === 'held');
    return {
      nodes,
      hints,
      draining: stillHeld,
      gone: [],
      size: cluster.size,
      problemOf: (node) => problemOf(node, cluster),
      head: (discovery) => reportHead(this.session.store.url, { cluster, draining: stillHeld }, discovery),
    };
  }

  clockOffsetMs(): readonly [min: number, max: number] | null {
    const { min, max } = this.session.storeNow();
    const now = this.clock.now();
    return Number.isFinite(max) ? [Math.floor(min - now), Math.ceil(max - now)] : null;
  }

  /** The settings: read again only when they were written. */
  async #readCluster(row: ListedObject | undefined, signal: AbortSignal): Promise<ClusterConfig | undefined> {
    if (row !== undefined && row.etag === this.#cluster?.etag) return this.#cluster.config;
    this.#cluster = await readCluster(this.session, { signal });
    return this.#cluster?.config;
  }

  #nothing(): ClusterScan {
    this.#known.clear();
    this.#listing = { rows: new Map(), at: this.clock.monotonic() };
    return {
      nodes: [],
      gone: [],
      size: undefined,
      problemOf: () => undefined,
      head: (discovery) => reportHead(this.session.store.url, undefined, discovery),
    };
  }

  #forgetAllBut(ids: readonly number[], draining: readonly number[]): void {
    const wanted = new Set([...ids, ...draining]);
    for (const id of this.#known.keys()) if (!wanted.has(id)) this.#known.delete(id);
  }

  #isKnownHeld(id: number): boolean {
    const reading = this.#known.get(id)?.reading;
    return reading?.kind === 'lease' && reading.lease.kind === 'held';
  }

  /** The ids whose objects are to be read in this scan. */
  #toRead(ids: readonly number[], listing: Leases, bootstrapped: boolean): number[] {
    const unread: number[] = [];
    const urgent: number[] = [];
    const changed: number[] = [];
    for (const id of ids) {
      const row = listing.rows.get(id);
      const known = this.#known.get(id);
      // What is not there yet needs no request.
      if (known === undefined && row === undefined && !bootstrapped) this.#known.set(id, this.#absent());
      else if (known === undefined) unread.push(id);
      else if (known.etag !== row?.etag) (this.#mayHaveChangedHands(id, known, listing) ? urgent : changed).push(id);
    }
    const byReading = (a: number, b: number) => (this.#known.get(a)?.readAt ?? 0) - (this.#known.get(b)?.readAt ?? 0);
    return [...unread, ...[...urgent.sort(byReading), ...changed.sort(byReading)].slice(0, READS_A_LOOK)];
  }

  /** Whether a write was more than a renewal, as far as a LIST tells: the id was not held, it has a tombstone's size now, or the lease had run out. */
  #mayHaveChangedHands(id: number, { reading }: Known, listing: Leases): boolean {
    const row = listing.rows.get(id);
    if (row === undefined || reading.kind !== 'lease' || reading.lease.kind !== 'held') return true;
    if (row.size <= nativeCodec.tombstoneMaxBytes) return true;
    const before = this.#listing.rows.get(id);
    return before === undefined || before.age.max + listing.at - this.#listing.at > reading.lease.durationMs;
  }

  async #read(id: number, signal: AbortSignal): Promise<void> {
    const object = await this.session.read(leaseKey(id), { signal });
    const reading = readingOf(object, this.#knowledge);
    this.#known.set(id, { reading, etag: object?.etag, age: object?.age, readAt: this.clock.monotonic() });
  }

  #absent(): Known {
    return { reading: { kind: 'absent' }, etag: undefined, age: undefined, readAt: this.clock.monotonic() };
  }

  #status(id: number, isJustRead: boolean, { graceMs, generation }: ClusterConfig, now: number): NodeStatus {
    const { reading, age, readAt } = this.#known.get(id) ?? this.#absent();
    const row = this.#listing.rows.get(id);
    // What was read is newer than the LIST.
    const grown = isJustRead || row === undefined ? older(age, now - readAt) : older(row.age, now - this.#listing.at);
    const judged = reading.kind === 'lease' ? { ...reading, lease: revived(reading.lease, generation) } : reading;
    return nodeStatus(id, judged, grown, graceMs);
  }
}

function older(age: Interval | undefined, byMs: number): Interval | undefined {
  return age && { min: age.min + byMs, max: age.max + byMs };
}
