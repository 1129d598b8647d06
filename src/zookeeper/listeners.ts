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
