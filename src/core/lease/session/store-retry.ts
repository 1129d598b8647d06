import { type Retry, type RetryOptions, type RetryPolicy, retrying } from '../../base/retry.js';
import { StoreError } from '../../store/lease-store.js';
import type { LeaseListener } from '../model/lease.js';

/** How long a store may be away, in milliseconds, where nothing says longer. */
export const STORE_AWAY_MS = 10_000;

/** A call is retried for ten seconds, or longer if `until` says so: it bounds the wait for holders. */
interface StoreRetryOptions extends RetryOptions {
  /** Receives each failure that is followed by another attempt. */
  readonly emit?: LeaseListener | undefined;
}

/** Whether a failure of the store may pass by itself. */
export const isStoreAway = (error: unknown) => error instanceof StoreError && error.transient;

/**
 * Retries a call while the store is away: one that changes nothing, or that does no harm when it is made
 * twice.
 */
export const whileStoreIsAway = (
  { emit, ...options }: StoreRetryOptions,
  mayPass: RetryPolicy['mayPass'] = isStoreAway,
): Retry =>
  retrying({
    ...{ timeoutMs: STORE_AWAY_MS, ...options, mayPass },
    onFailure: (error, _attempt, sleepMs) => emit?.({ type: 'store-failed', error, sleepMs }),
  });

/**
 * Retries a call as `whileStoreIsAway` does, but only while the store answers that it is too busy, such as 503: that
 * may be over in a moment. A store that does not answer at all is reported at once, since its address may be wrong.
 */
export const whileStoreIsBusy = (options: StoreRetryOptions): Retry =>
  whileStoreIsAway(options, (error) => error instanceof StoreError && error.fault === 'unavailable');
