import { anySignal } from '../../core/base/abort.js';
import { checkArguments, FLAG, whole } from '../../core/base/arguments.js';
import { type Clock, type RandomSource, sleepUntil } from '../../core/base/clock.js';
import { StoreUnusableError, WaitTimeoutError } from '../../core/base/errors.js';
import type { Retry } from '../../core/base/retry.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { detached } from '../../core/lease/model/lease.js';
import { LockLostError } from '../../core/lease/model/lock-lost.js';
import { changeCluster, readCluster, readExistingCluster } from '../../core/lease/session/cluster-store.js';
import { isStoreAway, whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { ownTaskId } from '../runtime/acquire.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../runtime/opened-store.js';
import { type LockStore, lockPlace } from './lock-place.js';
import { type Schedule, type SchedulePlan, scheduleOf } from './schedule.js';
import { acquireLock, checkLock, type LockOptions, type StoreLock } from './store-lock.js';
import { TICK_KEY, type TickClaim, type TickOutcome, type TickRecord, Ticks } from './tick.js';

/** Which ticks, and how their lock is acquired. */
export interface OnceOptions extends Omit<LockOptions, 'store'>, SchedulePlan {
  /** The name of the ticks, and of the lock under which they run. */
  readonly name: string;
  /**
   * How often a tick that is due still may run again after a failure, or a crash. Without it a tick is lost
   * whose task is killed between its claim and its start. @default 0
   */
  readonly retry?: number | undefined;
  /** Whether, of the ticks that were missed, the latest runs before the due one. @default false */
  readonly catchUp?: boolean | undefined;
}

/**
 * A tick that this process has claimed, with the lock under which it runs. Call `complete()` when the work has
 * succeeded, and dispose of it in any case; stop the work when `signal` aborts.
 */
export interface OnceRun extends Omit<StoreLock, 'release'> {
  /** The instant, in milliseconds since the Unix epoch. */
  readonly tick: number;
  /** 1, or more after `retry`. */
  readonly attempt: number;
  /** How many ticks before it have run nowhere. */
  readonly missed: number;
  /** Whether it is a missed one: call again for the due one. */
  readonly isCatchUp: boolean;
  /** What was claimed before it. */
  readonly previous: TickRecord | undefined;
  /**
   * Records the success, and releases the lock. Disposing of a run that is not complete records a failure.
   * Resolves to whether that has been recorded: else the lock is lost. Later calls share the result.
   */
  complete(): Promise<boolean>;
}

/** How long tasks wait by chance before they read, so that they do not all claim: a share of the period. */
const JITTER = { share: 1 / 10, maxMs: 5_000 };
/** The longest pause between two looks whether another task has claimed the tick, in milliseconds. */
const MAX_PAUSE_MS = 5_000;
const MAX_RETRIES = 1_000;

/**
 * Claims the due tick of a schedule, which no other task of the store has run or will run.
 *
 * ```ts
 * await using run = await oncePer('s3://bucket/my-service', { name: 'report', every: '1d' });
 * if (run) {
 *   await report({ signal: run.signal });
 *   await run.complete();
 * }
 * ```
 *
 * Ticks are instants of store time: hosts may call this a little early or late, and have any clock. It waits
 * for a tick that is about to come, and with `retry` for a run that may fail.
 *
 * Not guaranteed: that each tick runs. Without `retry` one is lost whose task is killed, and with it one that
 * no task asks for.
 *
 * @returns undefined if the due tick has been claimed
 * @throws {ConfigError} when an option is unknown, or out of range
 * @throws {StoreUnusableError} as `acquireLock` does, and when `tick.json` is damaged
 * @throws {WaitTimeoutError} when the lock was not free, or it was unknown who has the tick, until `timeoutMs`
 * @throws {LockLostError} when the lock is lost before the run begins
 * @throws `signal.reason` when `signal` aborts first
 */
export async function oncePer(store: LockStore, options: OnceOptions): Promise<OnceRun | undefined> {
  const claims = await openClaims(store, options);
  let run: OnceRun | undefined;
  try {
    run = await claims.due();
    return run;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new StoreUnusableError(error.code, `the ticks of ${options.name} cannot be read`, { cause: error });
  } finally {
    if (!run) await claims.close();
  }
}

/** Has the due tick count as run, whatever is there (rule O10). Resolves to it. @throws as {@link oncePer} does */
export async function forgetTicks(store: LockStore, options: OnceOptions): Promise<number> {
  const claims = await openClaims(store, options);
  return claims.forget().finally(() => claims.close());
}

async function openClaims(store: LockStore, options: OnceOptions): Promise<Claims> {
  checkArguments({ options });
  const { name, every, offset, cron, tz, retry = 0, catchUp = false, ...rest } = options;
  checkLock(name, { ...rest, store });
  checkArguments({ retry, catchUp }, { retry: whole(0, MAX_RETRIES), catchUp: FLAG });
  const system = { clock: options.clock ?? systemClock, random: options.random ?? systemRandom };
  const schedule = await scheduleOf({ every, offset, cron, tz }, system.clock.now());
  const taskId = options.taskId ?? (await ownTaskId(options.signal));
  const place = await lockPlace(store, name);
  const opened = typeof place === 'string' ? await openedStore({ ...rest, store: place }, system) : place;
  const session = new StoreSession(opened, system.clock, REQUEST_TIMEOUT_MS);
  const ticks = new Ticks(session, schedule, { retry, catchUp });
  return new Claims(name, { ...rest, ...system, store, taskId }, schedule, ticks, retry > 0);
}

/** What one task does to claim a tick. */
class Claims {
  readonly #until: number;

  constructor(
    private readonly name: string,
    private readonly lock: LockOptions & {
      readonly clock: Clock;
      readonly random: RandomSource;
      readonly taskId: string;
    },
    private readonly schedule: Schedule,
    private readonly ticks: Ticks,
    private readonly retries: boolean,
  ) {
    this.#until = lock.clock.monotonic() + (lock.timeoutMs ?? Number.POSITIVE_INFINITY);
  }

  close(): Promise<void> {
    return this.ticks.session.store.close();
  }

  /** Rules O3, O8 and O11. */
  async due(): Promise<OnceRun | undefined> {
    const { clock, random, signal } = this.lock;
    // A hint: no decision depends on this host's clock.
    const periodMs = this.schedule.next(clock.now()) - this.schedule.last(clock.now());
    const jitterMs = Math.min(JITTER.maxMs, periodMs * JITTER.share);
    for (let waitMs = 0; ; ) {
      await sleepUntil(clock, clock.monotonic() + waitMs + random.next() * jitterMs, signal);
      const state = await this.#look(signal);
      if (state.status === 'claimed') return undefined;
      waitMs = state.status === 'soon' ? state.waitMs : 0;
      try {
        const lock = state.status === 'due' && (await this.#acquire());
        const run = lock && (await this.#claim(lock));
        if (run) return run;
      } catch (error) {
        // The tick, if this task has claimed it, may be claimed again.
        if (!(this.retries && error instanceof LockLostError)) throw error;
      }
    }
  }

  /** See {@link forgetTicks}. */
  async forget(): Promise<number> {
    const { ticks } = this;
    const { session } = ticks;
    await readExistingCluster(session);
    const { signal, random, taskId } = this.lock;
    const object = await session.read(TICK_KEY, { signal });
    const record = ticks.forgotten(taskId);
    const etag = await ticks.write(record, random.hex(8), object?.etag, this.#away(signal));
    if (etag === undefined) throw new WaitTimeoutError('another task has claimed a tick at this moment');
    return record.tick;
  }

  /** Waits for the lock, and gives up as soon as another task has claimed the tick. */
  async #acquire(): Promise<StoreLock | undefined> {
    const { clock, random, signal } = this.lock;
    const claimed = new AbortController();
    const either = anySignal(signal, claimed.signal);
    const watch = async () => {
      for (let pauseMs = this.ticks.session.pollMs; ; pauseMs = Math.min(pauseMs * 1.5, MAX_PAUSE_MS)) {
        await clock.sleep(pauseMs * (0.8 + 0.4 * random.next()), either.signal);
        const state = await this.ticks.look({ signal: either.signal }).catch(() => undefined);
        if (state && state.status !== 'due') return claimed.abort();
      }
    };
    watch().catch(() => undefined);
    try {
      const timeoutMs = Math.max(0, this.#until - clock.monotonic());
      return await acquireLock(this.name, { ...this.lock, timeoutMs, signal: either.signal });
    } catch (error) {
      signal?.throwIfAborted();
      if (!claimed.signal.aborted) throw error;
      return undefined;
    } finally {
      claimed.abort();
      either.release();
    }
  }

  /** Rules O3 to O5, under the lock. */
  async #claim(lock: StoreLock): Promise<OnceRun | undefined> {
    const { ticks, name } = this;
    const held = anySignal(lock.signal, this.lock.signal);
    const { signal } = held;
    try {
      const { record: previous, etag, ...state } = await this.#look(signal);
      const cluster = await this.#away(signal)((call) => readCluster(ticks.session, call));
      if (previous === undefined && cluster?.config.once) throw ticks.damaged('is gone');
      const claimed = state.status === 'due' && (await this.#write(lock, state.claim, etag, signal));
      if (!claimed) {
        await lock.release();
        return undefined;
      }
      // From now on its absence is damage. Where this fails, the next run does it.
      if (cluster && !cluster.config.once)
        await changeCluster(ticks.session, cluster, { once: true }, { signal }).catch(() => undefined);
      if (lock.isValid()) return this.#run(lock, claimed, previous);
      const late = 'its deadline passed before the run began';
      throw new LockLostError(name, lock.token, 'paused', lock.deadline, late);
    } catch (error) {
      await lock.release();
      throw error;
    } finally {
      held.release();
    }
  }

  /** Undefined where another task was first. */
  async #write(lock: StoreLock, claim: TickClaim, etag: string | undefined, signal: AbortSignal) {
    const { random, taskId } = this.lock;
    const record: TickRecord = {
      ...claim,
      ...{ token: Number(lock.token), taskId, schedule: this.schedule.text, startedAt: this.ticks.now },
    };
    const nonce = random.hex(8);
    try {
      const own = await this.ticks.write(record, nonce, etag, this.#away(signal, this.#until));
      return own === undefined ? undefined : { record, nonce, etag: own };
    } catch (error) {
      if (!isStoreAway(error)) throw error;
      throw new WaitTimeoutError(`whether this task has the tick of ${this.name} is unknown`, {
        cause: error,
      });
    }
  }

  /** Rule O6: the lock is not released before the outcome is known to be recorded, or the lock is lost. */
  #run(
    lock: StoreLock,
    { record, nonce, etag }: { record: TickRecord; nonce: string; etag: string },
    previous: TickRecord | undefined,
  ): OnceRun {
    const { ticks } = this;
    const forever = this.#away(lock.signal, Number.POSITIVE_INFINITY, (error) => error instanceof StoreError);
    const finish = async (outcome: TickOutcome) => {
      const ended = { ...record, outcome, endedAt: ticks.now };
      const recorded = await ticks.write(ended, nonce, etag, forever).catch(() => undefined);
      await lock.release();
      await this.close();
      return recorded !== undefined;
    };
    let ending: Promise<boolean> | undefined;
    const end = (outcome: TickOutcome) => {
      ending ??= finish(outcome);
      return ending;
    };
    const { tick, attempt, missed } = record;
    const { name, token, signal } = lock;
    return {
      ...{ name, token, signal, tick, attempt, missed, previous },
      isCatchUp: this.schedule.last(record.startedAt) > tick,
      get deadline() {
        return lock.deadline;
      },
      isValid: () => lock.isValid(),
      complete: () => end('succeeded'),
      [Symbol.asyncDispose]: async () => void (await end('failed')),
    };
  }

  #look(signal: AbortSignal | undefined) {
    return this.#away(signal)((call) => this.ticks.look(call));
  }

  #away(signal: AbortSignal | undefined, until?: number, mayPass = isStoreAway): Retry {
    const { clock, random, onEvent } = this.lock;
    return whileStoreIsAway({ clock, random, signal, until, emit: detached(onEvent) }, mayPass);
  }
}
