import { orAborted } from '../base/abort.js';
import type { Clock } from '../clock.js';

interface Running {
  ended: Promise<void>;
  readonly abort: AbortController;
  /** How many wait for it. */
  wanted: number;
  /** Since when it has been asking for anything, on the monotonic clock; undefined while it rests first. */
  lookingSince: number | undefined;
}

/**
 * One look at a time for everybody who wants one: who asks while one is under way has that one. It is given up when nobody wants it any more, and
 * then nobody looks again at once: whoever asks again and again without waiting must not become all that the store does.
 */
export class SharedLook {
  #running: Running | undefined;
  /** Before that nobody looks again, on the monotonic clock: one look was given up, and what it has asked for may still be on its way. */
  #notBefore = Number.NEGATIVE_INFINITY;

  /**
   * @param look never rejects, except with the reason of its signal
   * @param restMs from one that was given up to the beginning of the next one, by how long it had been under way; both in milliseconds
   */
  constructor(
    private readonly look: (signal: AbortSignal) => Promise<void>,
    private readonly clock: Pick<Clock, 'monotonic' | 'sleep'>,
    private readonly restMs: (tookMs: number) => number,
  ) {}

  /**
   * Resolves when a look has ended that was under way, or else was begun by this call.
   *
   * @throws `signal.reason`
   */
  async take(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.#running ??= this.#begin();
    const running = this.#running;
    running.wanted += 1;
    try {
      await orAborted(running.ended, signal);
    } finally {
      running.wanted -= 1;
      if (running.wanted === 0 && this.#running === running) {
        this.#running = undefined;
        running.abort.abort();
        const now = this.clock.monotonic();
        if (running.lookingSince !== undefined) this.#notBefore = now + this.restMs(now - running.lookingSince);
      }
    }
  }

  #begin(): Running {
    const abort = new AbortController();
    const running: Running = { ended: Promise.resolve(), abort, wanted: 0, lookingSince: undefined };
    const look = this.#paced(running).catch((error) => {
      if (!abort.signal.aborted) throw error;
    });
    // Who asks once it has ended gets another one, also while some are still about to learn that it has.
    running.ended = look.finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    return running;
  }

  async #paced(running: Running): Promise<void> {
    const { signal } = running.abort;
    const rest = this.#notBefore - this.clock.monotonic();
    if (rest > 0) await this.clock.sleep(rest, signal);
    running.lookingSince = this.clock.monotonic();
    await this.look(signal);
  }
}
