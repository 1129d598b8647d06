import { checked, MS } from '../base/arguments.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { systemClock, systemRandom } from '../base/system.js';
import type { LeaseStore } from './lease-store.js';
import { checkEndpoint } from './store-kind.js';
import { ACCESS, parseStoreUrl, type StoreAccess } from './stores.js';

/** What a store needs in addition to its URL. */
export interface OpenStoreOptions extends StoreAccess {
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /** @default the operating system's */
  readonly random?: RandomSource | undefined;
  /**
   * How long one request may take in all, in milliseconds. Keep it below the renewal interval. Stores on this
   * machine ignore it.
   */
  readonly requestTimeoutMs: number;
}

/**
 * Opens the store that a URL names. Only the driver that it needs is loaded: an SDK costs time and memory.
 * Resolves before the store has been reached; close it with `close()`.
 *
 * @throws {ConfigError} when the URL, the endpoint or the region cannot be used, or the package that the
 * store needs is not installed
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<LeaseStore> {
  const {
    clock = systemClock,
    random = systemRandom,
    endpoint,
  } = checked(options, {
    ...ACCESS,
    requestTimeoutMs: MS,
  });
  const { kind, ...store } = parseStoreUrl(url);
  if (endpoint !== undefined) {
    if (kind.endpoint === undefined)
      throw new ConfigError('endpoint', endpoint, `no endpoint with the store ${store.url}`);
    checkEndpoint(endpoint, 'endpoint');
  }
  return kind.open({ ...options, clock, random, ...store });
}
