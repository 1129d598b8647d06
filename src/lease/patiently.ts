import type { Clock, RandomSource } from '../clock.js';
import { StoreError } from '../store/lease-store.js';
import { STORE_RETRY_MS } from './persistently.js';
import { retry } from './retry.js';

export interface Patience {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal?: AbortSignal | undefined;
  /** When to give up, on the monotonic clock. @default some seconds after the call */
  readonly until?: number | undefined;
}

/** How long a store may be away before a command of an operator's gives up, in milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * Makes a call again and again while the store is away: one that changes nothing, or that may as well be made twice.
 *
 * @throws {StoreError} the last one, when the store does not return, or refuses
 * @throws `signal.reason`
 */
export function patiently<T>({ clock, random, signal, until }: Patience, call: () => Promise<T>): Promise<T> {
  return retry(call, {
    clock,
    random,
    until: until ?? clock.monotonic() + PATIENCE_MS,
    baseMs: STORE_RETRY_MS.first,
    capMs: STORE_RETRY_MS.most,
    ...(signal && { signal }),
    shouldRetry: (error) => error instanceof StoreError && error.transient,
  });
}
