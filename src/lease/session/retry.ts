import pRetry from 'p-retry';
import type { Clock, RandomSource } from '../../base/clock.js';
import { StoreError } from '../../store/lease-store.js';
import type { LeaseListener } from '../model/lease.js';

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

/** The first and the longest pause while a store is away, in milliseconds. */
export const STORE_RETRY = { baseMs: 100, capMs: 2_000 } as const;

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

/** Retries a call while the store is away: one that changes nothing, or that does no harm when it is made twice. */
export function whileStoreIsAway({ clock, random, signal, until, emit }: StoreRetryOptions): RetryPolicy {
  return {
    ...{ clock, random, ...STORE_RETRY, until: until ?? clock.monotonic() + STORE_AWAY_MS },
    ...(signal && { signal }),
    shouldRetry: (error) => error instanceof StoreError && error.transient,
    onFailure: (error, _attempt, sleepMs) => emit?.({ type: 'store-failed', error, sleepMs }),
  };
}

/**
 * Calls `attempt` until it succeeds, fails for good, or the time is up; then throws the last failure, or `signal.reason`.
 *
 * p-retry runs the loop after the first attempt failed. Its own pauses are switched off: they read the ambient clock, ours the injected one.
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
