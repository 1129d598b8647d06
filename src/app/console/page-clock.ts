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

/** How far the server's wall clock is ahead of the browser's, in milliseconds. */
let aheadMs = 0;

/** Takes the wall clock from an answer that has just begun: all times that the server sends are by it. */
export function followServerClock(headers: Headers): void {
  aheadMs = aheadOf(headers.get('date'), Date.now());
}

/** A `Date` has whole seconds, and its answer takes a while: no less than this is a difference, in milliseconds. */
const MIN_AHEAD_MS = 2_000;

/**
 * How far the clock of a server is ahead, by the `Date` of its answer, in milliseconds: 0 if it says nothing.
 * @param now the own wall clock
 */
export function aheadOf(date: string | null, now: number): number {
  const ahead = Date.parse(date ?? '') + 500 - now;
  return Math.abs(ahead) >= MIN_AHEAD_MS ? ahead : 0;
}

/** The browser's time, by the server's wall clock: the one place of the page that reads it. */
export const browserClock: PageClock = {
  now: () => Date.now() + aheadMs,
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
