import type { Clock, RandomSource } from '../../base/clock.js';
import { StoreUnusableError } from '../../base/errors.js';
import { backoffMs, type Retry, SERVER_AWAY } from '../../base/retry.js';
import { StoreError, type WriteResult } from '../../store/lease-store.js';
import type { Tenure } from '../hold/keeper.js';
import type { LeaseListener } from '../model/lease.js';
import { type EncodedLease, nativeCodec } from '../model/lease-codec.js';
import {
  acquired,
  type HeldLease,
  type LeaseState,
  leaseKey,
  mayBeOutdated,
  previousHolder,
  stampedUntilOf,
} from '../model/lease-state.js';
import { leaseTiming } from '../model/lease-timing.js';
import type { StickySettings } from '../model/sticky.js';
import type { StoredCluster } from '../session/cluster-store.js';
import { isStoreAway, STORE_AWAY_MS, whileStoreIsAway } from '../session/store-retry.js';
import type { StoreSession } from '../session/store-session.js';
import type { ShownDurations } from './shown-durations.js';

/** The context that the parts of acquiring share. */
export interface AcquireContext extends Omit<StickySettings, 'sticky'> {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly taskId: string;
  /** The mark of the task's sticky key. */
  readonly sticky?: string | undefined;
  readonly emit: LeaseListener;
  readonly signal?: AbortSignal | undefined;
  /** The first pause of the wait for a free id, in milliseconds. @default what the store suggests */
  readonly waitPollMs?: number | undefined;
  /** When to stop waiting for holders, on the monotonic clock. */
  readonly until: number;
  readonly shown: ShownDurations;
  /** While the store is away, until then, and for some seconds in any case. */
  readonly retry: Retry;
}

/** A lease that may be taken, with the state that was read. */
export interface FreeLease {
  readonly id: number;
  readonly previous: LeaseState;
  /** Undefined if there is no object. */
  readonly etag: string | undefined;
}

interface AcquiringWrite {
  readonly key: string;
  readonly object: EncodedLease;
  readonly etag: string | undefined;
  readonly expiresAfterMs: number;
}

/** Takes ids: the acquiring write, its outcome, and the check that the store enforces conditions. */
export class Claimant {
  /** The conditions for which this store has refused a write that did not meet them. */
  readonly #refusalSeen = { 'If-None-Match': false, 'If-Match': false };
  #failedWrites = 0;
  /** Until when failed writes in a row are tried again, on the monotonic clock. */
  #failingUntil: number | undefined;

  constructor(private readonly options: AcquireContext) {}

  /**
   * Creates the object if there is none, otherwise replaces the one that was read. Undefined if another task
   * won, or the outcome came too late. In the second case the lease that may exist is left to expire, and its
   * version is spent. So it is where the store has gone back meanwhile (rule 11).
   *
   * The signal does not interrupt it while its own write may be applied: the caller releases the lease that
   * it gets.
   *
   * @throws {StoreUnusableError} when the store ignores conditions
   * @throws {StoreError} when the store refuses, or is away until the time is up
   */
  async take({ id, previous, etag }: FreeLease, cluster: StoredCluster): Promise<Tenure | undefined> {
    const { session, clock, random, taskId, sticky } = this.options;
    const { durationMs, graceMs, longestMs, idWidth, idFloor } = cluster.config;
    const { mark } = cluster.config.epoch ?? {};
    const expiresAfterMs = durationMs + graceMs;
    // Other node ids may have made narrower ids up to the floor.
    const stampedUntil = Math.max(this.#lastIdTimestamp(previous, longestMs, mark), idFloor);
    const held = acquired(previous, {
      taskId,
      nonce: random.hex(12),
      durationMs,
      storeNow: session.storeNow().min,
      stampedUntil,
      idWidth,
      sticky,
      epoch: mark,
    });
    const object = nativeCodec.encode(held);
    const sentAt = clock.monotonic();
    const stopAt = sentAt + durationMs - leaseTiming(durationMs).stopMarginMs;
    const applied = await this.#write({ key: leaseKey(id), object, etag, expiresAfterMs }, held, stopAt);
    if (applied === undefined || clock.monotonic() >= stopAt) return undefined;
    if (!(await this.#isSameEpoch(cluster, stopAt))) return undefined;
    if (session.store.remote && !(await this.#provesConditions(leaseKey(id), object, etag, cluster, stopAt)))
      return undefined;
    const former = previousHolder(previous, sticky);
    return { id, held, etag: applied, sentAt, graceMs, stampedUntil, previous: former };
  }

  /** Whether the last write failed and may be tried again: then no race was lost. */
  get isFailing(): boolean {
    return this.options.clock.monotonic() < (this.#failingUntil ?? 0);
  }

  /** Notes that the store refused a write whose condition did not hold. The condition is not tested again. */
  noteRefusal(header: 'If-None-Match' | 'If-Match'): void {
    this.#refusalSeen[header] = true;
  }

  /**
   * The last id timestamp of the earlier tenures. If it is unknown: the longest duration from now, since their
   * last write is in the past. What a store has lost, it has lost longer than that ago (rule 10).
   */
  #lastIdTimestamp(previous: LeaseState, longestMs: number, epoch: string | undefined): number {
    const { session } = this.options;
    const latest = session.latest(session.storeNow());
    const now = Number.isFinite(latest) ? latest : 0;
    const known = stampedUntilOf(previous) ?? (now && now + longestMs);
    return mayBeOutdated(previous, epoch) ? Math.max(known, now) : known;
  }

  /**
   * Writes, and reads the object back if the outcome is unknown (rule 5). Returns the etag, or undefined if
   * the write was not applied.
   */
  async #write(
    { key, object, etag, expiresAfterMs }: AcquiringWrite,
    held: HeldLease,
    stopAt: number,
  ): Promise<string | undefined> {
    try {
      const result = await this.options.session.write(key, object, etag, { expiresAfterMs });
      this.#note(result, etag);
      this.#failedWrites = 0;
      this.#failingUntil = undefined;
      return result.status === 'written' ? result.etag : undefined;
    } catch (error) {
      if (!(error instanceof StoreError && error.transient)) throw error;
      const applied = error.outcome === 'unknown' ? await this.#readBack(key, held, stopAt) : undefined;
      if (applied === undefined) await this.#pauseAfter(error);
      return applied;
    }
  }

  /** The etag of the task's own write, if the object has it and the read succeeds in time. */
  async #readBack(key: string, held: HeldLease, stopAt: number): Promise<string | undefined> {
    const { session } = this.options;
    try {
      const seen = await this.#toTheEnd(() => session.read(key), stopAt);
      const state = seen && nativeCodec.decode(seen.body, seen.metadata);
      return state?.kind === 'held' && state.nonce === held.nonce ? seen?.etag : undefined;
    } catch (error) {
      this.#throwIfLate(error);
      return undefined;
    }
  }

  /** Pauses before the next scan, for a store that lists but does not write. */
  async #pauseAfter(error: StoreError): Promise<void> {
    const { clock, random, emit, signal, until } = this.options;
    const now = clock.monotonic();
    this.#failingUntil ??= Math.max(until, now + STORE_AWAY_MS);
    if (now >= this.#failingUntil) throw error;
    this.#failedWrites += 1;
    const sleepMs = backoffMs(SERVER_AWAY, this.#failedWrites, random);
    emit({ type: 'store-failed', error, sleepMs });
    await clock.sleep(sleepMs, signal);
  }

  /**
   * Tests the conditions that this tenure depends on: the store must refuse a second copy of the acquiring
   * write, and a replace with another object's etag. An accepted write does no harm, since it repeats the
   * body that is there. The result is not recorded: each task tests for itself.
   */
  async #provesConditions(
    key: string,
    object: EncodedLease,
    etag: string | undefined,
    cluster: StoredCluster,
    stopAt: number,
  ): Promise<boolean> {
    const { session } = this.options;
    for (const condition of etag === undefined ? [undefined, cluster.etag] : [etag]) {
      const header = condition === undefined ? 'If-None-Match' : 'If-Match';
      if (this.#refusalSeen[header]) continue;
      const result = await this.#answered(() => session.write(key, object, condition), stopAt);
      if (result === undefined) return false;
      this.#note(result, condition);
      if (result.status === 'conflict') continue;
      // A store that has gone back meanwhile accepts the copy.
      if (!(await this.#isSameEpoch(cluster, stopAt))) return false;
      const { url } = session.store;
      throw new StoreUnusableError(
        'STORE_UNSAFE',
        `${url}: the store ignores conditional writes (${header}): it would give one node id to several tasks`,
      );
    }
    return true;
  }

  /** Rule 11: whether the store still reports the epoch that the settings record. */
  async #isSameEpoch({ config }: StoredCluster, stopAt: number): Promise<boolean> {
    return (await this.#answered(() => this.options.session.epoch(), stopAt)) === config.epoch?.store;
  }

  #note(result: WriteResult, etag: string | undefined): void {
    if (result.status === 'conflict')
      this.#refusalSeen[etag === undefined ? 'If-None-Match' : 'If-Match'] = true;
  }

  /**
   * Throws a failure of the store that has been retried, if no time is left for another attempt: the next scan
   * would show the own write as another task's.
   */
  #throwIfLate(error: unknown): void {
    const { clock, until } = this.options;
    if (isStoreAway(error) && clock.monotonic() >= until) throw error;
  }

  /** The answer, or undefined where none came while the lease would be of use. */
  async #answered<T>(call: () => Promise<T>, stopAt: number): Promise<T | undefined> {
    try {
      return await this.#toTheEnd(call, stopAt);
    } catch (error) {
      if (!isStoreAway(error)) throw error;
      this.#throwIfLate(error);
      return undefined;
    }
  }

  /** Retries a call while the store is away, until the lease would be of no use or the signal has aborted. */
  #toTheEnd<T>(call: () => Promise<T>, stopAt: number): Promise<T> {
    const { clock, random, emit, signal, until: limit } = this.options;
    const until = Math.min(stopAt, Math.max(limit, clock.monotonic() + STORE_AWAY_MS));
    const options = { clock, random, emit, until, timeoutMs: 0 };
    return whileStoreIsAway(options, (error) => isStoreAway(error) && !signal?.aborted)(call);
  }
}
