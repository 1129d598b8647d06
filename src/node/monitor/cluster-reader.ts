import type { Clock } from '../../core/base/clock.js';
import { concurrently, REQUESTS_AT_ONCE } from '../../core/base/concurrently.js';
import { CLUSTER_KEY, type ClusterConfig } from '../../core/lease/model/cluster-config.js';
import { findForeign, markedCluster } from '../../core/lease/model/foreign-cluster.js';
import type { ForeignFormat } from '../../core/lease/model/foreign-format.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import { leaseKey, mayExceed } from '../../core/lease/model/lease-state.js';
import {
  type LeaseReading,
  nodeStatus,
  readingOf,
  SharedKnowledge,
} from '../../core/lease/operate/inspect.js';
import { readCluster } from '../../core/lease/session/cluster-store.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../core/lease/session/store-session.js';
import type { Interval, ListedObject } from '../../core/store/lease-store.js';
import type { ForeignReport, ReportHead } from '../wire/status-report.js';
import { type CamundaReader, camundaReader } from './camunda/camunda-reader.js';
import type { LeaseChange } from './lease-changes.js';
import { type ListedCluster, listedCluster, type ScannedNode } from './listed-cluster.js';
import { reportHead } from './status-report.js';

/** Maximum number of objects that are read again in one scan. */
const MAX_READS = 100;
/** Maximum number of ids beyond the cluster's size that are read. */
const MAX_DRAINING = 100;

/** The result of one scan of a cluster, in a store or in ZooKeeper alone. */
export interface ClusterScan {
  /** In ascending order of the ids; empty when there is no cluster yet. */
  readonly nodes: readonly ScannedNode[];
  /** The content of the LIST of this scan; undefined when there is no cluster yet, and without a LIST. */
  readonly hints?: ListedCluster;
  /** Ids beyond the size that are still held, in ascending order. @default none */
  readonly draining?: readonly ScannedNode[];
  /** What a cluster in a foreign format has in addition; undefined for one of nodelease. */
  readonly foreign?: ForeignReport | undefined;
  /** What went wrong in it since the last call, other than changes of leases; nothing in one of nodelease. */
  readonly foreignChanges?: () => readonly LeaseChange[];
  /** The fields of `nodelease status --json` other than the nodes and discovery. */
  readonly head: Partial<ReportHead>;
  /** How long the request that measures the latency took, in milliseconds. */
  readonly latencyMs: number;
  /**
   * How far the store's clock is ahead of this host's wall clock, at least and at most, in milliseconds; null
   * where that is not known.
   */
  readonly clockOffsetMs: readonly [min: number, max: number] | null;
}

/** What is known of one lease object. */
interface ReadLease {
  readonly reading: LeaseReading;
  /** Of the state that was read; undefined for an absent one. */
  readonly etag: string | undefined;
  /**
   * The age of that state when it was read, and the time of the read on the monotonic clock. The age is
   * undefined for an absent object.
   */
  readonly age: Interval | undefined;
  readonly readAt: number;
}

const ABSENT: ReadLease = { reading: { kind: 'absent' }, etag: undefined, age: undefined, readAt: 0 };

/** The rows of leases in a LIST, by their ids, and the time of the LIST on the monotonic clock. */
type ListedRows = Pick<ListedCluster, 'rows'> & { readonly at: number };

/**
 * Scans a cluster in a store repeatedly, as cheaply as possible. A scan is one LIST with all its pages, and
 * one GET for each object that was written since it was read.
 *
 * The first scan reads all objects. Each later scan reads at most a hundred: first objects that may have
 * changed hands, then those with the oldest reading. Other objects that were written count as renewed, at the
 * age in the LIST, until their turn comes.
 *
 * Ids beyond the cluster's size that seem to be held are read once, a hundred of them at most.
 */
export class ClusterReader {
  readonly #known = new Map<number, ReadLease>();
  #listing: ListedRows = { rows: new Map(), at: 0 };
  #cluster: { readonly config: ClusterConfig; readonly etag: string } | undefined;
  readonly #knowledge = new SharedKnowledge();
  readonly #foreignReaders: Readonly<Record<ForeignFormat['name'], CamundaReader>> = {
    camunda: camundaReader(),
  };
  /** The reader of the last cluster, if its format is a foreign one. */
  #foreign: CamundaReader | undefined;

  /**
   * @param onProgress called for each lease object that was read, with the number of reads in this scan; must
   * not throw
   */
  constructor(
    private readonly session: StoreSession,
    private readonly clock: Clock,
    private readonly onProgress?: (progress: { readonly done: number; readonly of: number }) => void,
  ) {}

  /**
   * Scans once. Must not be called again before it has ended.
   *
   * @param choose returns the node ids to be read, in ascending order; the scan throws what it throws.
   * @default all of them
   * @throws {StoreError} when the store gives no answer
   * @throws {StoreUnusableError} when `cluster.json` is unreadable
   * @throws `signal.reason`
   */
  async scan(signal?: AbortSignal, choose = allIds): Promise<ClusterScan> {
    const { session, clock } = this;
    const begun = clock.monotonic();
    const { objects } = await session.list({
      signal,
      timeoutMs: Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs),
    });
    const at = clock.monotonic();
    const own = await this.#readCluster(objects, signal);
    const found = own ? undefined : await findForeign(session, objects, { signal });
    const foreign = found && this.#foreignReaders[found.format.name];
    const config = own ?? foreign?.configOf(objects);
    if (config) this.#foreign = foreign;
    else this.#known.clear();
    const scanned = config
      ? await this.#scanLeases(
          listedCluster(objects, config, this.#tombstoneMaxBytes, (id) => this.#knownHeld(id)?.durationMs),
          at,
          choose,
          signal,
        )
      : { nodes: [], head: { store: session.store.url } };
    return { ...scanned, latencyMs: at - begun, clockOffsetMs: this.#clockOffsetMs() };
  }

  /** @param at the time of the LIST on the monotonic clock */
  async #scanLeases(
    listed: ListedCluster,
    at: number,
    choose: typeof allIds,
    signal: AbortSignal | undefined,
  ) {
    const reader = this.#foreign;
    const foreign = await reader?.report(this.session, signal);
    const ids = choose(listed);
    const beyond = listed.draining.slice(0, MAX_DRAINING);
    const wanted = new Set([...ids, ...beyond]);
    for (const id of this.#known.keys()) if (!wanted.has(id)) this.#known.delete(id);
    const listing = { rows: listed.rows, at };
    const toRead = [
      ...this.#toRead(ids, listing, listed.cluster),
      ...beyond.filter((id) => !this.#knownHeld(id)),
    ];
    await this.#readAll(toRead, signal);
    this.#listing = listing;

    const justRead = new Set(toRead);
    const now = this.clock.monotonic();
    const cluster = reader?.refined(listed.cluster, this.#known.values()) ?? listed.cluster;
    const statusOf = (id: number) => this.#status(id, justRead.has(id), cluster, now);
    const nodes = ids.map(statusOf);
    const draining = beyond.map(statusOf).filter(({ state }) => state === 'held');
    return {
      nodes,
      hints: { ...listed, cluster },
      draining,
      foreign,
      foreignChanges: () => reader?.changes(nodes) ?? [],
      head: reportHead(this.session.store.url, { cluster, draining, foreign }),
    };
  }

  /** Maximum size of a lease object without a holder, in bytes. Every held lease is larger. */
  get #tombstoneMaxBytes() {
    return this.#foreign ? 0 : nativeCodec.tombstoneMaxBytes;
  }

  #clockOffsetMs(): ClusterScan['clockOffsetMs'] {
    const { min, max } = this.session.storeNow();
    const now = this.clock.now();
    return Number.isFinite(max) ? [Math.floor(min - now), Math.ceil(max - now)] : null;
  }

  /** The settings: read again only when they were written. */
  async #readCluster(objects: readonly ListedObject[], signal: AbortSignal | undefined) {
    const row = objects.find(({ key }) => key === CLUSTER_KEY);
    if (row === undefined && markedCluster(objects) !== undefined) return undefined;
    if (row === undefined || row.etag !== this.#cluster?.etag) {
      const before = this.#cluster?.config;
      this.#cluster = await readCluster(this.session, { signal });
      // The listing is older than the settings: an object that it does not show may have been created since.
      if (this.#cluster?.config.bootstrapped && before?.bootstrapped === false)
        for (const [id, { reading }] of this.#known) if (reading.kind === 'absent') this.#known.delete(id);
    }
    return this.#cluster?.config;
  }

  #knownHeld(id: number) {
    const reading = this.#known.get(id)?.reading;
    return reading?.kind === 'lease' && reading.lease.kind === 'held' ? reading.lease : undefined;
  }

  /** The ids whose objects are to be read in this scan. */
  #toRead(ids: readonly number[], listing: ListedRows, { bootstrapped }: ClusterConfig) {
    const unread: number[] = [];
    const urgent: number[] = [];
    const changed: number[] = [];
    for (const id of ids) {
      const row = listing.rows.get(id);
      const known = this.#known.get(id);
      // An object that does not exist yet needs no request. In a foreign format, node ids below the size may lack
      // an object for good: such an id is absent, never vacant, and costs no request.
      if (known === undefined && row === undefined && (!bootstrapped || this.#foreign))
        this.#known.set(id, ABSENT);
      else if (known === undefined) unread.push(id);
      // All empty objects have one etag, whatever Camunda's metadata say.
      else if (known.etag !== row?.etag || (this.#foreign && row?.size === 0))
        (this.#mayHaveChangedHands(id, known, listing) ? urgent : changed).push(id);
    }
    const byReading = (a: number, b: number) =>
      (this.#known.get(a)?.readAt ?? 0) - (this.#known.get(b)?.readAt ?? 0);
    return [...unread, ...[...urgent.sort(byReading), ...changed.sort(byReading)].slice(0, MAX_READS)];
  }

  /**
   * Whether a write was more than a renewal, according to a LIST: the id was not held, it has a tombstone's
   * size now, or the lease had expired.
   */
  #mayHaveChangedHands(id: number, { reading }: ReadLease, listing: ListedRows) {
    const row = listing.rows.get(id);
    if (row === undefined || reading.kind !== 'lease' || reading.lease.kind !== 'held') return true;
    if (row.size <= this.#tombstoneMaxBytes) return true;
    const before = this.#listing.rows.get(id);
    return (
      before === undefined ||
      mayExceed(before.age, reading.lease.durationMs - (listing.at - this.#listing.at))
    );
  }

  async #readAll(ids: readonly number[], signal?: AbortSignal) {
    let done = 0;
    const read = async (id: number, own: AbortSignal) => {
      const object = await this.session.read(leaseKey(id), { signal: own });
      const reading = this.#foreign?.readingOf(object) ?? readingOf(object, this.#knowledge);
      this.#known.set(id, { reading, etag: object?.etag, age: object?.age, readAt: this.clock.monotonic() });
      done += 1;
      this.onProgress?.({ done, of: ids.length });
    };
    await concurrently(ids, REQUESTS_AT_ONCE, read, signal);
  }

  #status(id: number, isJustRead: boolean, cluster: ClusterConfig, now: number): ScannedNode {
    const { reading, age, readAt } = this.#known.get(id) ?? ABSENT;
    const row = this.#listing.rows.get(id);
    // An object that was read is newer than the LIST.
    const grown =
      isJustRead || row === undefined ? older(age, now - readAt) : older(row.age, now - this.#listing.at);
    const bootstrapped = cluster.bootstrapped || this.#foreign !== undefined;
    const status = nodeStatus(id, reading, grown, { ...cluster, bootstrapped });
    const foreign = this.#foreign?.nodeOf(id, reading);
    return foreign ? { ...status, foreign } : status;
  }
}

function allIds({ leases }: ListedCluster): readonly number[] {
  return leases.map((_, id) => id);
}

/** An age a while later. */
export function older(age: Interval | undefined, byMs: number): Interval | undefined {
  return age && { min: age.min + byMs, max: age.max + byMs };
}
