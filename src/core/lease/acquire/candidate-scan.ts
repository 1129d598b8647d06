import type { RandomSource } from '../../base/clock.js';
import type { ListedObject } from '../../store/lease-store.js';
import { CLUSTER_KEY, type ClusterConfig } from '../model/cluster-config.js';
import { leaseKey } from '../model/lease-state.js';
import { readExistingCluster, type StoredCluster } from '../session/cluster-store.js';
import type { StoreSession } from '../session/store-session.js';
import { absentIds, type Candidate, type CandidateChoice, classify } from './candidates.js';
import type { AcquireContext } from './claim.js';
import { PartialListing } from './partial-listing.js';
import type { ScanPlan } from './wait-for-free-id.js';

/** The result of one scan. */
export interface CandidateScan {
  readonly cluster: StoredCluster;
  readonly listing: PartialListing;
  /** Candidates that are worth a try, in ascending order of the ids. */
  readonly candidates: readonly Candidate[];
  /**
   * False if there may be more candidates: the scan stopped when it had enough, or is older than the
   * settings.
   */
  readonly isConclusive: boolean;
  /** When the listing had arrived, on the monotonic clock. */
  readonly scannedAt: number;
  /** The lease that looks held and can be found expired first, and that time on the monotonic clock. */
  readonly firstExpiry: { readonly key: string; readonly at: number } | undefined;
}

/** Number of objects in one page of an S3 listing. Only the number of requests depends on it. */
const PAGE_OBJECTS = 1_000;
/** How long the known state of the bootstrap counts as fresh, in milliseconds. */
const CLUSTER_FRESH_MS = 1_000;

/**
 * A listing of about `size` leases, with nothing fetched yet. It begins at a random page, so that not all
 * starters read the same one.
 */
export function firstListing({ store }: StoreSession, size: number, random: RandomSource): PartialListing {
  const pages = store.listPage === undefined ? 1 : Math.ceil(size / PAGE_OBJECTS);
  return new PartialListing(pageStart(size, Math.floor(random.next() * pages)));
}

/** Scans a listing for candidates until it finds some, and remembers candidates that are not free. */
export class CandidateScanner {
  /**
   * Candidates that are not free: not tried before this time of the monotonic clock, unless their etag
   * changes.
   */
  readonly #notBefore = new Map<string, { etag: string | undefined; time: number }>();
  readonly #reported = new Set<string>();
  /** Where the pages of the last complete listing began. */
  #pageStarts: readonly (string | undefined)[] = [undefined];
  #clusterReadAt: number;

  constructor(
    private readonly options: AcquireContext,
    private readonly choice: CandidateChoice,
  ) {
    this.#clusterReadAt = options.clock.monotonic();
  }

  /** The keys of the objects that were reported as damaged, in order. */
  get damaged(): readonly string[] {
    return [...this.#reported].sort();
  }

  /**
   * The scan of a listing that was begun before the settings were read.
   *
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async first(cluster: StoredCluster, listing: PartialListing): Promise<CandidateScan> {
    await this.#extend(listing, cluster.config);
    const row = settingsRow(listing);
    const { min, max } = listing.storeTime;
    // True only if these settings existed before the first page was listed.
    const isAfterSettings = row?.etag === cluster.etag && row.age.min > max - min;
    return this.#scan(cluster, listing, { isAfterSettings });
  }

  /**
   * Scans again.
   *
   * @param waited whether the task has waited. If so, the number of ids may have changed, and the task must
   * not take a retired id
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async again(known: StoredCluster, plan: ScanPlan, waited: boolean): Promise<CandidateScan> {
    const { session, clock, retry } = this.options;
    const onePage = plan.pages === 'one';
    const listing = this.#newListing(known.config.size, plan);
    await this.#fetchNext(listing);
    if (!onePage) await this.#extend(listing, known.config);
    const scan = this.#scan(known, listing, { isAfterSettings: true, onePage });
    if (!this.#areSettingsInDoubt(scan, waited)) return scan;
    const cluster = await retry((call) => readExistingCluster(session, call));
    this.#clusterReadAt = clock.monotonic();
    if (cluster.etag === known.etag) return scan;
    // Retired ids may count as released now, although their objects were not written.
    if (cluster.config.generation !== known.config.generation) this.#notBefore.clear();
    await this.#extend(listing, cluster.config);
    return this.#scan(cluster, listing, { isAfterSettings: false });
  }

  /** Excludes a candidate until this time of the monotonic clock, or until its etag changes. */
  dismiss({ key, row }: Candidate, until: number): void {
    this.#notBefore.set(key, { etag: row?.etag, time: until });
  }

  /**
   * `expiryAt`: when the first lease of a scan, or the first dismissed candidate, can be found expired, on
   * the monotonic clock. `expiryAfter`: the key after which a page must begin to show it; undefined if every
   * page shows it.
   */
  firstExpiry({ firstExpiry }: CandidateScan): {
    readonly expiryAt: number;
    readonly expiryAfter: string | undefined;
  } {
    const now = this.options.clock.monotonic();
    let first = firstExpiry;
    for (const [key, { time }] of this.#notBefore)
      if (time > now && time < (first?.at ?? Number.POSITIVE_INFINITY)) first = { key, at: time };
    // The key without its last letter sorts before the key, and no other lease's key lies between.
    const expiryAfter = this.#pageStarts.length > 1 ? first?.key.slice(0, -1) : undefined;
    return { expiryAt: first?.at ?? Number.POSITIVE_INFINITY, expiryAfter };
  }

  /** Reports once that an object cannot be used. */
  reportDamage(key: string, problem: string): void {
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.options.emit({ type: 'damaged', key, problem });
  }

  #newListing(size: number, { pages, after }: ScanPlan): PartialListing {
    const { session, random } = this.options;
    if (pages === 'all') return firstListing(session, size, random);
    return new PartialListing(after ?? this.#pageStarts[Math.floor(random.next() * this.#pageStarts.length)]);
  }

  /** Fetches pages until they show enough candidates to choose from. */
  async #extend(listing: PartialListing, config: ClusterConfig): Promise<void> {
    let free = 0;
    let used = 0;
    for (let rows = listing.objects; !listing.complete; rows = listing.latest) {
      const found = classify(rows, config, this.options.shown);
      free += found.candidates.filter((candidate) => this.#isWorthTrying(candidate)).length;
      used += found.used;
      if (this.choice.suffices({ free, used })) return;
      await this.#fetchNext(listing);
    }
  }

  #fetchNext(listing: PartialListing): Promise<void> {
    const { session, retry } = this.options;
    return retry((call) => listing.fetchNext(session, call));
  }

  /**
   * @param options.isAfterSettings whether the listing began after these settings were written: then each id
   * of a bootstrapped cluster had an object
   * @param options.onePage whether only one page was requested
   */
  #scan(
    cluster: StoredCluster,
    listing: PartialListing,
    options: { isAfterSettings: boolean; onePage?: boolean },
  ): CandidateScan {
    const { session, clock, shown } = this.options;
    const { size, bootstrapped } = cluster.config;
    const scannedAt = clock.monotonic();
    if (listing.complete) this.#pageStarts = listing.pageStarts;
    for (const { key, etag } of this.#notBefore.size === 0 ? [] : listing.objects) this.#forget(key, etag);
    const found = classify(listing.objects, cluster.config, shown);
    const isKnownAbsent = listing.complete || !bootstrapped;
    const absent = isKnownAbsent ? absentIds(listing.objects, size, (key) => listing.covers(key)) : [];
    // After bootstrap an absent object is damage. Before it, the id is vacant.
    const vacant = bootstrapped ? [] : absent.map((id) => ({ id, key: leaseKey(id), row: undefined }));
    if (bootstrapped && options.isAfterSettings) for (const id of absent) this.#reportAbsent(leaseKey(id));
    const candidates = [...found.candidates, ...vacant]
      .filter((candidate) => this.#isWorthTrying(candidate))
      .sort((a, b) => a.id - b.id);
    this.choice.see({ free: candidates.length, used: found.used });
    const isDoubtful = bootstrapped && !options.isAfterSettings && absent.length > 0;
    const first = found.firstExpiry;
    return {
      ...{ cluster, listing, candidates, scannedAt },
      isConclusive: (options.onePage === true || listing.complete) && !isDoubtful,
      firstExpiry: first && {
        key: first.key,
        at: scannedAt + session.untilTold(first.inMs, { age: first.age, storeTime: listing.storeTime }),
      },
    };
  }

  /**
   * Whether the settings must be read again. The listing shows whether they changed, so not every scan reads
   * them.
   */
  #areSettingsInDoubt({ cluster, listing, candidates, scannedAt }: CandidateScan, waited: boolean): boolean {
    const isFound = candidates.length > 0;
    const areShown = listing.covers(CLUSTER_KEY);
    // A store that has gone back may have lost them.
    const haveChanged = areShown && settingsRow(listing)?.etag !== cluster.etag && (waited || !isFound);
    const areUnseen = waited && isFound && !areShown;
    // An absent object is a vacant id only during bootstrap.
    const areOld =
      candidates.some((candidate) => candidate.row === undefined) &&
      scannedAt - this.#clusterReadAt > CLUSTER_FRESH_MS;
    return haveChanged || areUnseen || areOld;
  }

  #isWorthTrying(candidate: Candidate): boolean {
    this.#forget(candidate.key, candidate.row?.etag);
    return (
      (this.#notBefore.get(candidate.key)?.time ?? Number.NEGATIVE_INFINITY) <= this.options.clock.monotonic()
    );
  }

  /** Drops the entry of a key whose etag has changed. */
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

function settingsRow({ objects }: PartialListing): ListedObject | undefined {
  return objects.find(({ key }) => key === CLUSTER_KEY);
}

/**
 * The key after which the nth page of a cluster's leases begins if every object is there; undefined for the
 * first page.
 */
export function pageStart(size: number, page: number): string | undefined {
  return page === 0 ? undefined : leaseKey(nthInOrder(size, page * PAGE_OBJECTS - 1));
}

/**
 * The nth of the numbers 0 … size - 1, n > 0, in the order of their keys, which is by digits: 0, 1, 10, 100,
 * 101, … 11, …
 */
function nthInOrder(size: number, n: number): number {
  let number = 1;
  for (let left = n - 1; left > 0; ) {
    const below = countFrom(number, size);
    if (below <= left) {
      left -= below;
      number += 1;
    } else {
      left -= 1;
      number *= 10;
    }
  }
  return number;
}

/** How many numbers below `size` begin with the digits of `prefix`. */
function countFrom(prefix: number, size: number): number {
  let count = 0;
  for (let [from, to] = [prefix, prefix + 1]; from < size; from *= 10, to *= 10)
    count += Math.min(to, size) - from;
  return count;
}
