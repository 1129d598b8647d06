import { changeCluster, recordEpoch, type StoredCluster } from '../session/cluster-store.js';
import type { SessionCall } from '../session/store-session.js';
import type { AcquireContext } from './claim.js';

/** What to do before an id may be taken. */
type EpochStep =
  | { readonly kind: 'settled'; readonly reported: string | undefined }
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
  const reported = await retry((call) => session.epoch(call));
  const { epoch, durationMs, graceMs } = cluster.config;
  const recorded = async (change: (call: SessionCall) => Promise<unknown>): Promise<EpochStep> => {
    await retry(change);
    return { kind: 'recorded' };
  };
  if (reported !== epoch?.store)
    return recorded((call) => recordEpoch(session, cluster, { store: reported, random }, call));
  if (epoch?.settling !== true) return { kind: 'settled', reported };
  const until = cluster.writtenAt + durationMs + graceMs;
  if (clock.monotonic() > until)
    return recorded((call) =>
      changeCluster(session, cluster, { epoch: { ...epoch, settling: false } }, call),
    );
  return { kind: 'settling', until };
}
