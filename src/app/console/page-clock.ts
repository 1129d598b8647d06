/**
 * Time, as the page sees it; everything takes it as a parameter, so that tests can move it. The same shape as
 * the engine's `Clock`.
 */
export interface PageClock {
  /** Wall clock, milliseconds since the Unix epoch. For people only. */
  now(): number;
  /** Milliseconds on a clock that never goes back. Only differences mean anything. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds. Rejects at once with `signal.reason` when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The browser's time: the one place of the page that reads it. */
export const browserClock: PageClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const end = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', end);
        resolve();
      }, ms);
      signal?.addEventListener('abort', end, { once: true });
    }),
};

/** The browser's chance, in [0, 1). Good for nothing but jitter. */
export const browserRandom = (): number => Math.random();
