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

/** The longest sleep between two readings of the clock, in milliseconds. */
const LONGEST_NAP_MS = 1_000;

/**
 * Sleeps until a time of the monotonic clock, which it reads again every second: timers stop while the
 * machine is suspended, but a deadline does not. The time is asked for again as well.
 *
 * @throws `signal.reason` as soon as `signal` aborts
 */
export async function sleepUntil(
  clock: Clock,
  time: number | (() => number),
  signal?: AbortSignal,
): Promise<void> {
  signal?.throwIfAborted();
  const leftMs = () => (typeof time === 'number' ? time : time()) - clock.monotonic();
  for (let left = leftMs(); left > 0; left = leftMs()) {
    await clock.sleep(Math.min(left, LONGEST_NAP_MS), signal);
  }
}

/** A random UUID (RFC 9562, version 4). */
export function randomUuid(random: Pick<RandomSource, 'hex'>): string {
  const hex = random.hex(16);
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) % 4];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
