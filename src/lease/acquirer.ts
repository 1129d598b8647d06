import { AcquireTimeoutError, explain } from '../errors.js';
import type { BarrenLook } from './barren-look.js';
import { type Claim, Claimant, type ClaimantOptions } from './claim.js';
import type { ClusterConfig } from './cluster-config.js';
import type { StoredCluster } from './cluster-store.js';
import { Draw } from './draw.js';
import type { Tenure } from './keeper.js';
import { ForeignLeaseError } from './lease-codec.js';
import { availability, type LeaseState, revived } from './lease-state.js';
import type { Candidate } from './lease-survey.js';
import { type FirstLook, type Look, Outlook } from './outlook.js';
import { persistently } from './persistently.js';
import { Waiting } from './waiting.js';

/** A node id taken, and from what. */
export interface Acquisition extends Tenure {
  readonly from: 'vacant' | 'released' | 'expired';
}

export interface AcquirerOptions extends ClaimantOptions {
  /** Reads the cluster's settings anew. */
  readonly readCluster: () => Promise<StoredCluster>;
}

/** What is known of a cluster when an id is wanted. */
export interface Beginning {
  readonly cluster: StoredCluster;
  readonly look: FirstLook;
  /** Whether somebody else created the cluster's settings at the same time. */
  readonly raced: boolean;
}

type Attempt =
  | { readonly kind: 'acquired'; readonly acquisition: Acquisition }
  /** `lost`: somebody else was faster. `not-free`: the LIST had raised false hopes. Not to be tried again before `notBefore` unless the LIST changes. */
  | { readonly kind: 'lost' | 'not-free'; readonly notBefore?: number };

/** Who loses a race when time is up tries that many more listings: an id may well be free. */
const LATE_ROUNDS = 8;

/** Finds a free node id and takes it (docs/design/protocol.md, "Acquiring and waiting"). One use each. */
export class Acquirer {
  readonly #draw: Draw;
  readonly #outlook: Outlook;
  readonly #claimant: Claimant;
  #lateRounds = 0;

  constructor(private readonly options: AcquirerOptions) {
    this.#draw = new Draw(options.random);
    this.#outlook = new Outlook({ ...options, draw: this.#draw });
    this.#claimant = new Claimant(options);
  }

  /**
   * @throws {AcquireTimeoutError} when nothing became free in time
   * @throws {StoreUnusableError} when the store turns out to ignore conditions
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async acquire({ cluster, look: first, raced }: Beginning): Promise<Acquisition> {
    const waiting = new Waiting(this.options);
    let wanted: { waited: boolean; parts?: number } = { waited: false };
    if (raced) {
      this.#draw.presumeContention();
      this.#claimant.noteRefusal('If-None-Match');
    }
    try {
      for (let look = await this.#outlook.first(cluster, first); ; look = await this.#outlook.again(look.cluster, wanted)) {
        this.options.signal?.throwIfAborted();
        const taken = await this.#tryInTurn(look);
        if (taken !== undefined && taken !== 'lost') return taken;
        if (taken === 'lost') {
          await this.#spread(look.cluster.config);
          // What is left may be in another part.
          wanted = { waited: wanted.waited };
        }
        // What a part of a listing shows says nothing about the rest.
        if (taken === 'lost' || look.doubtful || !look.asWanted) continue;
        const parts = await waiting.next(this.#barren(look));
        if (parts === 'too-late' && look.listing.complete) throw new AcquireTimeoutError(this.#timeoutText(look.cluster.config));
        wanted = parts === 'too-late' ? { waited: true } : { waited: true, parts };
      }
    } finally {
      waiting.end();
    }
  }

  #barren({ cluster, listing, overdue, listedAt, expiryAt }: Look): BarrenLook {
    const { parts } = this.#outlook;
    const { config } = cluster;
    const later = this.#outlook.later();
    const soon = later.filter((at) => at < listedAt + config.durationMs / 2);
    const times = { lookedAt: listedAt, expiryAt, laterAt: Math.min(...later) };
    return { config, listing, parts, overdue: overdue + soon.length, ...times, losses: this.#draw.losses };
  }

  /** Tries one id after the other; 'lost' means that the listing is out of date. */
  async #tryInTurn({ free, cluster, listing }: Look): Promise<Acquisition | 'lost' | undefined> {
    const rest = [...free];
    const lossesBefore = this.#draw.losses;
    // To ask for one object is cheaper than to list many pages anew.
    let spare = listing.pages - 1;
    while (rest.length > 0) {
      this.options.signal?.throwIfAborted();
      const candidate = this.#draw.next(rest);
      const attempt = await this.#try(candidate, cluster);
      if (attempt.kind === 'acquired') return attempt.acquisition;
      if (attempt.notBefore !== undefined) this.#outlook.dismiss(candidate, attempt.notBefore);
      if (attempt.kind === 'not-free' || this.#draw.lost()) continue;
      if (spare === 0) return 'lost';
      spare -= 1;
    }
    return this.#draw.losses > lossesBefore ? 'lost' : undefined;
  }

  /**
   * Leaves those who won to themselves for a moment, so that the next listing shows what they have taken.
   *
   * @throws {AcquireTimeoutError} when time has been up for a while
   */
  async #spread(config: ClusterConfig): Promise<void> {
    const { session, clock, signal, until } = this.options;
    if (clock.monotonic() >= until) this.#lateRounds += 1;
    if (this.#lateRounds > LATE_ROUNDS) throw new AcquireTimeoutError(this.#timeoutText(config));
    const sleepMs = Math.min(this.#draw.spreadMs(session.requestMs ?? 0), until - clock.monotonic());
    if (sleepMs > 0) await clock.sleep(sleepMs, signal);
  }

  async #try(candidate: Candidate, cluster: StoredCluster): Promise<Attempt> {
    const { id, key, row } = candidate;
    if (row === undefined) return this.#take({ id, previous: { kind: 'vacant' }, etag: undefined }, 'vacant', cluster);
    const { session, codec, clock, signal } = this.options;
    const object = await persistently(this.options, () => session.read(key, signal && { signal }));
    const readAt = clock.monotonic();
    if (object === undefined) return { kind: 'lost' };
    let state: LeaseState;
    try {
      state = revived(codec.decode(object.body, object.metadata), cluster.config.generation);
    } catch (error) {
      const advice = error instanceof ForeignLeaseError ? '' : ', `nodelease init --repair --above-version N` replaces it';
      this.#outlook.reportDamage(key, `${explain(error)}; left as it is${advice}`);
      return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    }
    const chance = availability(state, object.age, cluster.config.graceMs);
    if (chance.kind === 'retired') return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    if (chance.kind === 'free') return this.#take({ id, previous: state, etag: object.etag }, chance.from, cluster);
    const notBefore = readAt + session.untilTold(chance.waitMs, object.storeTime);
    // Taken since the listing: that is a race lost, and the rest of the listing is no fresher.
    return { kind: object.etag === row.etag ? 'not-free' : 'lost', notBefore };
  }

  async #take(claim: Claim, from: Acquisition['from'], cluster: StoredCluster): Promise<Attempt> {
    const tenure = await this.#claimant.take(claim, cluster);
    return tenure === undefined ? { kind: 'lost' } : { kind: 'acquired', acquisition: { ...tenure, from } };
  }

  #timeoutText(config: ClusterConfig): string {
    const { damaged } = this.#outlook;
    const unusable = damaged.length === 0 ? '' : `; damaged and not usable: ${damaged.join(', ')}`;
    return `${this.options.session.store.url}: none of the ${config.size} node ids became free in time; \`nodelease status\` shows who holds them${unusable}`;
  }
}
