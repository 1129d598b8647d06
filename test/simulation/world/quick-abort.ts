type Listener = () => void;

/**
 * What the engine uses of `AbortSignal`, without the event objects of the platform's own, which would cost a
 * third of a simulation's time. A test runs seeds with either and compares their histories.
 */
class QuickAbortSignal {
  aborted = false;
  reason: unknown;
  #listeners: Set<Listener> | undefined;

  addEventListener(_type: 'abort', listener: Listener): void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: Listener): void {
    this.#listeners?.delete(listener);
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    if (listeners === undefined) return;
    for (const listener of listeners) listener();
    listeners.clear();
  }
}

class QuickAbortController {
  readonly signal = new QuickAbortSignal();

  abort(reason: unknown = new Error('This operation was aborted')): void {
    this.signal.abort(reason);
  }
}

/** Makes every `new AbortController()` of this process a quick one. Call what it returns to undo it. */
export function useQuickAbort(): () => void {
  const platform = globalThis.AbortController;
  globalThis.AbortController = QuickAbortController as unknown as typeof AbortController;
  return () => {
    globalThis.AbortController = platform;
  };
}
