import { anySignal } from '../../core/base/abort.js';
import type { RandomSource } from '../../core/base/clock.js';
import { StoreUnusableError } from '../../core/base/errors.js';
import type { Retry } from '../../core/base/retry.js';
import { detached, type LeaseListener } from '../../core/lease/model/lease.js';
import {
  type LeaseUnreadableError,
  parseObject,
  readAs,
  readInteger,
  readString,
  readTime,
} from '../../core/lease/model/lease-codec.js';
import { isStoreAway, whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import type { TickReport } from '../wire/cluster-snapshot.js';
import { isSameTick, type Schedule } from './schedule.js';

/** The key of the last claimed tick, in the store of a lock. */
export const TICK_KEY = 'tick.json';

/** `tick.json`: the tick that was claimed last. It is changed by compare-and-swap to later ticks only (rule O2). */
export interface TickRecord extends TickReport {
  /** The token of the lock under which it was claimed; 0 where it was forgotten. */
  readonly token: number;
  /** Random, for each claim. */
  readonly nonce: string;
  /** The schedule of the task. */
  readonly schedule: string;
}

type TickClaim = Pick<TickRecord, 'tick' | 'attempt' | 'missed'>;

/** What a task may do about a schedule's ticks now. */
type TickState =
  /** No task has claimed the due tick. */
  | { readonly status: 'due'; readonly claim: TickClaim }
  | { readonly status: 'claimed' }
  /** It is claimed, and the next one comes in so many milliseconds (rule O8). */
  | { readonly status: 'soon'; readonly waitMs: number };

/** A task, as it asks for ticks. */
interface TickTask {
  readonly taskId: string;
  readonly random: RandomSource;
  /** How often a tick may be claimed again that has no success (rule O5). */
  readonly retry: number;
  /** Whether the latest missed tick comes before the due one (rule O9). */
  readonly catchUp: boolean;
  readonly onEvent?: LeaseListener | undefined;
}

/** The most missed ticks that are counted. */
export const MAX_MISSED = 1_000;
/** The longest pause between two looks whether another task has claimed the tick, in milliseconds. */
const MAX_PAUSE_MS = 5_000;
/** How near the next tick must be for a wait: a share of the period, and at most so many milliseconds. */
const SOON = { share: 1 / 10, maxMs: 300_000 };

/** `tick.json` of one lock, and what follows from it for one task and its schedule. */
export class Ticks {
  constructor(
    readonly session: StoreSession,
    readonly schedule: Schedule,
    readonly task: TickTask,
  ) {}

  /** Retries while the store is away. */
  away(signal: AbortSignal | undefined, until?: number, mayPass = isStoreAway): Retry {
    const { random, onEvent } = this.task;
    const { clock } = this.session;
    return whileStoreIsAway({ clock, random, signal, until, emit: detached(onEvent) }, mayPass);
  }

  /**
   * Reads the last claim.
   *
   * @throws {StoreUnusableError} where it is damaged, or the store has no time (rules O1 and O10)
   * @throws {StoreError}
   */
  look(signal: AbortSignal | undefined) {
    const { session } = this;
    return this.away(signal)(async (call) => {
      const object = await session.read(TICK_KEY, call);
      // A read of nothing says no time.
      if (object === undefined) await session.list(call);
      const now = session.storeNow();
      if (!Number.isFinite(now.max))
        throw new StoreUnusableError('STORE_UNSUPPORTED', `${session.store.url}: the store says no time`);
      const previous = object && this.#decode(object.body);
      const tick = this.schedule.last(now.min);
      return { ...this.#state(now.min, session.latest(now), previous), tick, previous, etag: object?.etag };
    });
  }

  /**
   * Waits for the lock of a tick, and gives up as soon as another task has claimed the tick, or it is due no more:
   * resolves to undefined then.
   */
  async whileDue<T>(
    tick: number,
    acquire: (signal: AbortSignal) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    const { clock, pollMs } = this.session;
    const over = new AbortController();
    const either = anySignal(signal, over.signal);
    const watch = async () => {
      for (let pauseMs = pollMs; ; pauseMs = Math.min(pauseMs * 1.5, MAX_PAUSE_MS)) {
        await clock.sleep(pauseMs * (0.8 + 0.4 * this.task.random.next()), either.signal);
        const state = await this.look(either.signal).catch(() => undefined);
        if (state && !(state.status === 'due' && state.tick === tick)) return over.abort();
      }
    };
    watch().catch(() => undefined);
    try {
      return await acquire(either.signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (!over.signal.aborted) throw error;
      return undefined;
    } finally {
      over.abort();
      either.release();
    }
  }

  #state(min: number, max: number, record: TickRecord | undefined): TickState {
    const { schedule, task } = this;
    const tick = schedule.last(min);
    if (record === undefined) return { status: 'due', claim: { tick, attempt: 1, missed: 0 } };
    const next = schedule.next(min);
    if (record.tick > max + next - tick) throw this.damaged('has a tick in the future');
    if (isSameTick(schedule, tick, record.tick)) {
      const { tick: last, attempt, outcome, missed } = record;
      const failed = outcome === undefined || outcome === 'failed';
      if (failed && attempt <= task.retry && last <= min)
        return { status: 'due', claim: { tick: last, attempt: attempt + 1, missed } };
      // The next one may have come already, as far as is known.
      const isSoon = next - max <= Math.min(SOON.maxMs, (next - tick) * SOON.share);
      return isSoon ? { status: 'soon', waitMs: next - min } : { status: 'claimed' };
    }
    const before = schedule.last(tick - 1);
    // A schedule may have no earlier tick.
    const isMissed = (each: number) => each > record.tick && !isSameTick(schedule, each, record.tick);
    let missed = 0;
    for (let each = before; isMissed(each) && missed < MAX_MISSED; missed += 1)
      each = schedule.last(each - 1);
    const claim = task.catchUp && missed > 0 ? { tick: before, missed: missed - 1 } : { tick, missed };
    return { status: 'due', claim: { ...claim, attempt: 1 } };
  }

  /** A new claim. @param token of the lock; 0 without one */
  record(claim: TickClaim, token: bigint): TickRecord {
    const { taskId, random } = this.task;
    const own = { token: Number(token), taskId, nonce: random.hex(8), schedule: this.schedule.text };
    return { ...claim, ...own, startedAt: this.now };
  }

  /** Store time, cut to milliseconds. */
  get now(): number {
    return Math.floor(this.session.storeNow().min);
  }

  /**
   * Writes until the object shows whether it was written (rule O4): the same content again, on the same etag.
   * Resolves to the new etag, or to undefined where another write came before.
   *
   * @throws {StoreError} when that was not known in time
   */
  write(record: TickRecord, etag: string | undefined, retry: Retry): Promise<string | undefined> {
    const { session } = this;
    const body = JSON.stringify(record);
    return retry(async (call) => {
      try {
        const written = await session.write(TICK_KEY, { body, metadata: {} }, etag, call);
        if (written.status === 'written') return written.etag;
      } catch (error) {
        if (!(error instanceof StoreError && error.outcome === 'unknown')) throw error;
      }
      const found = await session.read(TICK_KEY, call);
      if (found?.body === body) return found.etag;
      if (found?.etag !== etag) return undefined;
      const what = `${session.store.url}: whether ${TICK_KEY} has been written is unknown`;
      throw new StoreError(what, { fault: 'unavailable', outcome: 'unknown' });
    });
  }

  #decode(body: string): TickRecord {
    try {
      return decodeTick(body);
    } catch (error) {
      throw this.damaged((error as LeaseUnreadableError).problem);
    }
  }

  damaged(problem: string): StoreUnusableError {
    const advice =
      'once no task runs, nodelease once NAME --forget with the same schedule has the due tick count as run';
    return new StoreUnusableError(
      'CLUSTER_DAMAGED',
      `${this.session.store.url}: ${TICK_KEY} ${problem}: ${advice}`,
    );
  }
}

/** @throws {LeaseUnreadableError} where it lacks what decisions depend on, or cannot be shown */
export function decodeTick(body: string): TickRecord {
  return readAs(TICK_KEY, () => {
    const fields = parseObject(body);
    readTime(fields, 'tick');
    readInteger(fields, 'attempt', 1);
    const times = { missed: 0, startedAt: 0, endedAt: 0 };
    for (const name in times) readTime({ ...times, ...fields }, name);
    const texts = { taskId: '-', schedule: '-', outcome: '-' };
    for (const name in texts) readString({ ...texts, ...fields }, name);
    return fields as unknown as TickRecord;
  });
}
