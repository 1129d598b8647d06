import { AcquireTimeoutError, explain } from '../../base/errors.js';
import type { Tenure } from '../hold/keeper.js';
import { SETTLING } from '../model/cluster-config.js';
import { foreignError } from '../model/foreign-cluster.js';
import { LeaseUnreadableError, nativeCodec } from '../model/lease-codec.js';
import { availability, type LeaseState, revived } from '../model/lease-state.js';
import type { StoredCluster } from '../session/cluster-store.js';
import { type CandidateScan, CandidateScanner } from './candidate-scan.js';
import { type Candidate, CandidateChoice } from './candidates.js';
import { type AcquireContext, Claimant, type FreeLease } from './claim.js';
import type { PartialListing } from './partial-listing.js';
import { Preference } from './preference.js';
import { settleEpoch } from './settled-epoch.js';
import { type ScanPlan, WaitForFreeId } from './wait-for-free-id.js';

/** An acquired node id, and its state before. */
interface Acquisition extends Tenure {
  readonly from: 'vacant' | 'released' | 'expired';
  /** The settings by which it was acquired. */
  readonly cluster: StoredCluster;
}

/** What is known of a cluster when acquiring begins. */
export interface Beginning {
  readonly cluster: StoredCluster;
  /** Begun before the settings were read. */
  readonly listing: PartialListing;
  /** Whether another task created the cluster's settings at the same time. */
  readonly raced: boolean;
}

/** What trying one candidate led to. */
type CandidateOutcome =
  | { readonly kind: 'acquired'; readonly acquisition: Acquisition }
  /**
   * `lost`: another task won. `not-free`: the listing showed it as free, its object does not. The candidate
   * is not tried again before `notBefore`, on the monotonic clock, unless its row changes.
   */
  | { readonly kind: 'lost' | 'not-free'; readonly notBefore?: number };

/** What trying the candidates of a scan led to. */
type ScanOutcome =
  | { readonly kind: 'acquired'; readonly acquisition: Acquisition }
  /** Other tasks won: the listing is out of date. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'none-free' };

const ALL_PAGES: ScanPlan = { pages: 'all' };

/** Number of further scans after a race that was lost when the time was up: an id may still be free. */
const LATE_ROUNDS = 8;

/** Finds a free node id and takes it (docs/design/protocol.md, "Acquiring and waiting"). Used once. */
export class Acquirer {
  readonly #choice: CandidateChoice;
  readonly #scanner: CandidateScanner;
  readonly #claimant: Claimant;
  readonly #preference: Preference;
  #lateRounds = 0;
  /**
   * The problem of an object that belongs to another program. If there is one, the task fails instead of
   * waiting.
   */
  #foreign: string | undefined;

  constructor(private readonly options: AcquireContext) {
    this.#choice = new CandidateChoice(options.random);
    this.#scanner = new CandidateScanner(options, this.#choice);
    this.#claimant = new Claimant(options);
    this.#preference = new Preference(options);
  }

  /**
   * @throws {AcquireTimeoutError} when no id became free in time
   * @throws {StoreUnusableError} when the store ignores conditions
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async acquire({ cluster, listing, raced }: Beginning): Promise<Acquisition> {
    if (raced) {
      this.#choice.presumeContention();
      this.#claimant.noteRefusal('If-None-Match');
    }
    const wait = new WaitForFreeId(this.options);
    try {
      // 1. Scan. With a sticky key, wait until the former id is free.
      let scan = await this.#waitForFormer(await this.#scanner.first(cluster, listing));
      for (;;) {
        this.options.signal?.throwIfAborted();
        // 2. Try the candidates, one after the other, in a store that has not gone back.
        scan = await this.#whileSettling(scan);
        const outcome = await this.#tryInTurn(scan);
        if (outcome.kind === 'acquired') return outcome.acquisition;
        // 3. Scan again: soon after a lost race, at once if there may be more candidates, otherwise after a wait.
        if (outcome.kind === 'lost') {
          wait.restart();
          await this.#pauseAfterLoss(scan);
        }
        const waits = outcome.kind === 'none-free' && scan.isConclusive;
        const plan = waits ? await this.#untilWorthAScan(wait, scan) : ALL_PAGES;
        scan = await this.#scanner.again(scan.cluster, plan, wait.hasBegun);
      }
    } finally {
      wait.end();
    }
  }

  /**
   * Waits after a scan that found no free id.
   * @throws {AcquireTimeoutError} when the time is up, and the scan showed all leases
   */
  async #untilWorthAScan(wait: WaitForFreeId, scan: CandidateScan): Promise<ScanPlan> {
    if (this.#foreign !== undefined) throw foreignError(this.options.session.store.url, this.#foreign);
    const { scannedAt, listing, cluster } = scan;
    const { complete } = listing;
    const { durationMs } = cluster.config;
    const plan = await wait.next({ durationMs, scannedAt, complete, ...this.#scanner.firstExpiry(scan) });
    if (plan !== 'too-late') return plan;
    if (complete) throw new AcquireTimeoutError(this.#timeoutText(scan));
    return ALL_PAGES;
  }

  /**
   * Waits for the lease of a task with the same key that has not been released, as after a kill: until it can
   * be found expired, is renewed by a living task, or the sticky wait is over.
   */
  async #waitForFormer(first: CandidateScan): Promise<CandidateScan> {
    const { clock, signal, emit, until, sticky, stickyWaitMs = 0 } = this.options;
    const former =
      sticky !== undefined && stickyWaitMs > 0 ? await this.#preference.former(first) : undefined;
    const limit = Math.min(until, clock.monotonic() + stickyWaitMs);
    let scan = first;
    while (former !== undefined && clock.monotonic() < limit) {
      const expiryAt = this.#preference.expiryOf(former, scan);
      if (expiryAt === undefined) break;
      // A living task renews more often than that.
      const lookAt = clock.monotonic() + scan.cluster.config.durationMs / 2;
      const sleepMs = Math.max(0, Math.min(limit, expiryAt, lookAt) - clock.monotonic());
      emit({ type: 'waiting', sleepMs, why: `its former node id ${former.id} is not free yet` });
      await clock.sleep(sleepMs, signal);
      scan = await this.#scanner.again(scan.cluster, ALL_PAGES, true);
    }
    return scan;
  }

  /**
   * Scans again until the store's epoch is settled: before that, an id that looks free may be held (rule 10).
   * Asks for nothing where no id looks free, and none is damaged: its object may be lost.
   *
   * @returns a scan before which the store reported the epoch of its settings
   * @throws {AcquireTimeoutError} when the time is up
   */
  async #whileSettling(first: CandidateScan): Promise<CandidateScan> {
    const { session, clock, signal, emit, until } = this.options;
    for (let scan = first; ; scan = await this.#scanner.again(scan.cluster, ALL_PAGES, true)) {
      if (scan.candidates.length === 0 && this.#scanner.damaged.length === 0) return scan;
      const step = await settleEpoch(this.options, scan.cluster);
      if (step.kind === 'settled') return scan;
      if (step.kind === 'recorded') continue;
      const now = clock.monotonic();
      const restMs = step.until + 1 - now;
      // Where each task has to watch for itself, tasks that do not wait would never get anything.
      const leftMs = scan.cluster.isObserved ? restMs : until - now;
      const sleepMs = Math.max(0, Math.min(restMs, leftMs));
      emit({ type: 'waiting', sleepMs, why: SETTLING });
      if (leftMs <= 0)
        throw new AcquireTimeoutError(`${session.store.url}: ${SETTLING}: ${Math.ceil(restMs)} ms from now`);
      await clock.sleep(sleepMs, signal);
    }
  }

  /** Tries one id after the other. */
  async #tryInTurn({ candidates, cluster, listing }: CandidateScan): Promise<ScanOutcome> {
    const lossesBefore = this.#choice.losses;
    const groups = await this.#preference.inOrder(candidates, lossesBefore > 0);
    // Reading one object is cheaper than listing many pages again.
    let spare = listing.pages - 1;
    for (const rest of groups)
      while (rest.length > 0) {
        this.options.signal?.throwIfAborted();
        const candidate = this.#choice.next(rest);
        const outcome = await this.#try(candidate, cluster);
        if (outcome.kind === 'acquired') return outcome;
        if (outcome.notBefore !== undefined) this.#scanner.dismiss(candidate, outcome.notBefore);
        if (outcome.kind === 'not-free' || this.#choice.lost()) continue;
        if (spare === 0) return { kind: 'lost' };
        spare -= 1;
      }
    return { kind: this.#choice.losses > lossesBefore ? 'lost' : 'none-free' };
  }

  /**
   * Waits a moment after a lost race, so that the next listing shows the ids that the winners took.
   *
   * @throws {AcquireTimeoutError} when the time is up, and `LATE_ROUNDS` further scans found no id
   */
  async #pauseAfterLoss(scan: CandidateScan): Promise<void> {
    const { session, clock, signal, until } = this.options;
    if (clock.monotonic() >= until && !this.#claimant.isFailing) this.#lateRounds += 1;
    if (this.#lateRounds > LATE_ROUNDS) throw new AcquireTimeoutError(this.#timeoutText(scan));
    const sleepMs = Math.min(
      this.#choice.pauseAfterLossMs(session.requestMs ?? 0),
      until - clock.monotonic(),
    );
    if (sleepMs > 0) await clock.sleep(sleepMs, signal);
  }

  async #try(candidate: Candidate, cluster: StoredCluster): Promise<CandidateOutcome> {
    const { id, key, row } = candidate;
    if (row === undefined)
      return this.#take({ id, previous: { kind: 'vacant' }, etag: undefined }, 'vacant', cluster);
    const { config } = cluster;
    const { session, clock, retry, shown } = this.options;
    const object = await retry((call) => session.read(key, call));
    const readAt = clock.monotonic();
    if (object === undefined) return { kind: 'lost' };
    shown.note(object);
    let state: LeaseState;
    try {
      state = revived(nativeCodec.decode(object.body, object.metadata), config.generation);
    } catch (error) {
      const isForeign = error instanceof LeaseUnreadableError && error.isForeign;
      if (isForeign) this.#foreign = `${key} ${error.problem}`;
      const advice = isForeign ? '' : ', `nodelease init --repair --above-version N` replaces it';
      this.#scanner.reportDamage(key, `${explain(error)}; left as it is${advice}`);
      return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    }
    const chance = availability(state, object.age, config.graceMs);
    if (chance.kind === 'retired') return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    if (chance.kind === 'free')
      return this.#take({ id, previous: state, etag: object.etag }, chance.from, cluster);
    const notBefore = readAt + session.untilTold(chance.waitMs, object);
    // A changed etag means that another task took it after the listing. The rest of the listing is just as
    // old.
    return { kind: object.etag === row.etag ? 'not-free' : 'lost', notBefore };
  }

  async #take(free: FreeLease, from: Acquisition['from'], cluster: StoredCluster): Promise<CandidateOutcome> {
    const tenure = await this.#claimant.take(free, cluster);
    if (tenure === undefined) return { kind: 'lost' };
    return { kind: 'acquired', acquisition: { ...tenure, from, cluster } };
  }

  #timeoutText({ cluster: { config }, listing }: CandidateScan): string {
    const { damaged } = this.#scanner;
    const unusable = damaged.length === 0 ? '' : `; damaged and not usable: ${damaged.join(', ')}`;
    const isObserved = listing.objects.some(({ age }) => age.max === Number.POSITIVE_INFINITY);
    const needMs = config.durationMs + config.graceMs;
    const observed = isObserved
      ? `; the store reports no time of writing, so an expired lease is found after ${needMs} ms of waiting`
      : '';
    const { url } = this.options.session.store;
    return `${url}: ${config.size === 1 ? 'its only node id did not become' : `none of the ${config.size} node ids became`} free in time; \`nodelease status\` shows who holds them${observed}${unusable}`;
  }
}
