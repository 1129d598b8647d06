import type { Clock, RandomSource } from '../../core/base/clock.js';
import type { LeaseStore } from '../../core/store/lease-store.js';
import type { OpenStoreOptions } from '../../core/store/open-store.js';
import type { StoreUrl } from '../../core/store/store-url.js';

/**
 * The longest time of one request to the store, in milliseconds. A held lease with a short duration gives its
 * own requests less.
 */
export const REQUEST_TIMEOUT_MS = 5_000;

/** How to reach a store. */
type StoreAccess = Omit<OpenStoreOptions, 'clock' | 'random' | 'requestTimeoutMs'>;

/** Which store, and how to reach it. */
export interface StoreOptions extends StoreAccess {
  readonly store: StoreUrl | string;
}

/** Of settings that have more, how to reach the store. A field that is forgotten here does not compile. */
export function storeAccess({ endpoint, region, etcd }: StoreAccess): Required<StoreAccess> {
  return { endpoint, region, etcd };
}

/**
 * Opens the store that the settings name; its code is loaded only then.
 * @throws {ConfigError} when a setting is unusable
 */
export async function openedStore(
  { store, ...settings }: StoreOptions,
  { clock, random }: { readonly clock: Clock; readonly random: RandomSource },
): Promise<LeaseStore> {
  const { openStore } = await import('../../core/store/open-store.js');
  return openStore(store, {
    ...storeAccess(settings),
    clock,
    random,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  });
}
