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
export function declareRestored(options: {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
}): Promise<StoredCluster | undefined> {
  const { session, random } = options;
  return whileStoreIsAway(options)(async (call) => {
    for (;;) {
      const cluster = await readCluster(session, call);
      if (cluster === undefined) return undefined;
      const store = await session.epoch(call);
      const noted = await recordEpoch(session, cluster, { store, random }, call);
      // Otherwise another task has changed the settings.
      if (noted) return noted;
    }
  });
}
