import type { Clock, RandomSource } from '../../clock.js';
import { leaseTiming } from '../../lease/lease-timing.js';
import { retry } from '../../lease/retry.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import type { BoundCall } from './bound-session.js';
import { type IdTenure, isOurs, removeOurs } from './id-claim.js';
import type { SessionTime } from './session-time.js';

export interface ClaimReleaseOptions {
  readonly tenure: IdTenure;
  readonly tenureTime: SessionTime;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** How long a release may take when no server answers, in milliseconds. */
const RELEASE_PATIENCE_MS = 3_000;

/**
 * Removes the znode by which a node id is held, in one transaction with the stamp where there is one: the next tenure then need not keep
 * away from what this one has not used. Does nothing where the znode is somebody else's by now.
 *
 * @throws {ZooKeeperError} when it does not succeed in time, which ends with the tenure
 */
export function releaseClaim(options: ClaimReleaseOptions): Promise<void> {
  const { tenure, clock, random } = options;
  const { timeoutMs, until } = tenure.proof;
  const timing = leaseTiming(timeoutMs / 2);
  const call = { timeoutMs: timing.requestTimeoutMs * 2 };
  return retry(() => removeOnce(options, call), {
    clock,
    random,
    // Past the deadline the session may be gone by itself.
    until: Math.min(until, clock.monotonic() + RELEASE_PATIENCE_MS),
    baseMs: timing.retryBaseMs,
    capMs: timing.retryCapMs,
    // A change of ours that came late makes another version.
    shouldRetry: (error) => isFault(error, 'connection-loss', 'timeout', 'bad-version'),
  });
}

async function removeOnce({ tenure, tenureTime }: ClaimReleaseOptions, call: BoundCall): Promise<void> {
  const { session, path, claimer } = tenure;
  const stamp = await tenureTime.last(call);
  const znode = stamp && (await session.read(path, call));
  if (stamp !== undefined && znode !== undefined && isOurs(znode, session.sessionId, claimer.nonce)) {
    try {
      return await session.multi([{ type: 'remove', path, version: znode.stat.version }, stamp], call);
    } catch (error) {
      tenureTime.failed(error);
      if (!(error instanceof ZooKeeperError) || error.outcome === 'unknown') throw error;
    }
  }
  await removeOurs(session, path, claimer.nonce, call);
}
