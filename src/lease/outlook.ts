import { CLUSTER_KEY, type ClusterConfig } from './cluster-config.js';
import type { StoredCluster } from './cluster-store.js';
import type { Draw } from './draw.js';
import type { LeaseCodec } from './lease-codec.js';
import { type Candidate, type Surveyed, survey } from './lease-survey.js';
import { ListingParts } from './listing-parts.js';
import { fetchNextPage, newListing, type PartialListing } from './partial-listing.js';
import { type Persistence, persistently } from './persistently.js';
import type { StoreSession } from './store-session.js';

export interface OutlookOptions extends Persistence {
  readonly session: StoreSession;
  readonly codec: LeaseCodec;
  readonly draw: Draw;
  /** Reads the cluster's settings anew. */
  readonly readCluster: () => Promise<StoredCluster>;
}

/** The first look at a store, from before the cluster's settings were known. */
export interface FirstLook {
  readonly listing: PartialListing;
  /** When it was asked for, on the monotonic clock. */
  readonly sentAt: number;
}

/** What one look has shown. */
export interface Look {
  readonly cluster: StoredCluster;
  readonly listing: PartialListing;
  /** What may be free. */
  readonly free: readonly Candidate[];
  /** Whether it shows as much as was wanted: everything, or a part. Otherwise it ended where there was enough to draw from. */
  readonly asWanted: boolean;
  /** How many should have been renewed by now, and were not. */
  readonly overdue: number;
  /** Whether there may be more, which this look is too old to tell. */
  readonly doubtful: boolean;
  /** When the listing was there, and when the first of the others can be found expired, on the monotonic clock. */
  readonly listedAt: number;
  readonly expiryAt: number;
}

/** How long what is known of the bootstrap counts as fresh, in milliseconds. */
const CLUSTER_FRESH_MS = 1_000;

/** Looks for ids that may be free, as far into the listing as it takes to find some, and remembers which of them only look it. */
export class Outlook {
  /** Objects that are not free although they look it: not before that time of the monotonic clock, unless their etag changes. */
  readonly #notBefore = new Map<string, { etag: string | undefined; time: number }>();
  readonly #reported = new Set<string>();
  readonly #parts: ListingParts;
  #clusterReadAt: number;

  constructor(private readonly options: OutlookOptions) {
    this.#parts = new ListingParts(options.random);
    this.#clusterReadAt = options.clock.monotonic();
  }

  /** How many requests a look at everything takes. */
  get parts(): number {
    return this.#parts.count;
  }

  /** The keys of the objects that were reported as damaged, in order. */
  get damaged(): readonly string[] {
    return [...this.#reported].sort();
  }

  /**
   * What may be free by a listing that is older than the settings. What is newer than the listing is not to be called absent for want of a row.
   *
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async first(cluster: StoredCluster, { listing, sentAt }: FirstLook): Promise<Look> {
    await this.#extend(listing, cluster.config);
    // The row of the settings may stand on the last page, and tells their age as of that.
    const listedMs = this.options.clock.monotonic() - sentAt;
    const row = listing.objects.find(({ key }) => key === CLUSTER_KEY);
    const known = row?.etag === cluster.etag && row.age.min > listedMs;
    return this.#look(cluster, listing, { sure: known || !cluster.config.bootstrapped });
  }

  /**
   * Looks anew.
   *
   * @param options.waited whether nothing was free before: then there may be more ids now, or fewer, and who waits would take what its holder
   * has just given up for good
   * @param options.parts at how many {@link parts} of the store to look; it may be all of them, and more. @default all
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async again(known: StoredCluster, { waited, parts = Number.POSITIVE_INFINITY }: { waited: boolean; parts?: number }): Promise<Look> {
    const { session, clock, random } = this.options;
    const isPart = parts < this.parts;
    const fetchNext = (listing: PartialListing) => this.#fetchNext(listing);
    const listing = isPart ? await this.#parts.fetch(parts, fetchNext) : newListing(session, known.config.size, random);
    if (!isPart) {
      await fetchNext(listing);
      await this.#extend(listing, known.config);
    }
    const look = this.#look(known, listing, { sure: true, isPart });
    // An absent object is a vacancy only while bootstrap goes on; what we knew of that is old.
    const absent = look.free.some(({ row }) => row === undefined);
    const old = absent && !known.config.bootstrapped && look.listedAt - this.#clusterReadAt > CLUSTER_FRESH_MS;
    // The listing shows the settings as well, so they need not be read at every look.
    const changed = isPart && look.free.length === 0 ? showsOther(known, listing) : mayHaveChanged(known, listing);
    if (!old && !((waited || look.free.length === 0) && changed)) return look;
    const cluster = await persistently(this.options, () => this.options.readCluster());
    this.#clusterReadAt = clock.monotonic();
    // What was retired may be as good as released now, without having been written.
    if (cluster.config.generation !== known.config.generation) this.#notBefore.clear();
    const same = cluster.etag === known.etag;
    if (same && isPart) return look;
    await this.#extend(listing, cluster.config);
    // Read before the listing and after it, the same settings stood in between.
    return this.#look(cluster, listing, { sure: !cluster.config.bootstrapped || same });
  }

  /** Notes that a candidate is not worth another try before that time of the monotonic clock, unless it changes. */
  dismiss({ key, row }: Candidate, until: number): void {
    this.#notBefore.set(key, { etag: row?.etag, time: until });
  }

  /** When each of those that look free and are not yet is worth another try, on the monotonic clock. */
  later(): readonly number[] {
    const now = this.options.clock.monotonic();
    return [...this.#notBefore.values()].map(({ time }) => time).filter((time) => time > now && Number.isFinite(time));
  }

  /** Tells, once, that an object cannot be used. */
  reportDamage(key: string, problem: string): void {
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.options.emit({ type: 'damaged', key, problem });
  }

  /** Fetches pages until they show enough to draw from. */
  async #extend(listing: PartialListing, config: ClusterConfig): Promise<void> {
    const { draw, codec } = this.options;
    let free = 0;
    let used = 0;
    for (
      let part: Surveyed = listing;
      !listing.complete;
      part = config.bootstrapped ? { objects: listing.latest, complete: false } : listing
    ) {
      const found = survey(part, config, codec);
      const from = part === listing ? { free: 0, used: 0 } : { free, used };
      free = from.free + found.candidates.filter((candidate) => this.#worthTrying(candidate)).length;
      used = from.used + found.used;
      if (draw.suffices({ free, used })) return;
      await this.#fetchNext(listing);
    }
  }

  #fetchNext(listing: PartialListing): Promise<void> {
    const { session, signal } = this.options;
    return persistently(this.options, () => fetchNextPage(session, listing, { ...(signal && { signal }) }));
  }

  /**
   * @param options.sure whether what has no row had no object at a time at which the settings stood as they are known
   * @param options.isPart whether no more than a part was to be looked at
   */
  #look(cluster: StoredCluster, listing: PartialListing, { sure, isPart = false }: { sure: boolean; isPart?: boolean }): Look {
    const { session, clock, codec, draw } = this.options;
    const listedAt = clock.monotonic();
    this.#parts.see(listing);
    for (const { key, etag } of this.#notBefore.size === 0 ? [] : listing.objects) this.#forget(key, etag);
    const found = survey(listing, cluster.config, codec);
    const lost = cluster.config.bootstrapped ? found.absent : [];
    if (sure) for (const { key } of found.candidates.filter(({ row }) => row === undefined && lost.length > 0)) this.#reportAbsent(key);
    const candidates = found.candidates.filter(({ row }) => lost.length === 0 || row !== undefined);
    const free = candidates.filter((candidate) => this.#worthTrying(candidate));
    draw.see({ free: free.length, used: found.used });
    const expiryAt = listedAt + session.untilTold(found.earliestExpiryMs, listing.storeTime);
    const asWanted = isPart || listing.complete;
    return { cluster, listing, free, asWanted, overdue: found.overdue, doubtful: !sure && lost.length > 0, listedAt, expiryAt };
  }

  #worthTrying(candidate: Candidate): boolean {
    this.#forget(candidate.key, candidate.row?.etag);
    return (this.#notBefore.get(candidate.key)?.time ?? Number.NEGATIVE_INFINITY) <= this.options.clock.monotonic();
  }

  /** What is known of another etag is known no longer. */
  #forget(key: string, etag: string | undefined): void {
    const known = this.#notBefore.get(key);
    if (known !== undefined && known.etag !== etag) this.#notBefore.delete(key);
  }

  #reportAbsent(key: string): void {
    this.reportDamage(
      key,
      'is absent although the cluster is bootstrapped: somebody deleted it, and its version with it; `nodelease init --repair --above-version N` restores it, N being the highest version it ever had',
    );
  }
}

/** Whether there may be other settings than those that are known, as far as a listing tells. */
function mayHaveChanged(cluster: StoredCluster, listing: PartialListing): boolean {
  return !listing.covers(CLUSTER_KEY) || showsOther(cluster, listing);
}

/** Whether there are other settings than those that are known, as far as a listing tells. */
function showsOther(cluster: StoredCluster, { objects }: PartialListing): boolean {
  const row = objects.find(({ key }) => key === CLUSTER_KEY);
  return row !== undefined && row.etag !== cluster.etag;
}
