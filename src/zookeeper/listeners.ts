/**
 * Calls a listener that must not throw. One that does has a bug: it goes the way of every uncaught exception, instead of into the socket or
 * the loop that happened to bring the news.
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

/** Those who are told of something again and again. */
export class Listeners<T> {
  readonly #all = new Set<(news: T) => void>();

  /** Adds a listener, until the returned function is called. The same function may be added twice. */
  add(listener: (news: T) => void): () => void {
    const own = (news: T) => listener(news);
    this.#all.add(own);
    return () => this.#all.delete(own);
  }

  /** Tells all, but not those who have been removed by one that was told before. */
  tell(news: T): void {
    for (const listener of [...this.#all]) if (this.#all.has(listener)) notify(listener, news);
  }

  /** Tells nobody any more. */
  clear(): void {
    this.#all.clear();
  }
}
