import { onAbort } from '../base/abort.js';
import type { ObjectChange } from './lease-store.js';

/** What one who waits wants to be woken for: true for a change that is of interest. */
export type Heed = (change: ObjectChange) => boolean;

interface Waiter {
  readonly heed: Heed | undefined;
  wake(): void;
  fail(error: unknown): void;
}

/** Everybody who waits for the next change of some object. Serves `LeaseStore.changed`. */
export class Changes {
  readonly #waiting = new Set<Waiter>();

  /** How many wait at this moment. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Tells everybody who waits of a change, and wakes those who want to be woken for it; without a change, wakes everybody. */
  announce(change?: ObjectChange): void {
    for (const { heed, wake, fail } of this.#waiting) {
      try {
        if (change === undefined || heed === undefined || heed(change)) wake();
      } catch (error) {
        // Its own fault, and no concern of the others, nor of whoever has written.
        fail(error);
      }
    }
  }

  /**
   * Resolves at the next `announce()` that `heed` wants, at any without it; rejects with `signal.reason` when `signal` aborts, and with what `heed`
   * throws. Keeps no listener.
   */
  next(signal: AbortSignal, heed?: Heed): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const end = () => {
        this.#waiting.delete(waiter);
        cancel();
      };
      const wake = () => {
        end();
        resolve();
      };
      const fail = (error: unknown) => {
        end();
        reject(error);
      };
      const waiter = { heed, wake, fail };
      this.#waiting.add(waiter);
      const cancel = onAbort(signal, () => fail(signal.reason));
    });
  }
}
