import type { Clock, RandomSource } from '../clock.js';
import { StoreError } from '../store/lease-store.js';
import type { LeaseListener } from './lease.js';
import { retry } from './retry.js';

/** First and longest pause while the store is away, in milliseconds. */
export const STORE_RETRY_MS = { first: 100, most: 2_000 };

/** Who is told of failures, and when to give up. */
export interface Persistence {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly emit: LeaseListener;
  readonly signal?: AbortSignal;
  /** When to stop trying, on the monotonic clock. */
  readonly until: number;
}

/**
 * Makes a call that changes nothing again and again while the store is away.
 *
 * @throws {StoreError} the last one, when the store does not return in time, or refuses
 * @throws `signal.reason`
 */
export function persistently<T>({ clock, random, emit, signal, until }: Persistence, call: () => Promise<T>): Promise<T> {
  return retry(call, {
    clock,
    random,
    until,
    baseMs: STORE_RETRY_MS.first,
    capMs: STORE_RETRY_MS.most,
    ...(signal && { signal }),
    shouldRetry: (error) => error instanceof StoreError && error.transient,
    onFailure: (error, _attempt, sleepMs) => emit({ type: 'store-failed', error, sleepMs }),
  });
}
