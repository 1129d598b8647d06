import { anySignal, orAborted } from '../base/abort.js';
import type { Clock } from '../clock.js';

/** A sleep that is under way. */
interface Sleep {
  readonly over: Promise<void>;
  readonly interrupt: AbortController;
  waiters: number;
}

/** One sleep for all who wait for the same thing, however many they are; it ends early when nobody is left, or there is nothing to wait for. */
export class SharedWait {
  #sleep: Sleep | undefined;

  /** @param ended aborts when there is nothing to wait for any more */
  constructor(
    private readonly clock: Pick<Clock, 'sleep'>,
    private readonly ended: AbortSignal | undefined,
  ) {}

  /**
   * Resolves after `ms` milliseconds, sooner where others have waited already or there is nothing to wait for.
   *
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.#sleep ??= this.#begin(ms);
    const sleep = this.#sleep;
    sleep.waiters += 1;
    try {
      await orAborted(sleep.over, signal);
    } finally {
      sleep.waiters -= 1;
      if (sleep.waiters === 0) this.#end(sleep);
    }
  }

  #begin(ms: number): Sleep {
    const interrupt = new AbortController();
    const either = anySignal(interrupt.signal, this.ended);
    const over = this.clock.sleep(ms, either.signal).then(
      () => either.release(),
      (error: unknown) => {
        either.release();
        if (!either.signal.aborted) throw error;
      },
    );
    return { over, interrupt, waiters: 0 };
  }

  #end(sleep: Sleep): void {
    if (this.#sleep === sleep) this.#sleep = undefined;
    sleep.interrupt.abort();
  }
}
