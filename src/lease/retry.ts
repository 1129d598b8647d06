import pRetry from 'p-retry';
import type { Clock, RandomSource } from '../clock.js';

/** When and how long to try again. Milliseconds throughout. */
export interface RetryPolicy {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** No attempt starts at or after this time of the monotonic clock, other than the first. */
  readonly until: number;
  /** The first pause; each further one is twice as long, at most `capMs`, and shortened at random by up to half. */
  readonly baseMs: number;
  readonly capMs: number;
  readonly signal?: AbortSignal;
  /** Whether this failure may pass by itself. */
  shouldRetry(error: unknown): boolean;
  onFailure?(error: unknown, attempt: number, pauseMs: number): void;
}

/**
 * Calls `attempt` until it succeeds, fails for good, or the time is up; then throws the last failure, or `signal.reason`.
 *
 * p-retry runs the loop, and its own pauses are switched off: they read the ambient clock, ours the injected one. It is called when
 * there is something to try again; the first attempts, nearly all of which succeed, should not pay for it.
 */
export async function retry<T>(attempt: () => Promise<T>, policy: RetryPolicy): Promise<T> {
  policy.signal?.throwIfAborted();
  let failure: unknown;
  try {
    const value = await attempt();
    policy.signal?.throwIfAborted();
    return value;
  } catch (error) {
    if (!policy.shouldRetry(error)) throw error;
    failure = error;
  }
  return pRetry((number) => (number === 1 ? Promise.reject(failure) : attempt()), {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 0,
    factor: 1,
    ...(policy.signal && { signal: policy.signal }),
    shouldRetry: ({ error, attemptNumber }) => pauseAfter(error, attemptNumber, policy),
  });
}

/** Sleeps before the next attempt; false when there is to be none. */
async function pauseAfter(error: unknown, attemptNumber: number, policy: RetryPolicy): Promise<boolean> {
  const { clock, random, signal } = policy;
  if (!policy.shouldRetry(error)) return false;
  const left = policy.until - clock.monotonic();
  if (left < policy.baseMs / 2) return false;
  const ceiling = Math.min(policy.capMs, policy.baseMs * 2 ** Math.min(attemptNumber - 1, 30));
  // Never past the middle of what is left: the last attempts lie close to the end, where they may still save the lease.
  const pauseMs = Math.min(ceiling * (1 - random.next() / 2), left / 2);
  policy.onFailure?.(error, attemptNumber, pauseMs);
  await clock.sleep(pauseMs, signal);
  return true;
}
