/** Everybody who waits for the next change of some object. Serves `LeaseStore.changed`. */
export class Changes {
  readonly #waiting = new Set<() => void>();

  /** How many wait at this moment. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Wakes everybody who waits. */
  announce(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Resolves at the next `announce()`; rejects with `signal.reason` when `signal` aborts. Keeps no listener. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const forget = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', onAbort);
      };
      const wake = () => {
        forget();
        resolve();
      };
      const onAbort = () => {
        forget();
        reject(signal.reason);
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
