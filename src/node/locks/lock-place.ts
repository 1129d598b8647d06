import { checkArguments, STORE } from '../../core/base/arguments.js';
import type { Clock, RandomSource } from '../../core/base/clock.js';
import { ConfigError } from '../../core/base/errors.js';
import { ensureCluster } from '../../core/lease/acquire/ensure-cluster.js';
import { settleEpoch } from '../../core/lease/acquire/settled-epoch.js';
import { SETTLING, type StoreEpoch } from '../../core/lease/model/cluster-config.js';
import { refuseForeignFolder } from '../../core/lease/model/foreign-cluster.js';
import { detached, type LeaseListener } from '../../core/lease/model/lease.js';
import { takenAfterMs } from '../../core/lease/model/lease-state.js';
import { readCluster } from '../../core/lease/session/cluster-store.js';
import { whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { type LeaseStore, StoreError } from '../../core/store/lease-store.js';
import { LOCK_NAME, LOCKS, locksUrl } from '../../core/store/lock-url.js';
import { openedStore, REQUEST_TIMEOUT_MS, type StoreOptions } from '../runtime/opened-store.js';

/** @throws {ConfigError} when `name` is not allowed for a lock */
export function checkLockName(name: string): void {
  const expected = '1 to 200 letters, digits and ._- (no dot or probe- in front, and no .json at the end)';
  if (typeof name !== 'string' || !LOCK_NAME.test(name))
    throw new ConfigError('name of the lock', name, expected);
}

/** A URL below which locks are kept, or a function that opens the store at such a path. */
export type LockStore = string | ((path: string) => LeaseStore | Promise<LeaseStore>);

/**
 * The location of a lock: the URL of its store, or the store that a function has opened, for the caller to
 * close.
 * @throws {ConfigError}
 */
export async function lockPlace(store: LockStore, name?: string): Promise<string | LeaseStore> {
  if (typeof store !== 'function') return locksUrl(store, name);
  const opened = await store(name === undefined ? LOCKS : `${LOCKS}/${name}`);
  checkArguments({ store: opened }, { store: STORE });
  return opened;
}

/** Where locks are, and how to reach that. */
interface LockStoreOptions extends Omit<StoreOptions, 'store'> {
  readonly store: LockStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal?: AbortSignal | undefined;
  readonly onEvent?: LeaseListener | undefined;
  readonly durationMs?: number | undefined;
  readonly graceMs?: number | undefined;
}

/** Opens the store of a lock, or of all locks. @throws {ConfigError} */
export async function openedLock(options: LockStoreOptions, name?: string): Promise<LeaseStore> {
  const place = await lockPlace(options.store, name);
  return typeof place === 'string' ? openedStore({ ...options, store: place }, options) : place;
}

/**
 * Ensures that a remote store has passed the probe. The probe costs hundreds of requests, a read of its
 * record one.
 *
 * @returns the epoch of a lock that is not there: if the store has gone back, it may have been lost (rules 10
 * and 12)
 * @throws {StoreUnusableError} when the store fails the probe, or has failed one
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function ensureProbed(options: LockStoreOptions): Promise<StoreEpoch | undefined> {
  const { clock, random, signal, durationMs = 0, graceMs = 0 } = options;
  const store = await openedLock(options);
  try {
    const session = new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
    const emit = detached(options.onEvent);
    const call = { session, clock, random, signal, wanted: { nodes: 1 }, emit };
    const retry = whileStoreIsAway(call);
    for (;;) {
      const found = await retry((own) => readCluster(session, own));
      if (found === undefined) await retry(() => refuseForeignAbove(options, store));
      const known = found?.config.proven ? found : (await retry(() => ensureCluster(call))).cluster;
      const { config, isObserved, writtenAt } = known;
      const { epoch } = config;
      // A lock that is lost may have the duration that is asked for.
      const longestMs = Math.max(config.longestMs, durationMs);
      const until = writtenAt + takenAfterMs(longestMs, Math.max(config.graceMs, graceMs));
      const settle = () => settleEpoch({ ...call, retry }, known);
      let step = await settle();
      // The first task that has watched for so long records it for all.
      while (step.kind === 'settling' && isObserved) {
        const sleepMs = until + 1 - clock.monotonic();
        emit({ type: 'waiting', sleepMs, why: SETTLING });
        await clock.sleep(sleepMs, signal);
        step = await settle();
      }
      if (step.kind === 'recorded') continue;
      const settling = !isObserved && clock.monotonic() <= until;
      return epoch?.mark === undefined ? epoch : { ...epoch, settling };
    }
  } finally {
    await store.close();
  }
}

/** Refuses a bucket with another program's cluster, also for a folder in it. @throws {StoreUnusableError} */
async function refuseForeignAbove(options: LockStoreOptions, { remote }: LeaseStore) {
  const { store: url } = options;
  if (!remote || typeof url !== 'string') return;
  const store = await openedStore({ ...options, store: url }, options);
  try {
    const session = new StoreSession(store, options.clock, REQUEST_TIMEOUT_MS);
    await refuseForeignFolder(session, url, { signal: options.signal });
  } catch (error) {
    // A lock needs rights on its own folder only.
    if (!(error instanceof StoreError && error.fault === 'denied')) throw error;
  } finally {
    await store.close();
  }
}
