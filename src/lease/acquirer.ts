import { AcquireTimeoutError, explain } from '../errors.js';
import { type Interval, type Listing, StoreError } from '../store/lease-store.js';
import { type Claim, Claimant, type ClaimantOptions, STORE_RETRY_MS } from './claim.js';
import { CLUSTER_KEY, type ClusterConfig } from './cluster-config.js';
import type { StoredCluster } from './cluster-store.js';
import type { Tenure } from './keeper.js';
import { availability, type LeaseState } from './lease-state.js';
import { type Candidate, type LeaseSurvey, survey } from './lease-survey.js';
import { retry } from './retry.js';
import { sleepUntil } from './sleep-until.js';

/** A node id taken, and from what. */
export interface Acquisition extends Tenure {
  readonly from: 'vacant' | 'released' | 'expired';
}

export interface AcquirerOptions extends ClaimantOptions {
  /** Reads the cluster's settings anew. */
  readonly readCluster: () => Promise<StoredCluster>;
}

/** A change of some object that may or may not come. */
interface Change {
  /** Never rejects. */
  readonly happened: Promise<void>;
  ignore(): void;
}

type Attempt =
  | { readonly kind: 'acquired'; readonly acquisition: Acquisition }
  /** `lost`: somebody else was faster. `not-free`: the LIST had raised false hopes. Not to be tried again before `notBefore` unless the LIST changes. */
  | { readonly kind: 'lost' | 'not-free'; readonly notBefore?: number };

/** The least time between two looks at a store on which nothing is free, in milliseconds. */
const LEAST_SLEEP_MS = 200;
/** How long what is known of the bootstrap counts as fresh, and the least time between two looks at the store, in milliseconds. */
const CLUSTER_FRESH_MS = 1_000;
const LEAST_PAUSE_MS = 100;

/** Whether a listing shows other settings than those that are known. */
function hasChanged(cluster: StoredCluster, { objects }: Listing): boolean {
  const etag = objects.find(({ key }) => key === CLUSTER_KEY)?.etag;
  return etag !== undefined && etag !== cluster.etag;
}

/** Finds a free node id and takes it (DESIGN 5). One use each. */
export class Acquirer {
  /** True once a race was lost: then ids are drawn at random, so that starters spread out. */
  #contended = false;
  /** Objects that are not free although they look it: not before that time of the monotonic clock, unless their etag changes. */
  readonly #notBefore = new Map<string, { etag: string | undefined; time: number }>();
  readonly #reported = new Set<string>();
  readonly #claimant: Claimant;
  #clusterReadAt: number;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: AcquirerOptions) {
    this.#claimant = new Claimant(options);
    this.#clusterReadAt = options.clock.monotonic();
  }

  /**
   * @throws {AcquireTimeoutError} when nothing became free in time
   * @throws {StoreUnusableError} when the store turns out to ignore conditions
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async acquire(known: StoredCluster): Promise<Acquisition> {
    let change: Change | undefined;
    try {
      for (let cluster = known; ; ) {
        this.options.signal?.throwIfAborted();
        const look = await this.#look(cluster);
        cluster = look.cluster;
        const taken = await this.#tryInTurn(look.free, cluster);
        if (taken === 'lost') continue;
        if (taken !== undefined) return taken;
        // The first time, look once more with an eye on the store: what changed before the watch began would go unnoticed.
        if (change !== undefined || this.options.session.store.changed === undefined) {
          await this.#waitForChance(cluster.config, look.expiryAt, change);
          change?.ignore();
        }
        change = this.#nextChange();
      }
    } finally {
      change?.ignore();
    }
  }

  /** One LIST: what may be free, and when the first of the others can be found expired. */
  async #look(known: StoredCluster): Promise<{ cluster: StoredCluster; free: readonly Candidate[]; expiryAt: number }> {
    const { session, clock, codec, signal } = this.options;
    const listing = await this.#patiently(() => session.list(signal && { signal }));
    const listedAt = clock.monotonic();
    this.#lookedAt = listedAt;
    let cluster = known;
    let found = survey(listing, cluster.config, codec);
    let free = this.#free(found, cluster.config);
    // An absent object is a vacancy only while bootstrap goes on; what we knew of that is old.
    const doubtful = found.absent.length > 0 && !cluster.config.bootstrapped && listedAt - this.#clusterReadAt > CLUSTER_FRESH_MS;
    // There may be more node ids now. The listing shows the settings as well, so who waits need not read them at every look.
    if (doubtful || (free.length === 0 && hasChanged(cluster, listing))) {
      cluster = await this.#patiently(() => this.options.readCluster());
      this.#clusterReadAt = clock.monotonic();
      found = survey(listing, cluster.config, codec);
      // What is newer than the listing is not to be called absent for want of a row in it.
      if (cluster.config.bootstrapped) found = { ...found, candidates: found.candidates.filter(({ row }) => row !== undefined) };
      free = this.#free(found, cluster.config);
    }
    return { cluster, free, expiryAt: listedAt + this.#untilTold(found.earliestExpiryMs, listing.storeTime) };
  }

  /** Tries one id after the other; 'lost' means that the listing is out of date. */
  async #tryInTurn(free: readonly Candidate[], cluster: StoredCluster): Promise<Acquisition | 'lost' | undefined> {
    const rest = [...free];
    let losses = 0;
    while (rest.length > 0) {
      this.options.signal?.throwIfAborted();
      const index = this.#contended ? Math.floor(this.options.random.next() * rest.length) : 0;
      const [candidate] = rest.splice(index, 1) as [Candidate];
      const attempt = await this.#try(candidate, cluster);
      if (attempt.kind === 'acquired') return attempt.acquisition;
      if (attempt.notBefore !== undefined) this.#notBefore.set(candidate.key, { etag: candidate.row?.etag, time: attempt.notBefore });
      if (attempt.kind === 'not-free') continue;
      losses += 1;
      if (!this.#contended || losses === 2) {
        this.#contended = true;
        return 'lost';
      }
    }
    return losses > 0 ? 'lost' : undefined;
  }

  #free({ candidates }: LeaseSurvey, config: ClusterConfig): readonly Candidate[] {
    return candidates.filter((candidate) => this.#worthTrying(candidate, config));
  }

  #worthTrying(candidate: Candidate, config: ClusterConfig): boolean {
    if (candidate.row === undefined && config.bootstrapped) {
      this.#reportDamage(
        candidate.key,
        'is absent although the cluster is bootstrapped: somebody deleted it, and its version with it; `nodelease init --repair --above-version N` restores it, N being the highest version it ever had',
      );
      return false;
    }
    const known = this.#notBefore.get(candidate.key);
    if (known === undefined) return true;
    if (known.etag === candidate.row?.etag) return known.time <= this.options.clock.monotonic();
    this.#notBefore.delete(candidate.key);
    return true;
  }

  async #try(candidate: Candidate, cluster: StoredCluster): Promise<Attempt> {
    const { id, key, row } = candidate;
    if (row === undefined) return this.#take({ id, previous: { kind: 'vacant' }, etag: undefined }, 'vacant', cluster);
    const { session, codec, clock, signal } = this.options;
    const object = await this.#patiently(() => session.read(key, signal && { signal }));
    const readAt = clock.monotonic();
    if (object === undefined) return { kind: 'lost' };
    let state: LeaseState;
    try {
      state = codec.decode(object.body, object.metadata);
    } catch (error) {
      this.#reportDamage(key, `${explain(error)}; left as it is, \`nodelease init --repair --above-version N\` replaces it`);
      return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    }
    const chance = availability(state, object.age, cluster.config.graceMs);
    if (chance.kind === 'retired') return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    if (chance.kind === 'free') return this.#take({ id, previous: state, etag: object.etag }, chance.from, cluster);
    const notBefore = readAt + this.#untilTold(chance.waitMs, object.storeTime);
    // Taken since the listing: that is a race lost, and the rest of the listing is no fresher.
    return { kind: object.etag === row.etag ? 'not-free' : 'lost', notBefore };
  }

  /** How long until a reply can show that an age has grown by `ageMs` since the one of `storeTime`, in milliseconds: a store that cuts its times shows it at its next step. */
  #untilTold(ageMs: number, storeTime: Interval): number {
    const { session } = this.options;
    const { timeStepMs } = session.store;
    const told = session.storeNow();
    if (timeStepMs === 0 || !Number.isFinite(storeTime.max) || !Number.isFinite(told.max)) return ageMs;
    const due = Math.ceil((storeTime.min + ageMs) / timeStepMs) * timeStepMs;
    // The store's time is known within bounds: by its lower one the step is certain. A clock that was set must not make this endless.
    return Math.min(Math.max(0, due - told.min), ageMs + 2 * timeStepMs);
  }

  async #take(claim: Claim, from: Acquisition['from'], cluster: StoredCluster): Promise<Attempt> {
    const tenure = await this.#claimant.take(claim, cluster);
    return tenure === undefined ? { kind: 'lost' } : { kind: 'acquired', acquisition: { ...tenure, from } };
  }

  /** Makes a call that changes nothing again and again while the store is away. */
  #patiently<T>(call: () => Promise<T>): Promise<T> {
    const { clock, random, emit, signal, until } = this.options;
    return retry(call, {
      clock,
      random,
      until,
      baseMs: STORE_RETRY_MS.first,
      capMs: STORE_RETRY_MS.most,
      ...(signal && { signal }),
      shouldRetry: (error) => error instanceof StoreError && error.transient,
      onFailure: (error, _attempt, sleepMs) => emit({ type: 'store-failed', error, sleepMs }),
    });
  }

  #nextChange(): Change | undefined {
    const ignoring = new AbortController();
    const happened = this.options.session.store.changed?.(ignoring.signal);
    if (happened === undefined) return undefined;
    // A watch that fails, or is ignored before anybody waits for it, is no failure and no change: the sleep beside it has an end.
    const quietly = happened.catch(() => new Promise<void>(() => undefined));
    return { happened: quietly, ignore: () => ignoring.abort(new Error('no longer of interest')) };
  }

  /** Sleeps until an expiry is possible or an object may have changed, whichever comes first. */
  async #waitForChance(config: ClusterConfig, expiryAt: number, change: Change | undefined): Promise<void> {
    const { session, clock, random, emit, signal, until } = this.options;
    const now = clock.monotonic();
    if (now >= until) throw new AcquireTimeoutError(this.#timeoutText(config));
    const later = [...this.#notBefore.values()].map((entry) => entry.time).filter((time) => time > now);
    const nextChanceMs = Math.max(0, Math.min(expiryAt, ...later) - now);
    // A little by chance, so that those who wait together do not all ask together.
    const jitterMs = random.next() * Math.min(50, config.durationMs / 100);
    const longestMs = change === undefined ? session.store.pollMs : config.durationMs;
    const sleepMs = Math.min(Math.max(nextChanceMs, LEAST_SLEEP_MS) + jitterMs, longestMs, until - now);
    emit({ type: 'waiting', sleepMs });
    if (change === undefined) await clock.sleep(sleepMs, signal);
    else await this.#sleepOrChange(sleepMs, change);
    // In a busy fleet something changes all the time.
    await sleepUntil(clock, this.#lookedAt + LEAST_PAUSE_MS, signal);
  }

  async #sleepOrChange(sleepMs: number, change: Change): Promise<void> {
    const { clock, signal } = this.options;
    signal?.throwIfAborted();
    const woken = new AbortController();
    const onAbort = () => woken.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([clock.sleep(sleepMs, woken.signal), change.happened]);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      woken.abort();
    }
  }

  #timeoutText(config: ClusterConfig): string {
    const damaged = this.#reported.size === 0 ? '' : `; damaged and not usable: ${[...this.#reported].sort().join(', ')}`;
    return `${this.options.session.store.url}: none of the ${config.size} node ids became free in time; \`nodelease status\` shows who holds them${damaged}`;
  }

  #reportDamage(key: string, problem: string): void {
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.options.emit({ type: 'damaged', key, problem });
  }
}
