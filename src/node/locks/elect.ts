import { StoreUnusableError } from '../../core/base/errors.js';
import type { Backoff } from '../../core/base/retry.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { detached } from '../../core/lease/model/lease.js';
import { isStoreAway, whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import { acquireLock, checkLock, type LockOptions, type StoreLock } from './store-lock.js';

/** The pauses between attempts to rejoin the election while the store is away, in milliseconds. */
const AWAY_BACKOFF: Backoff = { first: 1_000, max: 10_000 };

/**
 * Takes part in an election repeatedly: each term is a lock that is held. The loop's body is the work of the
 * leader. A term ends with the body, which must stop when the term's `signal` aborts. Then this rejoins the
 * election. `break` ends the last term and the election.
 *
 * ```ts
 * for await (const term of electOnStore('leader', { store: 's3://bucket/my-service' })) {
 *   await lead(term.token, term.signal);
 * }
 * ```
 *
 * After the first term this waits for a store that is away. Any other error of {@link acquireLock} ends the
 * election, `signal.reason` included.
 *
 * @param options.timeoutMs how long to wait for each term
 * @throws {ConfigError} when the name is not allowed for a lock, or an option is unknown or out of range
 */
export function electOnStore(
  name: string,
  options: LockOptions = {},
): AsyncGenerator<StoreLock, never, void> {
  checkLock(name, options);
  return terms(name, options);
}

async function* terms(name: string, options: LockOptions): AsyncGenerator<StoreLock, never, void> {
  for (let acquire = acquireLock; ; acquire = acquireAgain) {
    const term = await acquire(name, options);
    try {
      yield term;
    } finally {
      await term.release();
    }
  }
}

/**
 * The same as {@link acquireLock} for a store that has been used before: it is waited for while it is away.
 */
export function acquireAgain(name: string, options: LockOptions = {}): Promise<StoreLock> {
  const { clock = systemClock, random = systemRandom, signal, onEvent } = options;
  const forever = { until: Number.POSITIVE_INFINITY, backoff: AWAY_BACKOFF, emit: detached(onEvent) };
  const retry = whileStoreIsAway({ clock, random, signal, ...forever }, isAway);
  return retry(() => acquireLock(name, options));
}

function isAway(error: unknown): boolean {
  if (error instanceof StoreUnusableError) return isAway(error.cause);
  return isStoreAway(error);
}
