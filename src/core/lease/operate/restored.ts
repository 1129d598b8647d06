import type { Clock, RandomSource } from '../../base/clock.js';
import { readCluster, recordEpoch, type StoredCluster } from '../session/cluster-store.js';
import { whileStoreIsAway } from '../session/store-retry.js';
import type { StoreSession } from '../session/store-session.js';

/**
 * Notes that the store has gone back, where it does not report so itself (rule 10).
 *
 * @returns the settings; undefined when there is no cluster
 * @throws {StoreError}
 */
export async function declareRestored(options: {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
}): Promise<StoredCluster | undefined> {
  const { session, random } = options;
  const retry = whileStoreIsAway(options);
  const cluster = await retry((call) => readCluster(session, call));
  if (cluster === undefined) return undefined;
  const store = await retry((call) => session.epoch(call));
  const noted = await retry((call) => recordEpoch(session, cluster, { store, random }, call));
  // Another task has changed the settings.
  return noted ?? declareRestored(options);
}
