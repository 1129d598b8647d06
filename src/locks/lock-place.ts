import type { Clock, RandomSource } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { ensureCluster } from '../lease/acquire/ensure-cluster.js';
import { retry, whileStoreIsAway } from '../lease/session/retry.js';
import { StoreSession } from '../lease/session/store-session.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../runtime/opened-store.js';
import type { LeaseStore } from '../store/lease-store.js';
import { parseStoreUrl } from '../store/store-url.js';

/** Where the locks of a store are kept: each in a folder of its own here. The record of the probe stands beside them. */
const LOCKS = 'locks';

/** A segment of a path in every store. An object and a folder of one name exclude each other on some servers; objects end in .json. */
const NAME = /^(?!.*\.json$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** @throws {ConfigError} when `name` cannot be that of a lock */
export function checkLockName(name: string): void {
  if (NAME.test(name)) return;
  const expected = '1 to 200 letters, digits and ._- (no dot in front, and no .json at the end)';
  throw new ConfigError('name of the lock', name, expected);
}

/** Where a lock is kept. */
export interface LockStoreOptions {
  /**
   * `s3://bucket/prefix`, `file:DIR`, or `memory:`, which excludes no one, for trials. The lock is the cluster of one node id at `locks/NAME`
   * below it. A function opens stores of your own: it gets such a path, at which the objects have to be kept. @default 'file:.nodelease'
   */
  readonly store?: string | ((path: string) => LeaseStore | Promise<LeaseStore>) | undefined;
  /** URL of an S3-compatible server. @default AWS */
  readonly endpoint?: string | undefined;
  /** Region of the bucket. @default what the AWS environment says */
  readonly region?: string | undefined;
  /** The first pause between two looks at a lock that is held, where the store tells of no changes, in milliseconds, 100 … 86400000. @default 1200 */
  readonly waitPollMs?: number | undefined;
}

interface LockPlaceOptions extends LockStoreOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal?: AbortSignal | undefined;
}

/** Where a lock is kept: the URL of its store, or, where a function opens those, the store itself, for the caller to close. */
export async function lockPlace(name: string, { store = 'file:.nodelease' }: LockStoreOptions): Promise<string | LeaseStore> {
  const path = `${LOCKS}/${name}`;
  return typeof store === 'function' ? store(path) : urlBelow(store, path);
}

/**
 * Makes sure that a remote store has passed the probe. One probe serves all locks of a store: it costs hundreds of requests, and reading its
 * record one.
 *
 * @throws {StoreUnusableError} when the store fails the probe, or has failed one
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function ensureProbed(options: LockPlaceOptions): Promise<void> {
  const { store: given = 'file:.nodelease', clock, random, signal } = options;
  const store =
    typeof given === 'function' ? await given(LOCKS) : await openedStore({ ...options, store: urlBelow(given, LOCKS) }, options);
  try {
    if (!store.remote) return;
    const session = new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
    const call = { session, clock, random, signal, wanted: { nodes: 1 } };
    await retry(() => ensureCluster(call), whileStoreIsAway(call));
  } finally {
    await store.close();
  }
}

/** @throws {ConfigError} when it is no store's URL */
function urlBelow(store: string, path: string): string {
  const { kind, url } = parseStoreUrl(store, 'store');
  return kind === 'memory' ? url : `${url.replace(/\/$/, '')}/${path}`;
}
