import type { Clock, RandomSource } from '../../core/base/clock.js';
import type { LeaseStore } from '../../core/store/lease-store.js';
import type { StoreAccess } from '../../core/store/store-access.js';
import { ACCESS } from '../../core/store/stores.js';

/**
 * The longest time of one request to the store, in milliseconds. A held lease with a short duration gives its
 * own requests less.
 */
export const REQUEST_TIMEOUT_MS = 5_000;

/** Which store, and how to reach it. */
export interface StoreOptions extends StoreAccess {
  readonly store: string;
}

/** Of settings that have more, how to reach the store. */
export function storeAccess(settings: StoreAccess): StoreAccess {
  return Object.fromEntries(Object.keys(ACCESS).map((name) => [name, settings[name as keyof StoreAccess]]));
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
