import type { Clock, RandomSource } from '../clock.js';
import { AcquireTimeoutError, explain, StoreUnusableError } from '../errors.js';
import { StoreError, type WriteResult } from '../store/lease-store.js';
import type { ClusterConfig } from './cluster-config.js';
import type { StoredCluster } from './cluster-store.js';
import type { Tenure } from './keeper.js';
import type { LeaseListener } from './lease.js';
import type { EncodedLease, LeaseCodec } from './lease-codec.js';
import { acquired, availability, type HeldLease, type LeaseState } from './lease-state.js';
import { type Candidate, survey } from './lease-survey.js';
import { leaseTiming } from './lease-timing.js';
import { retry } from './retry.js';
import type { StoreSession } from './store-session.js';

/** A node id taken, and from what. */
export interface Acquisition extends Tenure {
  readonly from: 'vacant' | 'released' | 'expired';
}

export interface AcquirerOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly codec: LeaseCodec;
  readonly taskId: string;
  /** Reads the cluster's settings anew. */
  readonly readCluster: () => Promise<StoredCluster>;
  readonly emit: LeaseListener;
  readonly signal?: AbortSignal;
  /** When to stop waiting, on the monotonic clock. */
  readonly until: number;
}

/** A change of some object that may or may not come. */
interface Change {
  /** Never rejects. */
  readonly happened: Promise<void>;
  ignore(): void;
}

type Attempt =
  | { readonly kind: 'acquired'; readonly acquisition: Acquisition }
  /** Somebody else was faster. */
  | { readonly kind: 'lost' }
  /** The LIST had raised false hopes; not to be tried again before `notBefore` unless the object changes. */
  | { readonly kind: 'not-free'; readonly notBefore: number };

/** How often to look while a lease is about to be found expired by a store that tells whole seconds only, in milliseconds. */
const EXPIRY_POLL_MS = 200;

/** Finds a free node id and takes it (DESIGN 5). One use each. */
export class Acquirer {
  /** True once a race was lost: then ids are drawn at random, so that starters spread out. */
  #contended = false;
  /** True once this store has refused a write whose condition did not hold. */
  readonly #refusalSeen = { 'If-None-Match': false, 'If-Match': false };
  /** Objects that are not free although they look it: not before that time of the monotonic clock, unless their etag changes. */
  readonly #notBefore = new Map<string, { etag: string | undefined; time: number }>();
  readonly #reported = new Set<string>();

  constructor(private readonly options: AcquirerOptions) {}

  /**
   * @throws {AcquireTimeoutError} when nothing became free in time
   * @throws {StoreUnusableError} when the store turns out to ignore conditions
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async acquire(known: StoredCluster): Promise<Acquisition> {
    let change: Change | undefined;
    try {
      for (let round = 0, cluster = known; ; round += 1) {
        this.options.signal?.throwIfAborted();
        const look = await this.#look(cluster, round > 0);
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
  async #look(known: StoredCluster, again: boolean): Promise<{ cluster: StoredCluster; free: readonly Candidate[]; expiryAt: number }> {
    const { session, clock, codec } = this.options;
    const listing = await this.#patiently(() => session.list());
    const listedAt = clock.monotonic();
    let cluster = known;
    let found = survey(listing, cluster.config, codec);
    if (again && found.absent.length > 0 && !cluster.config.bootstrapped) {
      // An absent object is a vacancy only while bootstrap goes on; what we knew of that may be old.
      cluster = await this.#patiently(() => this.options.readCluster());
      found = survey(listing, cluster.config, codec);
    }
    const free = found.candidates.filter((candidate) => this.#worthTrying(candidate, cluster.config));
    return { cluster, free, expiryAt: listedAt + found.earliestExpiryMs };
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
      if (attempt.kind === 'not-free') {
        this.#notBefore.set(candidate.key, { etag: candidate.row?.etag, time: attempt.notBefore });
        continue;
      }
      losses += 1;
      if (!this.#contended || losses === 2) {
        this.#contended = true;
        return 'lost';
      }
    }
    return losses > 0 ? 'lost' : undefined;
  }

  #worthTrying(candidate: Candidate, config: ClusterConfig): boolean {
    if (candidate.row === undefined && config.bootstrapped) {
      this.#reportDamage(
        candidate.key,
        'is absent although the cluster is bootstrapped: somebody deleted it, and its version with it; `nodelease init --repair` restores it',
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
    if (candidate.row === undefined) return this.#take(candidate, { kind: 'vacant' }, undefined, 'vacant', cluster);
    const { session, codec, clock } = this.options;
    const object = await this.#patiently(() => session.read(candidate.key));
    const readAt = clock.monotonic();
    if (object === undefined) return { kind: 'lost' };
    let state: LeaseState;
    try {
      state = codec.decode(object.body, object.metadata);
    } catch (error) {
      this.#reportDamage(candidate.key, explain(error));
      return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    }
    const chance = availability(state, object.age, cluster.config.graceMs);
    if (chance.kind === 'retired') return { kind: 'not-free', notBefore: Number.POSITIVE_INFINITY };
    if (chance.kind === 'held') {
      // The lower bound lags behind the true age, by up to half the interval's width on a store that tells whole seconds.
      const lag = (object.age.max - object.age.min) / 2;
      const soonest = Number.isFinite(lag) ? chance.waitMs - lag : chance.waitMs;
      return { kind: 'not-free', notBefore: readAt + Math.max(soonest, Math.min(chance.waitMs, EXPIRY_POLL_MS)) };
    }
    return this.#take(candidate, state, object.etag, chance.from, cluster);
  }

  /** The acquiring write: create where there is no object, else replace what was read. */
  async #take(
    candidate: Candidate,
    previous: LeaseState,
    etag: string | undefined,
    from: 'vacant' | 'released' | 'expired',
    cluster: StoredCluster,
  ): Promise<Attempt> {
    const { session, clock, random, codec, taskId } = this.options;
    const claim = { taskId, nonce: random.hex(12), durationMs: cluster.config.durationMs, storeNow: session.storeNow().min };
    const held = acquired(previous, claim);
    const object = codec.encode(held);
    const sentAt = clock.monotonic();
    const applied = await this.#writeOnce(candidate.key, object, etag, held);
    if (applied === undefined) return { kind: 'lost' };
    const tenure = { id: candidate.id, held, etag: applied, sentAt, from };
    const timing = leaseTiming(held.durationMs);
    const stopAt = sentAt + timing.durationMs - timing.stopMarginMs;
    // Learned too late to be of use: the lease is left to expire, and its version is spent.
    if (clock.monotonic() >= stopAt) return { kind: 'lost' };
    if (session.store.remote && !(await this.#provesConditions(candidate.key, object, etag, cluster, stopAt))) return { kind: 'lost' };
    return { kind: 'acquired', acquisition: tenure };
  }

  /** Writes, and where the outcome stays unknown reads it back (rule 5). The etag, or undefined when the write was not applied. */
  async #writeOnce(key: string, object: EncodedLease, etag: string | undefined, held: HeldLease): Promise<string | undefined> {
    const { session, codec } = this.options;
    try {
      const result = await session.write(key, object, etag);
      this.#note(result, etag);
      return result.status === 'written' ? result.etag : undefined;
    } catch (error) {
      if (!(error instanceof StoreError && error.transient)) throw error;
      if (error.outcome === 'not-applied') return undefined;
    }
    const seen = await this.#patiently(() => session.read(key));
    if (seen === undefined) return undefined;
    try {
      const state = codec.decode(seen.body, seen.metadata);
      return state.kind === 'held' && state.nonce === held.nonce ? seen.etag : undefined;
    } catch {
      return undefined;
    }
  }

  #note(result: WriteResult, etag: string | undefined): void {
    if (result.status === 'conflict') this.#refusalSeen[etag === undefined ? 'If-None-Match' : 'If-Match'] = true;
  }

  /**
   * The conditions that this tenure rests on, put to the test: the acquiring write, sent once more, must be refused now, and so
   * must a replace with another object's etag. A store that takes either ignores conditions, and would give the same id to
   * everybody. Nothing is spoilt by asking, for the body is the one that stands there; what has been seen refused is not asked again.
   */
  async #provesConditions(
    key: string,
    object: EncodedLease,
    etag: string | undefined,
    cluster: StoredCluster,
    until: number,
  ): Promise<boolean> {
    const conditions = etag === undefined ? [undefined, cluster.etag] : [etag];
    for (const condition of conditions) {
      const header = condition === undefined ? 'If-None-Match' : 'If-Match';
      if (this.#refusalSeen[header]) continue;
      let result: WriteResult;
      try {
        result = await this.#patiently(() => this.options.session.write(key, object, condition), until);
      } catch (error) {
        if (error instanceof StoreError && error.transient) return false;
        throw error;
      }
      this.#note(result, condition);
      if (result.status === 'conflict') continue;
      const { url } = this.options.session.store;
      throw new StoreUnusableError(`${url}: the store ignores conditional writes (${header}): it would give one node id to several tasks`);
    }
    return true;
  }

  /** Makes a call that changes nothing twice over, again and again while the store is away. */
  #patiently<T>(call: () => Promise<T>, until = this.options.until): Promise<T> {
    const { clock, random, emit, signal } = this.options;
    return retry(call, {
      clock,
      random,
      until,
      baseMs: 100,
      capMs: 2_000,
      ...(signal && { signal }),
      shouldRetry: (error) => error instanceof StoreError && error.transient,
      onFailure: (error, _attempt, sleepMs) => emit({ type: 'store-failed', error, sleepMs }),
    });
  }

  #nextChange(): Change | undefined {
    const ignoring = new AbortController();
    const happened = this.options.session.store.changed?.(ignoring.signal);
    if (happened === undefined) return undefined;
    // A watch that fails, or is ignored before anybody waits for it, is no failure: the sleep beside it has an end.
    const quietly = happened.catch(() => undefined);
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
    const sleepMs = Math.min(nextChanceMs + jitterMs, longestMs, until - now);
    emit({ type: 'waiting', sleepMs });
    const woken = new AbortController();
    const onAbort = () => woken.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([clock.sleep(sleepMs, woken.signal), ...(change ? [change.happened] : [])]);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      woken.abort();
    }
  }

  #timeoutText(config: ClusterConfig): string {
    const damaged = this.#reported.size === 0 ? '' : `; damaged and not usable: ${[...this.#reported].sort().join(', ')}`;
    return `${this.options.session.store.url}: none of the ${config.size} node ids became free in time${damaged}`;
  }

  #reportDamage(key: string, problem: string): void {
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.options.emit({ type: 'damaged', key, problem });
  }
}
