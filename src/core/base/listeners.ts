import { checkArguments } from './arguments.js';

/**
 * Calls a listener that must not throw. Its error becomes an uncaught exception, and does not reach the
 * caller.
 */
export function notify<T>(listener: (news: T) => void, news: T): void {
  try {
    listener(news);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** Listeners that are notified repeatedly. */
export class Listeners<T> {
  readonly #all = new Set<(news: T) => void>();

  /** How many there are. */
  get size(): number {
    return this.#all.size;
  }

  /** Adds a listener, until the returned function is called. The same function may be added twice. */
  add(listener: (news: T) => void): () => void {
    checkArguments({ listener });
    const own = (news: T) => listener(news);
    this.#all.add(own);
    return () => this.#all.delete(own);
  }

  /** Notifies all listeners, except those that an earlier listener has removed. */
  notify(news: T): void {
    for (const listener of [...this.#all]) if (this.#all.has(listener)) notify(listener, news);
  }

  /** Removes all listeners. */
  clear(): void {
    this.#all.clear();
  }
}
