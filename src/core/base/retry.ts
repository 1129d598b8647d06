import pRetry from 'p-retry';
import type { Clock, RandomSource } from './clock.js';

/**
 * The pauses between attempts, in milliseconds: `first` after one failure, twice as long after each further
 * one, `max` at the longest.
 */
export interface Backoff {
  readonly first: number;
  readonly max: number;
  /** Number of failures that are followed by another attempt without a pause. @default 0 */
  readonly atOnce?: number;
}

/** The pauses while a server is away. */
export const SERVER_AWAY: Backoff = { first: 100, max: 2_000 };
/** The same where a caller waits for the first success, or for each further one. */
export const CALLER_WAITS: Backoff = { first: 100, max: 1_000 };
/** The same for work in the background, which no caller waits for. */
export const IN_BACKGROUND: Backoff = { first: 100, max: 5_000 };
/** The pauses after a lost race for one object: the winner is done in a few milliseconds. */
export const LOST_RACE: Backoff = { first: 5, max: 200 };

/**
 * How long to wait after this many consecutive failures: not at all after none. Jitter shortens it by up to
 * half, so that tasks do not retry at the same moment.
 */
export function backoffMs(
  { first, max, atOnce = 0 }: Backoff,
  failures: number,
  random: Pick<RandomSource, 'next'>,
): number {
  const paused = failures - atOnce;
  return paused < 1 ? 0 : Math.min(max, first * 2 ** Math.min(paused - 1, 30)) * (0.5 + random.next() / 2);
}

/** What is retried, for how long, and with which pauses. */
export interface RetryPolicy {
  readonly clock: Clock;
  readonly random: RandomSource;
  /**
   * No attempt but the first starts at or after this time of the monotonic clock. With `timeoutMs`, the later
   * of the two counts: faults that pass are retried although no time is left to wait for others.
   * @default no limit
   */
  readonly until?: number | undefined;
  /** The same, in milliseconds from the first attempt on. It does not bound an attempt that hangs. */
  readonly timeoutMs?: number;
  /** @default 100 ms to 2 s */
  readonly backoff?: Backoff;
  readonly signal?: AbortSignal | undefined;
  /** Whether a failure may pass by itself, and the attempt does no harm when it is made again. */
  readonly mayPass: (error: unknown) => boolean;
  /** Receives each failure that is followed by another attempt. Must not throw. */
  readonly onFailure?: (error: Error, attempt: number, pauseMs: number) => void;
}

/** A policy but for what is retried. */
export type RetryOptions = Omit<RetryPolicy, 'mayPass'>;

/**
 * A policy that is ready for use: makes an attempt until it succeeds, fails for good, or the time is up; then
 * throws the last failure. A TypeError is a mistake in the code, and never retried.
 *
 * @param attempt gets what to pass on to its calls, and its number, 1 for the first
 * @throws `signal.reason` instead of a failure once `signal` has aborted
 */
export type Retry = <T>(
  attempt: (call: Pick<RetryPolicy, 'signal'>, number: number) => Promise<T>,
) => Promise<T>;

/**
 * p-retry sleeps, draws and measures by ambient time and chance only. So its own pauses are zero, and the
 * injected clock sleeps in its hook. It does not get the signal, either: it would drop the value of an attempt
 * that succeeds while the signal aborts.
 */
const WITHOUT_PAUSE = { retries: Number.POSITIVE_INFINITY, minTimeout: 0, factor: 1 };

/** Composes a policy, once for any number of calls. */
export function retrying(policy: RetryPolicy): Retry {
  const { clock, random, signal, mayPass, onFailure, until: limit } = policy;
  const { timeoutMs = limit === undefined ? Number.POSITIVE_INFINITY : 0, backoff = SERVER_AWAY } = policy;
  return async (attempt) => {
    const until = Math.max(limit ?? 0, clock.monotonic() + timeoutMs);
    const call = (number: number) => {
      signal?.throwIfAborted();
      return attempt({ signal }, number);
    };
    const pauseAfter = async (error: Error, failures: number) => {
      signal?.throwIfAborted();
      const leftMs = until - clock.monotonic();
      if (error instanceof TypeError || !mayPass(error) || leftMs < backoff.first / 2) throw error;
      // Never past the middle of what is left: the last attempts lie close to the end, where they may still
      // save the lease.
      const pauseMs = Math.min(backoffMs(backoff, failures, random), leftMs / 2);
      onFailure?.(error, failures, pauseMs);
      if (pauseMs > 0) await clock.sleep(pauseMs, signal);
      // The process may have been paused meanwhile.
      if (clock.monotonic() >= until) throw error;
    };
    // Most calls succeed at once, and take no policy: a fifth of the time of a lock.
    let first: unknown;
    try {
      return await call(1);
    } catch (error) {
      first = error;
    }
    return pRetry((number) => (number === 1 ? Promise.reject(first) : call(number)), {
      ...WITHOUT_PAUSE,
      onFailedAttempt: ({ error, attemptNumber }) => pauseAfter(error, attemptNumber),
    });
  };
}
