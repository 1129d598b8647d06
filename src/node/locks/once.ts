import { anySignal } from '../../core/base/abort.js';
import { checkArguments, checkKnown, FLAG, maybe, whole } from '../../core/base/arguments.js';
import { sleepUntil } from '../../core/base/clock.js';
import { StoreUnusableError, WaitTimeoutError } from '../../core/base/errors.js';
import { systemClock } from '../../core/base/system.js';
import { LockLostError } from '../../core/lease/model/lock-lost.js';
import { changeCluster, readCluster } from '../../core/lease/session/cluster-store.js';
import { isStoreAway } from '../../core/lease/session/store-retry.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { nothingAt } from '../../core/store/lock-url.js';
import { REQUEST_TIMEOUT_MS } from '../runtime/opened-store.js';
import { type LockStore, openedLock } from './lock-place.js';
import { type OnceRun, runOf } from './once-run.js';
import { isSameTick, type SchedulePlan, scheduleOf } from './schedule.js';
import {
  acquireLock,
  checkLock,
  LOCK_OPTIONS,
  type LockOptions,
  type StoreLock,
  withDefaults,
} from './store-lock.js';
import { decodeTick, TICK_KEY, Ticks } from './tick.js';

/** Which ticks, and how their lock is acquired. */
export interface OnceOptions extends Omit<LockOptions, 'store'>, SchedulePlan {
  /** The name of the ticks, and of the lock under which they run. */
  readonly name: string;
  /**
   * How often a tick that is due still may run again after a failure, or a crash. Without it a tick is lost
   * whose task is killed between its claim and its start. @default 0
   */
  readonly retry?: number | undefined;
  /**
   * Only this tick, that of a run before: to claim it again with `retry`, and not the next one. @default the due one
   */
  readonly tick?: number | undefined;
  /** Whether, of the ticks that were missed, the latest runs before the due one. @default false */
  readonly catchUp?: boolean | undefined;
}

/** How long tasks wait by chance before they read, so that they do not all claim: a share of the period. */
const JITTER = { share: 1 / 10, maxMs: 5_000 };
const MAX_RETRIES = 1_000;
/** The options that a lock has not. */
const OWN = ['name', 'every', 'offset', 'cron', 'tz', 'retry', 'tick', 'catchUp'];

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
  const claims = await openClaims(store, options);
  let run: OnceRun | undefined;
  try {
    run = await claims.due();
    return run;
  } finally {
    if (!run) await claims.close();
  }
}

/**
 * Has the due tick count as run, or a later one that is claimed, whatever is there (rule O10). Resolves to it.
 * @throws as {@link oncePer} does
 */
export async function forgetTicks(store: LockStore, options: OnceOptions): Promise<number> {
  const claims = await openClaims(store, options);
  return claims.forget().finally(claims.close);
}

/** NaN where it is unreadable. */
function claimedTick(body: string): number {
  try {
    return decodeTick(body).tick;
  } catch {
    return Number.NaN;
  }
}

/** What one task does to claim a tick. */
async function openClaims(store: LockStore, options: OnceOptions) {
  checkKnown(options, [...LOCK_OPTIONS, ...OWN]);
  const { name, every, offset, cron, tz, retry = 0, tick: only, catchUp = false, ...rest } = options;
  checkLock(name, { ...rest, store });
  const kinds = { retry: whole(0, MAX_RETRIES), tick: maybe(whole(0)), catchUp: FLAG };
  checkArguments({ retry, tick: only, catchUp }, kinds);
  const { clock = systemClock, signal, timeoutMs = Number.POSITIVE_INFINITY } = rest;
  const schedule = await scheduleOf({ every, offset, cron, tz }, clock.now());
  const next = only === undefined ? Number.POSITIVE_INFINITY : schedule.next(only);
  // Another schedule may have claimed it a little earlier (rule O7).
  const last = only === undefined || isSameTick(schedule, next, only) ? next : only;
  const known = { ...(await withDefaults(rest)), store };
  const { random } = known;
  const opened = await openedLock(known, name);
  const session = new StoreSession(opened, clock, REQUEST_TIMEOUT_MS);
  const ticks = new Ticks(session, schedule, { ...known, retry, catchUp });
  let until = clock.monotonic() + timeoutMs;
  const close = () => opened.close();
  const acquire = (waiting: AbortSignal) =>
    acquireLock(name, { ...known, timeoutMs: Math.max(0, until - clock.monotonic()), signal: waiting });

  /** Rules O3, O8 and O11. */
  const due = async (): Promise<OnceRun | undefined> => {
    // A hint: no decision depends on this host's clock.
    const periodMs = schedule.next(clock.now()) - schedule.last(clock.now());
    const jitterMs = Math.min(JITTER.maxMs, periodMs * JITTER.share);
    // A task waits for one tick, also while another one runs on: the next call is for the next one.
    const latest = { due: last, soon: only === undefined ? last : 0 };
    for (let waitMs = 0; ; ) {
      const pauseMs = waitMs + random.next() * jitterMs;
      // The time-out is for the lock.
      until += pauseMs;
      await sleepUntil(clock, clock.monotonic() + pauseMs, signal);
      const state = await ticks.look(signal);
      const { status, tick } = state;
      if (status === 'claimed' || tick > latest[status]) return undefined;
      latest[status] = tick;
      waitMs = status === 'soon' ? state.waitMs : 0;
      try {
        const lock = status === 'due' && (await ticks.whileDue(tick, acquire, signal));
        const run = lock && (await claim(lock));
        if (run) return run;
      } catch (error) {
        // The tick, if this task has claimed it, may be claimed again.
        if (!(retry > 0 && error instanceof LockLostError)) throw error;
      }
    }
  };

  const forget = async (): Promise<number> => {
    if (!(await readCluster(session))) throw new StoreUnusableError('CLUSTER_MISSING', nothingAt(opened.url));
    const object = await session.read(TICK_KEY);
    const due = schedule.last(ticks.now);
    const claimed = object ? claimedTick(object.body) : Number.NaN;
    // Never back to an earlier tick (rule O2), unless the claimed one is damage.
    const latest = session.latest(session.storeNow()) + schedule.next(due) - due;
    const tick = claimed <= latest ? Math.max(due, claimed) : due;
    const record = ticks.record({ tick, attempt: 1, missed: 0 }, 0n);
    const forgotten = { ...record, outcome: 'forgotten', endedAt: ticks.now } as const;
    if (await ticks.write(forgotten, object?.etag, ticks.away(signal))) return tick;
    throw new WaitTimeoutError('another task has claimed a tick at this moment');
  };

  /** Rules O3 to O5, under the lock. Undefined where another task was first. */
  const claim = async (lock: StoreLock): Promise<OnceRun | undefined> => {
    const either = anySignal(lock.signal, signal);
    let run: OnceRun | undefined;
    try {
      const { previous, etag, ...state } = await ticks.look(either.signal);
      const cluster = await ticks.away(either.signal)((call) => readCluster(session, call));
      if (previous === undefined && cluster?.config.once) throw ticks.damaged('is gone');
      if (state.status !== 'due' || state.tick > last) return undefined;
      const record = ticks.record(state.claim, lock.token);
      const own = await ticks.write(record, etag, ticks.away(either.signal, until)).catch(unknown);
      if (own === undefined) return undefined;
      // From now on its absence is damage. Where this fails, the next run does it.
      if (cluster && !cluster.config.once)
        await changeCluster(session, cluster, { once: true }, { signal: either.signal }).catch(
          () => undefined,
        );
      const late = 'its deadline passed before the run began';
      if (!lock.isValid()) throw new LockLostError(name, lock.token, 'paused', lock.deadline, late);
      run = runOf(ticks, { lock, record, etag: own, previous }, close);
      return run;
    } finally {
      either.release();
      if (!run) await lock.release();
    }
  };

  const unknown = (cause: unknown) => {
    if (!isStoreAway(cause)) throw cause;
    throw new WaitTimeoutError(`whether this task has the tick of ${name} is unknown`, { cause });
  };

  return { due, forget, close };
}
