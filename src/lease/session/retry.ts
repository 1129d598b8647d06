import pRetry from 'p-retry';
import { type Backoff, backoffMs } from '../../base/backoff.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { StoreError } from '../../store/lease-store.js';
import type { LeaseListener } from '../model/lease.js';

/** When and how long to try again. */
export interface RetryPolicy {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** No attempt starts at or after this time of the monotonic clock, other than the first. */
  readonly until: number;
  /** The first pause, and the longest one, in milliseconds: see {@link backoffMs}. */
  readonly baseMs: number;
  readonly capMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether this failure may pass by itself. */
  shouldRetry(error: unknown): boolean;
  onFailure?(error: unknown, attempt: number, pauseMs: number): void;
}

/** The pauses while a store is away. */
export const STORE_BACKOFF: Backoff = { first: 100, max: 2_000 };

/** How long a store may be away before a command of an operator gives up, in milliseconds. */
const STORE_AWAY_MS = 10_000;

export interface StoreRetryOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal?: AbortSignal | undefined;
  /** When to give up, on the monotonic clock. @default ten seconds after the call */
  readonly until?: number | undefined;
  /** Told of each failure that is followed by another attempt. */
  readonly emit?: LeaseListener | undefined;
}

/**
 * Retries a call while the store is away: one that changes nothing, or that does no harm when it is made
 * twice.
 */
export function whileStoreIsAway({ clock, random, signal, until, emit }: StoreRetryOptions): RetryPolicy {
  return {
    ...{ clock, random, signal, until: until ?? clock.monotonic() + STORE_AWAY_MS },
    ...{ baseMs: STORE_BACKOFF.first, capMs: STORE_BACKOFF.max },
    shouldRetry: (error) => error instanceof StoreError && error.transient,
    onFailure: (error, _attempt, sleepMs) => emit?.({ type: 'store-failed', error, sleepMs }),
  };
}

/**
 * Retries what only reads while the store answers that it is too busy, such as 503: that may be over in a
 * moment. A store that does not answer at all is reported at once, since its address may be wrong.
 */
export function whileStoreIsBusy(options: StoreRetryOptions): RetryPolicy {
  return {
    ...whileStoreIsAway(options),
    shouldRetry: (error) => error instanceof StoreError && error.fault === 'unavailable',
  };
}

/**
 * Calls `attempt` until it succeeds, fails for good, or the time is up; then throws the last failure, or
 * `signal.reason`.
 *
 * p-retry runs the loop after the first failure. Its own pauses are switched off, since they read the ambient
 * clock.
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
  const { clock, random, signal, baseMs, capMs } = policy;
  if (!policy.shouldRetry(error)) return false;
  const leftMs = policy.until - clock.monotonic();
  if (leftMs < baseMs / 2) return false;
  // Never past the middle of what is left: the last attempts lie close to the end, where they may still save
  // the lease.
  const pauseMs = Math.min(backoffMs({ first: baseMs, max: capMs }, attemptNumber, random), leftMs / 2);
  policy.onFailure?.(error, attemptNumber, pauseMs);
  await clock.sleep(pauseMs, signal);
  return true;
}
