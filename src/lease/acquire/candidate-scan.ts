import { CLUSTER_KEY, type ClusterConfig } from '../model/cluster-config.js';
import type { LeaseListener } from '../model/lease.js';
import type { LeaseCodec } from '../model/lease-codec.js';
import type { StoredCluster } from '../session/cluster-store.js';
import { retry, type StoreRetryOptions, whileStoreIsAway } from '../session/retry.js';
import type { StoreSession } from '../session/store-session.js';
import { type Candidate, type CandidateChoice, classify, type ListedPart } from './candidates.js';
import { fetchNextPage, newListing, PartialListing } from './partial-listing.js';
import type { ScanPlan } from './wait-for-free-id.js';

export interface CandidateScannerOptions extends StoreRetryOptions {
  readonly emit: LeaseListener;
  readonly session: StoreSession;
  readonly codec: LeaseCodec;
  readonly choice: CandidateChoice;
  /** Reads the cluster's settings anew. */
  readonly readCluster: () => Promise<StoredCluster>;
}

/** The first listing, from before the cluster's settings were known. */
export interface FirstListing {
  readonly listing: PartialListing;
  /** When it was asked for, on the monotonic clock. */
  readonly sentAt: number;
}

/** What one scan has shown. */
export interface CandidateScan {
  readonly cluster: StoredCluster;
  readonly listing: PartialListing;
  /** Candidates that are worth a try. */
  readonly candidates: readonly Candidate[];
  /** Whether it shows as much as was asked for. Otherwise it ended where there were enough candidates to choose from. */
  readonly asPlanned: boolean;
  /** Whether there may be more candidates, which this scan is too old to tell. */
  readonly doubtful: boolean;
  /** When the listing was there, on the monotonic clock. */
  readonly scannedAt: number;
  /** The lease that can be found expired first, of those that seem held, and when, on the monotonic clock. */
  readonly firstExpiry: Expiry | undefined;
}

interface Expiry {
  readonly key: string;
  readonly at: number;
}

/** How long what is known of the bootstrap counts as fresh, in milliseconds. */
const CLUSTER_FRESH_MS = 1_000;

/** Scans the listing for candidates, as far as it takes to find some, and remembers which of them only look free. */
export class CandidateScanner {
  /** Candidates that are not free: no try before that time of the monotonic clock, unless their etag changes. */
  readonly #notBefore = new Map<string, { etag: string | undefined; time: number }>();
  readonly #reported = new Set<string>();
  /** The key after which each page of the last complete listing began. */
  #pageStarts: readonly (string | undefined)[] = [undefined];
  #clusterReadAt: number;

  constructor(private readonly options: CandidateScannerOptions) {
    this.#clusterReadAt = options.clock.monotonic();
  }

  /** The keys of the objects that were reported as damaged, in order. */
  get damaged(): readonly string[] {
    return [...this.#reported].sort();
  }

  /**
   * The scan of a listing that is older than the settings. An object that is newer than the listing is not to be called absent for want of a row.
   *
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async first(cluster: StoredCluster, { listing, sentAt }: FirstListing): Promise<CandidateScan> {
    await this.#extend(listing, cluster.config);
    // The row of the settings may stand on the last page, and tells their age as of that.
    const listedMs = this.options.clock.monotonic() - sentAt;
    const row = listing.objects.find(({ key }) => key === CLUSTER_KEY);
    const known = row?.etag === cluster.etag && row.age.min > listedMs;
    return this.#scan(cluster, listing, { sure: known || !cluster.config.bootstrapped });
  }

  /**
   * Scans anew.
   *
   * @param waited whether the task has waited: then there may be more ids now, or fewer, and the task must not take an id that was given up for good
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async again(known: StoredCluster, { pages, after }: ScanPlan, waited: boolean): Promise<CandidateScan> {
    const { clock } = this.options;
    const onePage = pages === 'one';
    const listing = this.#newListing(known.config, pages, after);
    await this.#fetchNext(listing);
    if (!onePage) await this.#extend(listing, known.config);
    const scan = this.#scan(known, listing, { sure: true, onePage });
    // An absent object is a vacancy only while bootstrap goes on; what we knew of that is old.
    const absent = scan.candidates.some(({ row }) => row === undefined);
    const old = absent && !known.config.bootstrapped && scan.scannedAt - this.#clusterReadAt > CLUSTER_FRESH_MS;
    // The listing shows the settings as well, so they need not be read at every scan.
    const changed = onePage && scan.candidates.length === 0 ? showsOther(known, listing) : mayHaveChanged(known, listing);
    if (!old && !((waited || scan.candidates.length === 0) && changed)) return scan;
    const cluster = await retry(() => this.options.readCluster(), whileStoreIsAway(this.options));
    this.#clusterReadAt = clock.monotonic();
    // What was retired may be as good as released now, without having been written.
    if (cluster.config.generation !== known.config.generation) this.#notBefore.clear();
    const same = cluster.etag === known.etag;
    if (same && onePage) return scan;
    await this.#extend(listing, cluster.config);
    // Read before the listing and after it, the same settings stood in between.
    return this.#scan(cluster, listing, { sure: !cluster.config.bootstrapped || same });
  }

  /** Notes that a candidate is not worth another try before that time of the monotonic clock, unless it changes. */
  dismiss({ key, row }: Candidate, until: number): void {
    this.#notBefore.set(key, { etag: row?.etag, time: until });
  }

  /**
   * When the first of the leases that a scan showed, or of the candidates that were dismissed, can be found expired, on the monotonic clock; and
   * the key after which a page has to begin to show it, where not every page does.
   */
  firstExpiry({ firstExpiry }: CandidateScan): { readonly expiryAt: number; readonly expiryAfter: string | undefined } {
    const now = this.options.clock.monotonic();
    let first = firstExpiry;
    for (const [key, { time }] of this.#notBefore)
      if (time > now && time < (first?.at ?? Number.POSITIVE_INFINITY)) first = { key, at: time };
    // The key without its last letter comes before it, and after every other lease's.
    const expiryAfter = this.#pageStarts.length > 1 ? first?.key.slice(0, -1) : undefined;
    return { expiryAt: first?.at ?? Number.POSITIVE_INFINITY, expiryAfter };
  }

  /** Tells, once, that an object cannot be used. */
  reportDamage(key: string, problem: string): void {
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.options.emit({ type: 'damaged', key, problem });
  }

  #newListing({ size }: ClusterConfig, pages: ScanPlan['pages'], after: string | undefined): PartialListing {
    const { session, random } = this.options;
    if (after !== undefined) return new PartialListing(after);
    if (pages === 'all') return newListing(session, size, random);
    return new PartialListing(this.#pageStarts[Math.floor(random.next() * this.#pageStarts.length)]);
  }

  /** Fetches pages until they show enough candidates to choose from. */
  async #extend(listing: PartialListing, config: ClusterConfig): Promise<void> {
    const { choice, codec } = this.options;
    let free = 0;
    let used = 0;
    for (
      let part: ListedPart = listing;
      !listing.complete;
      part = config.bootstrapped ? { objects: listing.latest, complete: false } : listing
    ) {
      const found = classify(part, config, codec);
      const from = part === listing ? { free: 0, used: 0 } : { free, used };
      free = from.free + found.candidates.filter((candidate) => this.#worthTrying(candidate)).length;
      used = from.used + found.used;
      if (choice.suffices({ free, used })) return;
      await this.#fetchNext(listing);
    }
  }

  #fetchNext(listing: PartialListing): Promise<void> {
    const { session, signal } = this.options;
    return retry(() => fetchNextPage(session, listing, { ...(signal && { signal }) }), whileStoreIsAway(this.options));
  }

  /**
   * @param options.sure whether what has no row had no object at a time at which the settings stood as they are known
   * @param options.onePage whether no more than a page was asked for
   */
  #scan(cluster: StoredCluster, listing: PartialListing, { sure, onePage = false }: { sure: boolean; onePage?: boolean }): CandidateScan {
    const { session, clock, codec, choice } = this.options;
    const scannedAt = clock.monotonic();
    if (listing.complete) this.#pageStarts = listing.pageStarts;
    for (const { key, etag } of this.#notBefore.size === 0 ? [] : listing.objects) this.#forget(key, etag);
    const found = classify(listing, cluster.config, codec);
    const lost = cluster.config.bootstrapped ? found.absent : [];
    if (sure) for (const { key } of found.candidates.filter(({ row }) => row === undefined && lost.length > 0)) this.#reportAbsent(key);
    const usable = found.candidates.filter(({ row }) => lost.length === 0 || row !== undefined);
    const candidates = usable.filter((candidate) => this.#worthTrying(candidate));
    choice.see({ free: candidates.length, used: found.used });
    const first = found.firstExpiry;
    return {
      ...{ cluster, listing, candidates, scannedAt },
      asPlanned: onePage || listing.complete,
      doubtful: !sure && lost.length > 0,
      firstExpiry: first && { key: first.key, at: scannedAt + session.untilTold(first.inMs, listing.storeTime) },
    };
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
