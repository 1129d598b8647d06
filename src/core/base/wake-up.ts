import { orAborted, withTimeout } from './abort.js';
import type { Clock } from './clock.js';

/** Ends the wait of a loop. Nothing is missed: a call while the loop does not wait ends its next wait at once. */
export class WakeUp {
  #isDue = false;
  #end: () => void = () => undefined;

  /** Can be given away as a function. */
  readonly wake = (): void => {
    this.#isDue = true;
    this.#end();
  };

  /**
   * Waits for `wake()`, and no longer than `timeoutMs`: not at all if that is 0. One loop at a time waits.
   * @throws `signal.reason` once `signal` aborts
   */
  async wait(
    limit?: { readonly clock: Pick<Clock, 'sleep'>; readonly timeoutMs: number },
    signal?: AbortSignal,
  ): Promise<void> {
    if (limit === undefined || limit.timeoutMs > 0) {
      const woken = new Promise<void>((resolve) => {
        this.#end = resolve;
        if (this.#isDue) resolve();
      });
      await (limit ? withTimeout(limit.clock, limit.timeoutMs, woken, signal) : orAborted(woken, signal));
    }
    this.#isDue = false;
  }
}
