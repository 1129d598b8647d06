import { onAbort } from '../base/abort.js';
import type { ObjectChange } from './lease-store.js';

/** The pause after a watch that was lost, in milliseconds: a server that refuses watches is not asked all the time. */
export const LOST_WATCH_MS = 1_200;

/** What a waiting task is to be woken for: true for a change that is of interest. */
export type Heed = (change: ObjectChange) => boolean;

/** The tasks that wait for the next change of some object. Serves `LeaseStore.changed`. */
export class Changes {
  readonly #waiting = new Set<(change?: ObjectChange) => void>();

  /** How many wait at this moment. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Notifies all waiting tasks of a change, and wakes the ones that want it; without a change, wakes all. */
  announce(change?: ObjectChange): void {
    for (const notify of this.#waiting) notify(change);
  }

  /**
   * Resolves at the next `announce()` that `heed` wants, at any without it; rejects with `signal.reason` when
   * `signal` aborts, and with what `heed` throws. Keeps no listener.
   */
  next(signal: AbortSignal, heed: Heed = () => true): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const end = (settle: () => void) => {
        this.#waiting.delete(notify);
        cancel();
        settle();
      };
      const notify = (change?: ObjectChange) => {
        try {
          if (change === undefined || heed(change)) end(resolve);
        } catch (error) {
          // No concern of the other waiting tasks, nor of the writer.
          end(() => reject(error));
        }
      };
      this.#waiting.add(notify);
      const cancel = onAbort(signal, () => end(() => reject(signal.reason)));
    });
  }
}
