/** Time, as the page sees it; everything takes it as a parameter, so that tests can move it. The same shape as the engine's `Clock`. */
export interface PageClock {
  /** Wall clock, milliseconds since the Unix epoch. For people only. */
  now(): number;
  /** Milliseconds on a clock that never goes back. Only differences mean anything. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds. Rejects at once with `signal.reason` when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
