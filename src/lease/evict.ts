import { ConfigError } from '../errors.js';
import { readCluster } from './cluster-store.js';
import { nativeCodec } from './lease-codec.js';
import { availability, evicted, leaseKey, type ReleasedLease } from './lease-state.js';
import type { StoreSession } from './store-session.js';

/** What an operator's force-release came to. */
export type Eviction =
  | { readonly kind: 'evicted'; readonly taskId: string; readonly version: number }
  /** Nobody held the id: nothing was written. */
  | { readonly kind: 'not-held'; readonly state: 'vacant' | 'released' | 'retired' | 'absent' };

/** A holder renews a few times a duration; more conflicts in a row than this mean something else. */
const ATTEMPTS = 10;

/**
 * Takes a node id away from its holder (rule 9): a tombstone with the version bumped, so the holder's next renewal is refused and it
 * stops. Until then, at the longest until its deadline, the old holder may go on: fencing tokens are what protects the data.
 *
 * @throws {ConfigError} when there is no such id
 * @throws {LeaseUnreadableError} when the object is damaged
 * @throws {StoreError}
 */
export async function evictHolder(session: StoreSession, nodeId: number): Promise<Eviction> {
  const cluster = await readCluster(session);
  if (cluster !== undefined && nodeId >= cluster.config.size)
    throw new ConfigError('node id', nodeId, `a node id from 0 to ${cluster.config.size - 1}`);
  const key = leaseKey(nodeId);
  let written: { state: ReleasedLease; taskId: string } | undefined;
  for (let attempt = 1; ; attempt += 1) {
    const object = await session.read(key);
    if (object === undefined) return { kind: 'not-held', state: 'absent' };
    const state = nativeCodec.decode(object.body, object.metadata);
    // A tombstone that we wrote without hearing back (rule 5).
    if (written !== undefined && state.kind === 'released' && state.version === written.state.version) {
      return { kind: 'evicted', taskId: written.taskId, version: state.version };
    }
    if (state.kind !== 'held') return { kind: 'not-held', state: state.kind };
    const expired = cluster !== undefined && availability(state, object.age, cluster.config.graceMs).kind === 'free';
    written = { state: evicted(state, expired), taskId: state.taskId };
    try {
      const result = await session.write(key, nativeCodec.encode(written.state), object.etag);
      if (result.status === 'written') return { kind: 'evicted', taskId: state.taskId, version: written.state.version };
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      continue;
    }
    if (attempt === ATTEMPTS) throw new Error(`${session.store.url}: ${key} changes too often to be released: tried ${ATTEMPTS} times`);
  }
}
