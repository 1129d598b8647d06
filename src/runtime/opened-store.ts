import type { Clock, RandomSource } from '../base/clock.js';
import type { EtcdAccess } from '../store/etcd/etcd-access.js';
import type { LeaseStore } from '../store/lease-store.js';
import type { StoreUrl } from '../store/store-url.js';

/**
 * The longest time of one request to the store, in milliseconds. A held lease with a short duration gives its
 * own requests less.
 */
export const REQUEST_TIMEOUT_MS = 5_000;

/** Which store, and how to reach it. */
export interface StoreOptions {
  readonly store: StoreUrl | string;
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly etcd?: EtcdAccess | undefined;
  readonly waitPollMs?: number | undefined;
}

/**
 * Opens the store that the settings name; its code is loaded only then.
 * @throws {ConfigError} when a setting is unusable
 */
export async function openedStore(
  { store, endpoint, region, etcd, waitPollMs: pollMs }: StoreOptions,
  { clock, random }: { readonly clock: Clock; readonly random: RandomSource },
): Promise<LeaseStore> {
  const { openStore } = await import('../store/open-store.js');
  return openStore(store, {
    ...{ clock, random, requestTimeoutMs: REQUEST_TIMEOUT_MS, pollMs },
    endpoint,
    region,
    etcd,
  });
}
