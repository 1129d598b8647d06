import { onAbort } from '../../core/base/abort.js';
import { checkArguments, checkKnown, MS, oneOf } from '../../core/base/arguments.js';
import type { Clock, RandomSource } from '../../core/base/clock.js';
import { AcquireTimeoutError, StoreUnusableError, WaitTimeoutError } from '../../core/base/errors.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { checkWanted } from '../../core/lease/model/cluster-config.js';
import type { LeaseLostError } from '../../core/lease/model/lease.js';
import { LockLostError } from '../../core/lease/model/lock-lost.js';
import { StoreError } from '../../core/store/lease-store.js';
import { refuseLock } from '../../core/store/lock-url.js';
import { DEFAULT_STORE, defaultStore } from '../../core/store/store-settings.js';
import { ACCESS, type StoreAccess } from '../../core/store/stores.js';
import { type AcquireOptions, ownNames } from '../runtime/acquire.js';
import { checkOptions } from '../runtime/check-options.js';
import { type HeldNode, holdNode } from '../runtime/hold-node.js';
import { checkLockName, ensureProbed, type LockStore, lockPlace } from './lock-place.js';

/** The options of `acquire()` that mean the same for a lock. */
const SHARED = ['waitPollMs', 'durationMs', 'graceMs', 'taskId', 'keeper', 'onEvent', 'signal'] as const;
export const LOCK_OPTIONS = [...SHARED, ...Object.keys(ACCESS), 'store', 'timeoutMs', 'clock', 'random'];

type SharedOptions = { readonly [Name in (typeof SHARED)[number]]?: AcquireOptions[Name] | undefined };

/** How to acquire a lock. */
export interface LockOptions extends SharedOptions, StoreAccess {
  /**
   * The URL of a store, as for `acquire()`; `memory:` excludes no task, for trials. The lock is the cluster of
   * one node id at `locks/NAME` below it. A function gets such a path, and opens your own store there, which
   * is closed after use. Required in a container.
   * @default 'file:.nodelease'
   */
  readonly store?: LockStore | undefined;
  /** How long to wait for the lock, in milliseconds; 0 to try once. @default no limit */
  readonly timeoutMs?: number | undefined;
  /** @default the system's */
  readonly clock?: Clock | undefined;
  /** @default the system's */
  readonly random?: RandomSource | undefined;
}

/**
 * A lock that this process holds. Dispose of it (`await using`) or call `release()` when the work has ended;
 * stop the work when `signal` aborts.
 */
export interface StoreLock extends AsyncDisposable {
  readonly name: string;
  /**
   * The fencing token: greater at every new holding of this lock, never used twice. Send it along with every
   * write that it should protect.
   */
  readonly token: bigint;
  /**
   * Aborts with a {@link LockLostError} once the lock is lost, and not on `release()`. Before an operation
   * that must not happen twice, call `isValid()`.
   */
  readonly signal: AbortSignal;
  /** Until when the lock is held unless it is renewed, in milliseconds on the monotonic clock. */
  readonly deadline: number;
  /**
   * True while this process can prove that it holds the lock. Compares clocks when asked, so it is right even
   * after a pause.
   */
  isValid(): boolean;
  /**
   * Releases the lock. It does not throw when the store fails: the lease is then left to expire. Later calls
   * share the result of the first one.
   */
  release(): Promise<void>;
}

/**
 * Acquires a lock on a lease store and keeps it until it is released or lost. The lock is the lease of a
 * cluster's only node id, by the same engine.
 *
 * ```ts
 * await using lock = await acquireLock('nightly', { store: 's3://bucket/my-service', timeoutMs: 0 });
 * await report(lock.token, { signal: lock.signal });
 * ```
 *
 * Not guaranteed: an order among waiting tasks; that code which checks neither `signal` nor `isValid()` stops
 * in time.
 *
 * @throws {ConfigError} when the name is not allowed for a lock, or an option is unknown or out of range
 * @throws {StoreUnusableError} when the store cannot be reached, denies access, ignores conditions, or has a
 * larger cluster there
 * @throws {WaitTimeoutError} when the lock did not become free in time
 * @throws `signal.reason` when `signal` aborts first
 */
export async function acquireLock(name: string, options: LockOptions = {}): Promise<StoreLock> {
  checkLock(name, options);
  const known = await withDefaults(options);
  const { store, timeoutMs: acquireTimeoutMs, onEvent: onLeaseEvent } = known;
  const place = await lockPlace(store, name);
  const end = async (node?: HeldNode) => {
    await node?.end({ workEnded: true });
    if (typeof place !== 'string') await place.close();
  };
  try {
    const epoch = await ensureProbed(known);
    const wanted = { nodes: 1, probed: true, epoch, acquireTimeoutMs, store: place, onLeaseEvent };
    const node = await holdNode({ ...known, ...wanted });
    if (node.lease.id === 0) return handleOf(name, node, end);
    await node.end({ workEnded: true });
    throw new StoreUnusableError(
      'CLUSTER_FOREIGN',
      'this is a cluster of several node ids, and a lock has one: nodelease scale 1 makes it a lock again',
    );
  } catch (error) {
    await end();
    // These errors name its store or its node id: the lock is named instead.
    if (error instanceof AcquireTimeoutError)
      throw new WaitTimeoutError(`lock ${name} did not become free in time`, { cause: error });
    if (error instanceof StoreError || error instanceof StoreUnusableError)
      throw new StoreUnusableError(error.code, `lock ${name} cannot be acquired`, { cause: error });
    throw error;
  }
}

/** The options, those that were left out too. */
export async function withDefaults(options: LockOptions) {
  const { store = DEFAULT_STORE, clock = systemClock, random = systemRandom } = options;
  // Copied before the wait, in which their owner may change them.
  return { ...options, store, clock, random, taskId: options.taskId ?? (await ownNames(options)).taskId };
}

function handleOf(name: string, node: HeldNode, end: (node: HeldNode) => Promise<void>): StoreLock {
  const { lease } = node;
  const token = BigInt(lease.version);
  const lost = new AbortController();
  onAbort(lease.signal, () => {
    const { reason, deadline, detail, cause } = lease.signal.reason as LeaseLostError;
    lost.abort(new LockLostError(name, token, reason, deadline, detail, cause));
  });
  let ending: Promise<void> | undefined;
  const release = () => {
    ending ??= end(node);
    return ending;
  };
  return {
    ...{ name, token, signal: lost.signal, release, [Symbol.asyncDispose]: release },
    get deadline() {
      return lease.deadline;
    },
    isValid: () => lease.isValid(),
  };
}

/** Checks what the compiler checks in TypeScript, too. @throws {ConfigError} */
export function checkLock(name: string, options: LockOptions): void {
  checkLockName(name);
  checkKnown(options, LOCK_OPTIONS);
  checkWanted(options);
  const isMade = typeof options.store === 'function';
  checkOptions(isMade ? { ...options, store: undefined } : options, '', LOCK_OPTIONS);
  const { timeoutMs = 0, keeper = 'inline' } = options;
  checkArguments({ timeoutMs, keeper }, { timeoutMs: MS, keeper: oneOf('inline', 'worker') });
  if (options.store === undefined) defaultStore();
  if (typeof options.store === 'string') refuseLock(options.store);
}
