import type { Settings } from '../config.js';
import type { LeaseStore } from '../store/lease-store.js';
import type { Io } from './io.js';

/** How long one request to the store may take, in milliseconds, at the most. */
export const REQUEST_TIMEOUT_MS = 5_000;

/**
 * Opens the store that the settings name. Its code is loaded when it is needed, and not before.
 *
 * @throws {ConfigError} when a setting turns out to be unusable
 */
export async function openedStore(
  { store, endpoint, region, waitPollMs: pollMs }: Pick<Settings, 'store' | 'endpoint' | 'region' | 'waitPollMs'>,
  { clock, random }: Pick<Io, 'clock' | 'random'>,
): Promise<LeaseStore> {
  const { openStore } = await import('../store/open-store.js');
  return openStore(store, {
    ...{ clock, random, requestTimeoutMs: REQUEST_TIMEOUT_MS, pollMs },
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
  });
}
