import { anySignal } from '../../core/base/abort.js';
import { checked, FLAG, maybe, whole } from '../../core/base/arguments.js';
import { StoreUnusableError, WaitTimeoutError } from '../../core/base/errors.js';
import type { Retry } from '../../core/base/retry.js';
import { detached, type LeaseEvent } from '../../core/lease/model/lease.js';
import { LeaseUnreadableError } from '../../core/lease/model/lease-codec.js';
import { LockLostError } from '../../core/lease/model/lock-lost.js';
import { markCluster, readCluster } from '../../core/lease/session/cluster-store.js';
import { isStoreAway, whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { nothingAt } from '../../core/store/lock-url.js';
import { REQUEST_TIMEOUT_MS } from '../runtime/opened-store.js';
import { type LockStore, openedLock } from './lock-place.js';
import { type SchedulePlan, scheduleOf, tenthOf } from './schedule.js';
import { acquireLock, checkLock, type LockOptions, type StoreLock, withDefaults } from './store-lock.js';
import { decodeTick, newClaim, openTick, TICK_KEY, type TickClaim, type TickRecord } from './tick.js';

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
export interface OnceRun extends StoreLock {
  /** The instant, in milliseconds since the Unix epoch. */
  readonly tick: number;
  /** 1, or more after `retry`. */
  readonly attempt: number;
  /** How many ticks before it have run nowhere. */
  readonly missed: number;
  /** Whether it is a missed one: call again for the due one. */
  readonly isCatchUp: boolean;
  /**
   * Records the success, and releases the lock; `release()` before it, or disposing, records a failure.
   * Resolves to whether that has been recorded: else the lock is lost. Later calls share the result.
   */
  complete(): Promise<boolean>;
}

/** The longest jitter before a read, in milliseconds (rule O11). */
const MAX_JITTER_MS = 5_000;
const MAX_RETRIES = 1_000;
/** The options that a lock has not. */
const OWN = ['name', 'every', 'offset', 'cron', 'tz', 'retry', 'catchUp'];

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
 * @returns undefined if the due tick has been claimed, or another task was at work until the next one
 * @throws {ConfigError} when an option is unknown, or out of range
 * @throws {StoreUnusableError} as `acquireLock` does, and when `tick.json` is damaged
 * @throws {WaitTimeoutError} when the lock was not free, or it was unknown who has the tick, until `timeoutMs`
 * @throws {LockLostError} when the lock is lost before the run begins
 * @throws `signal.reason` when `signal` aborts first
 */
export async function oncePer(store: LockStore, options: OnceOptions): Promise<OnceRun | undefined> {
  const task = await openTask(store, options);
  let run: OnceRun | undefined;
  try {
    run = await runDue(task);
    return run;
  } finally {
    if (!run) await task.close();
  }
}

/** Has the due tick count as run, whatever is there (rule O10). Resolves to it. @throws as {@link oncePer} does */
export async function forgetTicks(store: LockStore, options: OnceOptions): Promise<number> {
  const task = await openTask(store, options);
  const { session, schedule } = task;
  try {
    if (!(await readCluster(session)))
      throw new StoreUnusableError('CLUSTER_MISSING', nothingAt(session.store.url));
    const object = await session.read(TICK_KEY);
    const claim = newClaim(schedule.last(task.now()));
    const record = { ...newRecord(task, claim, 0n), outcome: 'forgotten', endedAt: task.now() } as const;
    if (await write(task, record, object?.etag, whileStoreIsAway(task.away))) return claim.tick;
    throw new WaitTimeoutError('another task has claimed a tick at this moment');
  } finally {
    await task.close();
  }
}

/** A task that asks for a tick. */
type Task = Awaited<ReturnType<typeof openTask>>;

async function openTask(store: LockStore, options: OnceOptions) {
  const kinds = { retry: maybe(whole(0, MAX_RETRIES)), catchUp: maybe(FLAG) };
  const { name, every, offset, cron, tz, retry = 0, catchUp = false, ...rest } = checked(options, kinds);
  checkLock(name, { ...rest, store }, OWN);
  const lock = await withDefaults({ ...rest, store });
  const { clock, random, signal, onEvent } = lock;
  const schedule = await scheduleOf({ every, offset, cron, tz }, clock.now());
  const session = new StoreSession(await openedLock(lock, name), clock, REQUEST_TIMEOUT_MS);
  return {
    ...{ name, schedule, retry, catchUp, lock, session },
    /** How requests are tried again while the store is away. */
    away: { clock, random, signal, emit: detached(onEvent) },
    /** Store time, cut to milliseconds. */
    now: () => Math.floor(session.storeNow().min),
    close: () => session.store.close(),
  };
}

/** Waits for one tick (rule O8), also while another one runs on: the next call is for the next one. */
async function runDue(task: Task): Promise<OnceRun | undefined> {
  const { clock, random, signal } = task.lock;
  let tick: number | undefined;
  for (let waitMs = 0; ; ) {
    // Rule O11. No decision depends on this host's clock.
    const jitterMs = random.next() * tenthOf(task.schedule, clock.now(), MAX_JITTER_MS);
    await clock.sleep(waitMs + jitterMs, signal);
    const open = await look(task);
    tick ??= open?.tick;
    if (!open || open.tick !== tick) return undefined;
    waitMs = open.waitMs;
    if (waitMs > 0) continue;
    try {
      const run = await claim(task, tick);
      if (run) return run;
    } catch (error) {
      // The tick, if this task has claimed it, may be claimed again.
      if (!(task.retry > 0 && error instanceof LockLostError)) throw error;
    }
  }
}

/**
 * Reads the last claim. Resolves to what may be claimed now; undefined for nothing.
 *
 * @throws {StoreUnusableError} where it is damaged, or the store has no time (rules O1 and O10)
 * @throws {StoreError}
 */
function look(task: Task, retry = whileStoreIsAway(task.away)) {
  const { session, schedule } = task;
  const { url } = session.store;
  return retry(async (call) => {
    const object = await session.read(TICK_KEY, call);
    const cluster = object ? undefined : await readCluster(session, call);
    // A read of nothing says no time.
    if (!object && !cluster) await session.list(call);
    const now = session.storeNow();
    if (!Number.isFinite(now.max))
      throw new StoreUnusableError('STORE_UNSUPPORTED', `${url}: the store says no time`);
    try {
      if (cluster?.config.once) throw new LeaseUnreadableError('is gone');
      const last = object && decodeTick(object.body);
      const open = openTick(last, schedule, { min: now.min, max: session.latest(now) }, task);
      return open && { ...open, etag: object?.etag };
    } catch (error) {
      if (!(error instanceof LeaseUnreadableError)) throw error;
      const advice =
        'once no task runs, nodelease once NAME --forget with the same schedule has the due tick count as run';
      throw new StoreUnusableError('CLUSTER_DAMAGED', `${url}: ${TICK_KEY} ${error.problem}: ${advice}`);
    }
  });
}

/** Rules O3 to O5. Undefined where another task was first, or the tick is not due any more. */
async function claim(task: Task, tick: number): Promise<OnceRun | undefined> {
  const { name, session } = task;
  const until = task.lock.clock.monotonic() + (task.lock.timeoutMs ?? Number.POSITIVE_INFINITY);
  const lock = await acquire(task, tick);
  if (!lock) return undefined;
  const { signal, release } = anySignal(lock.signal, task.lock.signal);
  const retry = whileStoreIsAway({ ...task.away, signal, until });
  let run: OnceRun | undefined;
  try {
    const open = await look(task, retry);
    if (open?.waitMs !== 0) return undefined;
    const record = newRecord(task, open.claim, lock.token);
    const etag = await write(task, record, open.etag, retry).catch((cause) => {
      if (!isStoreAway(cause)) throw cause;
      throw new WaitTimeoutError(`whether this task has the tick of ${name} is unknown`, { cause });
    });
    if (!etag) return undefined;
    // From now on its absence is damage (rule O10). Where this fails, the next run does it.
    await readCluster(session, { signal })
      .then((cluster) => cluster && markCluster(session, cluster, 'once', { signal }))
      .catch(() => undefined);
    const late = 'its deadline passed before the run began';
    if (!lock.isValid()) throw new LockLostError(name, lock.token, 'paused', lock.deadline, late);
    run = runOf(task, lock, record, etag, task.catchUp && record.tick < open.tick);
    return run;
  } finally {
    release();
    if (!run) await lock.release();
  }
}

/** Waits for the lock, and gives up once the tick is not due any more, or another task has claimed it. */
async function acquire(task: Task, tick: number): Promise<StoreLock | undefined> {
  const { signal, onEvent } = task.lock;
  const over = new AbortController();
  const either = anySignal(signal, over.signal);
  const check = async () => {
    if ((await look(task))?.tick !== tick) over.abort();
  };
  try {
    return await acquireLock(task.name, {
      ...task.lock,
      signal: either.signal,
      onEvent: (event: LeaseEvent) => {
        if (event.type === 'waiting') check().catch(() => undefined);
        onEvent?.(event);
      },
    });
  } catch (error) {
    signal?.throwIfAborted();
    if (!over.signal.aborted) throw error;
    return undefined;
  } finally {
    either.release();
  }
}

/** Rule O6: the lock is not released before the outcome is known to be recorded, or the lock is lost. */
function runOf(task: Task, lock: StoreLock, record: TickRecord, etag: string, isCatchUp: boolean): OnceRun {
  const { tick, attempt, missed } = record;
  const { signal, release: unlock } = lock;
  const forever = { ...task.away, signal, until: Number.POSITIVE_INFINITY };
  const retry = whileStoreIsAway(forever, (error) => error instanceof StoreError);
  let ending: Promise<boolean> | undefined;
  const end = (outcome: 'succeeded' | 'failed') => {
    ending ??= write(task, { ...record, outcome, endedAt: task.now() }, etag, retry)
      .then(Boolean, () => false)
      .finally(unlock)
      .finally(task.close);
    return ending;
  };
  const release = async () => void (await end('failed'));
  const complete = () => end('succeeded');
  return Object.assign(lock, {
    ...{ tick, attempt, missed, isCatchUp, complete, release },
    [Symbol.asyncDispose]: release,
  });
}

/** @param token of the lock; 0 without one */
function newRecord({ lock, schedule, now }: Task, claim: TickClaim, token: bigint): TickRecord {
  const { taskId, random } = lock;
  const nonce = random.hex(8);
  return { ...claim, token: Number(token), taskId, nonce, schedule: schedule.text, startedAt: now() };
}

/**
 * Writes until the object shows whether it was written (rule O4): the same content again, on the same etag.
 * Resolves to the new etag, or to undefined where another write came before.
 *
 * @throws {StoreError} when that was not known in time
 */
function write({ session }: Task, record: TickRecord, etag: string | undefined, retry: Retry) {
  const body = JSON.stringify(record);
  return retry(async (call) => {
    const written = await session.write(TICK_KEY, { body, metadata: {} }, etag, call);
    if (written.status === 'written') return written.etag;
    // An earlier attempt, whose reply was lost, may have written it, or may be under way still.
    const found = await session.read(TICK_KEY, call);
    if (found?.body === body) return found.etag;
    if (found?.etag !== etag) return undefined;
    const what = `${session.store.url}: whether ${TICK_KEY} has been written is unknown`;
    throw new StoreError(what, { fault: 'unavailable', outcome: 'unknown' });
  });
}
