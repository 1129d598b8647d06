import { StoreError } from '../../core/store/lease-store.js';
import type { StoreLock } from './store-lock.js';
import type { TickRecord, Ticks } from './tick.js';

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
  /** The schedule, as the store has it. */
  readonly schedule: string;
  /** What was claimed before it. */
  readonly previous: TickRecord | undefined;
  /**
   * Records the success, and releases the lock; `release()` before it, or disposing, records a failure.
   * Resolves to whether that has been recorded: else the lock is lost, or a failure was recorded before. Later calls
   * share the result.
   */
  complete(): Promise<boolean>;
}

/** A claim that is known to be applied. */
interface Claimed {
  readonly lock: StoreLock;
  readonly record: TickRecord;
  /** The etag of `record`. */
  readonly etag: string;
  readonly previous: TickRecord | undefined;
}

/**
 * The handle of a claimed tick. The lock is not released before the outcome is known to be recorded, or the lock
 * is lost (rule O6).
 *
 * @param close is called last
 */
export function runOf(
  ticks: Ticks,
  { lock, record, etag, previous }: Claimed,
  close: () => Promise<void>,
): OnceRun {
  const { schedule, task } = ticks;
  const forever = ticks.away(lock.signal, Number.POSITIVE_INFINITY, (error) => error instanceof StoreError);
  const finish = async (outcome: NonNullable<TickRecord['outcome']>) => {
    const ended = { ...record, outcome, endedAt: ticks.now };
    const recorded = await ticks.write(ended, etag, forever).catch(() => undefined);
    await lock.release();
    await close();
    return recorded === undefined ? undefined : outcome;
  };
  let ending: ReturnType<typeof finish> | undefined;
  const end = (outcome: NonNullable<TickRecord['outcome']>) => {
    ending ??= finish(outcome);
    return ending;
  };
  const release = async () => void (await end('failed'));
  const { tick, attempt, missed, startedAt } = record;
  return {
    ...{ name: lock.name, token: lock.token, signal: lock.signal, tick, attempt, missed, previous },
    ...{ schedule: schedule.text, isCatchUp: task.catchUp && schedule.last(startedAt) > tick },
    get deadline() {
      return lock.deadline;
    },
    isValid: () => lock.isValid(),
    complete: async () => (await end('succeeded')) === 'succeeded',
    ...{ release, [Symbol.asyncDispose]: release },
  };
}
