import { checkArguments, whole } from '../../base/arguments.js';
import { ConfigError, StoreUnusableError } from '../../base/errors.js';
import type { Retry } from '../../base/retry.js';
import { nativeCodec } from '../model/lease-codec.js';
import { availability, evicted, leaseKey, MAX_NODE_IDS, revived, versionOf } from '../model/lease-state.js';
import { readCluster, type StoredCluster } from '../session/cluster-store.js';
import type { StoreSession } from '../session/store-session.js';

/** The result of an operator's forced release. */
export type Eviction =
  | {
      readonly kind: 'evicted';
      readonly taskId: string;
      readonly version: number;
      /** How long its holder may still trust the lease, in milliseconds. */
      readonly durationMs: number;
    }
  /** The holder is gone by itself, and another task has the id, and was left alone: nothing was written. */
  | { readonly kind: 'ended'; readonly taskId: string; readonly version: number }
  /** No task held the id: nothing was written. */
  | { readonly kind: 'not-held'; readonly state: 'vacant' | 'released' | 'retired' | 'absent' };

/** Maximum number of conflicts: a holder renews a few times a duration. */
const ATTEMPTS = 10;

/**
 * Takes a node id away from its holder (rule 9) by a tombstone with the next version, so that the holder's
 * next renewal is refused. Until then, at most until its deadline, the holder continues: fencing tokens
 * protect the data.
 *
 * @param known the cluster's settings, if they have just been read
 * @param retry for failures of the store that may pass
 * @throws {ConfigError} when there is no such id
 * @throws {LeaseUnreadableError} when the object is damaged
 * @throws {StoreUnusableError} where its holder is always faster
 * @throws {StoreError}
 */
export async function evictHolder(
  session: StoreSession,
  nodeId: number,
  known?: StoredCluster,
  retry: Retry = (attempt) => attempt({}, 1),
): Promise<Eviction> {
  checkArguments({ session, nodeId }, { nodeId: whole(0, MAX_NODE_IDS - 1) });
  const cluster = known ?? (await readCluster(session));
  // An id that the cluster has given up may still be held.
  const { size = MAX_NODE_IDS, peak = size, generation = 0 } = cluster?.config ?? {};
  if (nodeId >= peak) throw new ConfigError('node id', nodeId, `a node id from 0 to ${peak - 1}`);
  const key = leaseKey(nodeId);
  let written: Extract<Eviction, { kind: 'evicted' }> | undefined;
  const attempt = async (): Promise<Eviction | undefined> => {
    const object = await session.read(key);
    if (object === undefined) return { kind: 'not-held', state: 'absent' };
    const stored = nativeCodec.decode(object.body, object.metadata);
    const state = nodeId < size ? revived(stored, generation) : stored;
    if (written && versionOf(state) >= written.version) {
      const { taskId, version } = written;
      // The next holder came first. Else our own tombstone, whose reply was lost (rule 5), or what came after it.
      const isNext = state.kind === 'held' && state.version === version;
      return isNext ? { kind: 'ended', taskId, version: version - 1 } : written;
    }
    if (state.kind !== 'held') return { kind: 'not-held', state: state.kind };
    const expired =
      cluster !== undefined && availability(state, object.age, cluster.config.graceMs).kind === 'free';
    const tombstone = evicted(state, expired, ['evicted', session.storeNow().min]);
    const { version, durationMs } = tombstone;
    written = { kind: 'evicted', taskId: state.taskId, version, durationMs };
    const result = await session.write(key, nativeCodec.encode(tombstone), object.etag);
    return result.status === 'written' ? written : undefined;
  };
  for (let conflicts = 0; conflicts < ATTEMPTS; conflicts += 1) {
    const eviction = await retry(attempt);
    if (eviction !== undefined) return eviction;
  }
  throw new StoreUnusableError(
    'CLUSTER_CHANGED',
    `${session.store.url}: ${key} changes too often to be changed`,
  );
}
