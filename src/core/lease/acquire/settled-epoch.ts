import { settled } from '../model/cluster-config.js';
import { takenAfterMs } from '../model/lease-state.js';
import { changeCluster, recordEpoch, type StoredCluster } from '../session/cluster-store.js';
import type { AcquireContext } from './claim.js';

/** What to do before an id may be taken. */
type EpochStep =
  | { readonly kind: 'settled' }
  /** The settings have changed: they are to be read again. */
  | { readonly kind: 'recorded' }
  /** No id may be taken before that, on the monotonic clock. */
  | { readonly kind: 'settling'; readonly until: number };

/**
 * Asks the store for its epoch, and records in the settings that it is a new one, and later that no lease from
 * before it can be trusted any more (rules 10 and 11).
 *
 * @throws {StoreError}
 */
export async function settleEpoch(
  { session, clock, random, retry }: Pick<AcquireContext, 'session' | 'clock' | 'random' | 'retry'>,
  cluster: StoredCluster,
): Promise<EpochStep> {
  const { epoch, longestMs, graceMs } = cluster.config;
  const store = await retry((call) => session.epoch(call));
  if (store !== epoch?.store) await retry((call) => recordEpoch(session, cluster, { store, random }, call));
  else {
    if (epoch?.settling !== true) return { kind: 'settled' };
    const until = cluster.writtenAt + takenAfterMs(longestMs, graceMs);
    if (clock.monotonic() <= until) return { kind: 'settling', until };
    await retry((call) => changeCluster(session, cluster, settled(cluster.config), call));
  }
  return { kind: 'recorded' };
}
