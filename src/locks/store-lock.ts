import { onAbort } from '../base/abort.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { AcquireTimeoutError, ConfigError, StoreUnusableError } from '../base/errors.js';
import { systemClock, systemRandom } from '../base/system.js';
import { checkWanted } from '../lease/model/cluster-config.js';
import type { LeaseListener, LeaseLostError } from '../lease/model/lease.js';
import { LockLostError } from '../lease/model/lock-lost.js';
import { ownTaskId } from '../runtime/acquire.js';
import { type HeldNode, holdNode } from '../runtime/hold-node.js';
import { checkOptions } from '../settings/settings-table.js';
import { StoreError } from '../store/lease-store.js';
import { checkLockName, ensureProbed, type LockStoreOptions, lockPlace } from './lock-place.js';

/** How to acquire a lock. */
export interface LockOptions extends LockStoreOptions {
  /** How long to wait for the lock, in milliseconds; 0 to try once. @default no limit */
  readonly timeoutMs?: number | undefined;
  /** How long the lock lasts without renewal, in milliseconds, 1000 … 86400000; the first holder's holds for all. @default 15000 */
  readonly durationMs?: number | undefined;
  /** How much longer others wait before they take an expired lock, in milliseconds; the first holder's holds for all. @default 1000, or more for a long duration */
  readonly graceMs?: number | undefined;
  /** Names this run of this process, for those who look at the lock. @default the ECS task's id, else host name and a random part */
  readonly taskId?: string | undefined;
  /**
   * Where the lock is renewed: `inline` in this thread, `worker` in a thread of its own, which goes on when this one blocks.
   * `worker` needs a store given by its URL, other than `memory:`. @default 'inline'
   */
  readonly keeper?: 'inline' | 'worker';
  /** Receives what happens to the lock's lease. */
  readonly onEvent?: LeaseListener | undefined;
  /** Gives up waiting. Has no effect once the lock is held. */
  readonly signal?: AbortSignal | undefined;
  /** @default the system's */
  readonly clock?: Clock;
  /** @default the system's */
  readonly random?: RandomSource;
}

/** A lock that this process holds. Dispose of it (`await using`) or call `release()` when the work has ended; stop the work when `signal` aborts. */
export interface LockHandle extends AsyncDisposable {
  readonly name: string;
  /** The fencing token: greater at every new holding of this lock, never used twice. Send it along with every write that it should protect. */
  readonly token: bigint;
  /** Aborts with a {@link LockLostError} once the lock is lost, and not on `release()`. Before an act that must not happen twice, ask `isValid()`. */
  readonly signal: AbortSignal;
  /** Until when the lock is held unless it is renewed, in milliseconds on the monotonic clock. */
  readonly deadline: number;
  /** True while this process can prove that it holds the lock. Compares clocks when asked, so it is right even after a pause. */
  isValid(): boolean;
  /** Gives the lock back. Never throws for want of the store: a release that fails is left to expire. Later calls share the first one's end. */
  release(): Promise<void>;
}

/**
 * Acquires a lock on a lease store and keeps it until it is released or lost. The lock is the lease of a cluster's only node id, by the same engine:
 * one holder at a time, and a fencing token for what the holder writes.
 *
 * ```ts
 * await using lock = await acquireLock('nightly', { store: 's3://bucket/my-service', timeoutMs: 0 });
 * await report(lock.token, { signal: lock.signal });
 * ```
 *
 * Not guaranteed: an order among those who wait; that code which looks at neither `signal` nor `isValid()` stops in time.
 *
 * @throws {ConfigError} when the name cannot be a lock's, or an option is unknown or out of range
 * @throws {StoreUnusableError} when the store cannot be reached, denies access, ignores conditions, or has a larger cluster there
 * @throws {AcquireTimeoutError} when the lock did not become free in time
 * @throws `signal.reason` when `signal` aborts first
 */
export async function acquireLock(name: string, options: LockOptions = {}): Promise<LockHandle> {
  checkLock(name, options);
  const { timeoutMs: acquireTimeoutMs, onEvent: onLeaseEvent, clock = systemClock, random = systemRandom, ...rest } = options;
  const taskId = options.taskId ?? (await ownTaskId(options.signal));
  const place = await lockPlace(name, options);
  const end = async (node?: HeldNode) => {
    await node?.end({ workEnded: true });
    if (typeof place !== 'string') await place.close();
  };
  try {
    await ensureProbed({ ...options, clock, random });
    const wanted = { nodes: 1, probed: true, taskId, acquireTimeoutMs };
    const node = await holdNode({ ...rest, ...wanted, store: place, clock, random, onLeaseEvent });
    if (node.lease.id === 0) return handleOf(name, node, end);
    await node.end({ workEnded: true });
    throw new StoreUnusableError('this is a cluster of several node ids, and a lock has one: nodelease scale 1 makes it a lock again');
  } catch (error) {
    await end();
    throw named(name, error);
  }
}

function handleOf(name: string, node: HeldNode, end: (node: HeldNode) => Promise<void>): LockHandle {
  const { lease } = node;
  const token = BigInt(lease.version);
  const lost = new AbortController();
  onAbort(lease.signal, () => {
    const { reason, deadline, detail, cause } = lease.signal.reason as LeaseLostError;
    lost.abort(new LockLostError(name, token, reason, deadline, detail, cause));
  });
  let releasing: Promise<void> | undefined;
  const release = () => {
    releasing ??= end(node);
    return releasing;
  };
  return {
    ...{ name, token, signal: lost.signal, release, [Symbol.asyncDispose]: release },
    get deadline() {
      return lease.deadline;
    },
    isValid: () => lease.isValid(),
  };
}

/** The failure with the lock's name, where it would name the store or its node id alone. */
function named(name: string, error: unknown): unknown {
  if (error instanceof AcquireTimeoutError) return new AcquireTimeoutError(`lock ${name} did not become free in time`, { cause: error });
  if (error instanceof StoreError || error instanceof StoreUnusableError) {
    return new StoreUnusableError(`lock ${name} cannot be had`, { cause: error });
  }
  return error;
}

/** The options that the settings' table has, and the others. */
const TABLE_OPTIONS = ['store', 'endpoint', 'region', 'waitPollMs', 'durationMs', 'graceMs', 'taskId'] as const;
const OTHER_OPTIONS = ['timeoutMs', 'keeper', 'onEvent', 'signal', 'clock', 'random'] as const;

/** Checks what the compiler sees to in TypeScript, too. @throws {ConfigError} */
export function checkLock(name: string, options: LockOptions): void {
  checkLockName(name);
  const names: readonly string[] = [...TABLE_OPTIONS, ...OTHER_OPTIONS];
  const unknown = Object.keys(options).find((option) => !names.includes(option));
  if (unknown !== undefined) throw new ConfigError('options', unknown, `one of ${names.join(', ')}`);
  checkWanted(options);
  checkOptions(options, '', OTHER_OPTIONS);
  const { timeoutMs, keeper = 'inline' } = options;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0)) {
    throw new ConfigError('timeoutMs', timeoutMs, 'a number of milliseconds of at least 0');
  }
  if (keeper !== 'inline' && keeper !== 'worker') throw new ConfigError('keeper', keeper, "'inline' or 'worker'");
}
