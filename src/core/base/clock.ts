/**
 * Time, as the engine sees it. Everything below `src/app/cli` takes one of these as a parameter and reads no
 * other clock, so that the simulation can run the shipped code in virtual time.
 */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. For people only: no safety rule may depend on it. */
  now(): number;
  /**
   * Milliseconds on a clock that never goes back. It continues while the process is suspended, and while the
   * machine is, if the operating system reports that. Only differences have a meaning.
   */
  monotonic(): number;
  /**
   * Resolves after `ms` milliseconds. Rejects at once with `signal.reason` when `signal` aborts, and keeps no
   * listener.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Random numbers, as the engine sees them. */
export interface RandomSource {
  /** A number in [0, 1). */
  next(): number;
  /**
   * `bytes` random bytes as lower-case hex: hard to guess, and unique for all practical purposes from 12
   * bytes on.
   */
  hex(bytes: number): string;
}
