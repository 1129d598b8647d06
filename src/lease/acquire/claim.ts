import { backoffMs, SERVER_AWAY } from '../../base/backoff.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { StoreUnusableError } from '../../base/errors.js';
import type { Retry } from '../../base/retry.js';
import { StoreError, type WriteResult } from '../../store/lease-store.js';
import type { Tenure } from '../hold/keeper.js';
import type { LeaseListener } from '../model/lease.js';
import { type EncodedLease, nativeCodec } from '../model/lease-codec.js';
import { acquired, type HeldLease, type LeaseState, leaseKey, stampedUntilOf } from '../model/lease-state.js';
import { leaseTiming } from '../model/lease-timing.js';
import type { StoredCluster } from '../session/cluster-store.js';
import { isStoreAway, whileStoreIsAway } from '../session/store-retry.js';
import type { StoreSession } from '../session/store-session.js';

/** What the parts of acquiring work with. */
export interface AcquireContext {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly taskId: string;
  readonly emit: LeaseListener;
  readonly signal?: AbortSignal | undefined;
  /** When to stop trying, on the monotonic clock. */
  readonly until: number;
  /** While the store is away, until then. */
  readonly retry: Retry;
}

/** An id that may be taken, as it was read. */
export interface Claim {
  readonly id: number;
  readonly previous: LeaseState;
  /** Undefined where there is no object. */
  readonly etag: string | undefined;
}

interface AcquiringWrite {
  readonly key: string;
  readonly object: EncodedLease;
  readonly etag: string | undefined;
  readonly expiresAfterMs: number;
}

/** Takes ids: the acquiring write, its outcome, and the check that the store keeps its conditions. */
export class Claimant {
  /** Conditions for which this store has refused a write that did not meet them. */
  readonly #refusalSeen = { 'If-None-Match': false, 'If-Match': false };
  #failedWrites = 0;

  constructor(private readonly options: AcquireContext) {}

  /**
   * Creates the object where there is none, else replaces what was read. Undefined when another task was
   * faster, or the outcome came too late to be of use: then the lease that may stand there is left to expire,
   * and its version is spent.
   *
   * The signal does not interrupt it while an own write may stand: the caller gives back what it gets.
   *
   * @throws {StoreUnusableError} when the store ignores conditions
   * @throws {StoreError} when the store refuses, or is away and time is up
   */
  async take({ id, previous, etag }: Claim, cluster: StoredCluster): Promise<Tenure | undefined> {
    const { session, clock, random, taskId } = this.options;
    const { durationMs, graceMs, idWidth, idFloor } = cluster.config;
    const expiresAfterMs = durationMs + graceMs;
    // Other node ids may have made narrower ids up to the floor.
    const stampedUntil = Math.max(this.#lastIdTimestamp(previous, durationMs), idFloor);
    const held = acquired(previous, {
      taskId,
      nonce: random.hex(12),
      durationMs,
      storeNow: session.storeNow().min,
      stampedUntil,
      idWidth,
    });
    const object = nativeCodec.encode(held);
    const sentAt = clock.monotonic();
    const stopAt = sentAt + durationMs - leaseTiming(durationMs).stopMarginMs;
    const applied = await this.#write({ key: leaseKey(id), object, etag, expiresAfterMs }, held, stopAt);
    if (applied === undefined || clock.monotonic() >= stopAt) return undefined;
    if (session.store.remote && !(await this.#provesConditions(leaseKey(id), object, etag, cluster, stopAt)))
      return undefined;
    return { id, held, etag: applied, sentAt, expiresAfterMs, stampedUntil };
  }

  /** Takes note that the store has refused a write whose condition did not hold: it is not tested again. */
  noteRefusal(header: 'If-None-Match' | 'If-Match'): void {
    this.#refusalSeen[header] = true;
  }

  /**
   * The last id timestamp of the tenures before; where none is known, a duration from now: their last write
   * is in the past.
   */
  #lastIdTimestamp(previous: LeaseState, durationMs: number): number {
    const { session } = this.options;
    const now = session.latest(session.storeNow());
    return stampedUntilOf(previous) ?? (Number.isFinite(now) ? now + durationMs : 0);
  }

  /**
   * Writes, and where the outcome stays unknown reads it back (rule 5). The etag, or undefined when the write
   * was not applied.
   */
  async #write(
    { key, object, etag, expiresAfterMs }: AcquiringWrite,
    held: HeldLease,
    stopAt: number,
  ): Promise<string | undefined> {
    try {
      const result = await this.options.session.write(key, object, etag, { expiresAfterMs });
      this.#note(result, etag);
      return result.status === 'written' ? result.etag : undefined;
    } catch (error) {
      if (!(error instanceof StoreError && error.transient)) throw error;
      const applied = error.outcome === 'unknown' ? await this.#readBack(key, held, stopAt) : undefined;
      if (applied === undefined) await this.#pauseAfter(error);
      return applied;
    }
  }

  /** The etag of the own write, where that was applied and is read in time. */
  async #readBack(key: string, held: HeldLease, stopAt: number): Promise<string | undefined> {
    const { session } = this.options;
    try {
      const seen = await this.#toTheEnd(() => session.read(key), stopAt);
      const state = seen && nativeCodec.decode(seen.body, seen.metadata);
      return state?.kind === 'held' && state.nonce === held.nonce ? seen?.etag : undefined;
    } catch {
      return undefined;
    }
  }

  /** Gives a store time that lists but does not write, before the next scan. */
  async #pauseAfter(error: StoreError): Promise<void> {
    const { clock, random, emit, signal, until } = this.options;
    if (clock.monotonic() >= until) throw error;
    this.#failedWrites += 1;
    const sleepMs = backoffMs(SERVER_AWAY, this.#failedWrites, random);
    emit({ type: 'store-failed', error, sleepMs });
    await clock.sleep(sleepMs, signal);
  }

  /**
   * Tests the conditions that this tenure rests on: the store must refuse the acquiring write when it is sent
   * once more, and a replace with another object's etag. This does no harm, since the body is the same.
   * The result is not recorded: each task tests for itself.
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
      let result: WriteResult;
      try {
        result = await this.#toTheEnd(() => session.write(key, object, condition), stopAt);
      } catch (error) {
        if (error instanceof StoreError && error.transient) return false;
        throw error;
      }
      this.#note(result, condition);
      if (result.status === 'conflict') continue;
      const { url } = session.store;
      throw new StoreUnusableError(
        `${url}: the store ignores conditional writes (${header}): it would give one node id to several tasks`,
      );
    }
    return true;
  }

  #note(result: WriteResult, etag: string | undefined): void {
    if (result.status === 'conflict')
      this.#refusalSeen[etag === undefined ? 'If-None-Match' : 'If-Match'] = true;
  }

  /**
   * Retries a call while the store is away, until the lease is of no use; not once the caller has given up.
   */
  #toTheEnd<T>(call: () => Promise<T>, stopAt: number): Promise<T> {
    const { clock, random, emit, signal, until } = this.options;
    const options = { clock, random, emit, until: Math.min(stopAt, until) };
    return whileStoreIsAway(options, (error) => isStoreAway(error) && !signal?.aborted)(call);
  }
}
