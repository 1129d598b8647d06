import type { PageClock } from '../page-clock.js';

/** The browser's time: the one place of the page that reads it. */
export const browserClock: PageClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
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
