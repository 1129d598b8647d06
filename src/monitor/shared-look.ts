import { orAborted } from '../or-aborted.js';

interface Running {
  readonly ended: Promise<void>;
  readonly abort: AbortController;
  /** How many wait for it. */
  wanted: number;
}

/** One look at a time for everybody who wants one: who asks while one is under way has that one. It is given up when nobody wants it any more. */
export class SharedLook {
  #running: Running | undefined;

  /** @param look never rejects, except with the reason of its signal */
  constructor(private readonly look: (signal: AbortSignal) => Promise<void>) {}

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
      }
    }
  }

  #begin(): Running {
    const abort = new AbortController();
    const look = this.look(abort.signal).catch((error) => {
      if (!abort.signal.aborted) throw error;
    });
    // Who asks once it has ended gets another one, also while some are still about to learn that it has.
    const ended = look.finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    const running: Running = { ended, abort, wanted: 0 };
    return running;
  }
}
