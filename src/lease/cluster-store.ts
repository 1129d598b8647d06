import { StoreUnusableError } from '../errors.js';
import { CLUSTER_KEY, type ClusterConfig, decodeCluster, encodeCluster, newCluster, type WantedSettings } from './cluster-config.js';
import type { LeaseListener } from './lease.js';
import { LeaseUnreadableError } from './lease-codec.js';
import type { SessionCall, StoreSession } from './store-session.js';

/** A cluster's settings as they are stored. */
export interface StoredCluster {
  readonly config: ClusterConfig;
  readonly body: string;
  readonly etag: string;
}

/**
 * The cluster's settings, or undefined when there is no cluster yet.
 *
 * @throws {StoreUnusableError} when `cluster.json` is not what it should be: without it nobody knows how long a lease lasts
 * @throws {StoreError}
 */
export async function readCluster(session: StoreSession, call: SessionCall = {}): Promise<StoredCluster | undefined> {
  const object = await session.read(CLUSTER_KEY, call);
  if (object === undefined) return undefined;
  try {
    return { config: decodeCluster(object.body), body: object.body, etag: object.etag };
  } catch (error) {
    const problem = error instanceof LeaseUnreadableError ? error.problem : String(error);
    const advice =
      'put the former object back, or, once no task is running, remove it and call `nodelease init` with the same --nodes, --duration and --grace';
    throw new StoreUnusableError(`${session.store.url}: ${CLUSTER_KEY} cannot be used, it ${problem}: ${advice}`);
  }
}

/**
 * Creates `cluster.json` unless somebody else was first. The answer says who it was.
 *
 * @throws {ConfigError} when a setting is out of range
 * @throws {StoreError}
 */
export async function createCluster(session: StoreSession, wanted: WantedSettings): Promise<'created' | 'exists'> {
  const config = { ...newCluster(wanted), proven: !session.store.remote };
  const result = await session.write(CLUSTER_KEY, { body: encodeCluster(config), metadata: {} }, undefined);
  return result.status === 'written' ? 'created' : 'exists';
}

/**
 * Records that every lease object has been seen to exist, or that the store has passed the probe. Resolves to false when somebody else
 * changed the settings meanwhile.
 */
export async function markCluster(
  session: StoreSession,
  cluster: StoredCluster,
  mark: 'bootstrapped' | 'proven',
  call: SessionCall = {},
): Promise<boolean> {
  if (cluster.config[mark]) return true;
  const body = encodeCluster({ ...cluster.config, [mark]: true }, cluster.body);
  return (await session.write(CLUSTER_KEY, { body, metadata: {} }, cluster.etag, call)).status === 'written';
}

/** Tells of every setting of our own that the cluster overrules. */
export function reportOverruled(wanted: WantedSettings, stored: ClusterConfig, emit: LeaseListener): void {
  const pairs: [string, number | undefined, number][] = [
    ['nodes', wanted.nodes, stored.size],
    ['duration', wanted.durationMs, stored.durationMs],
    ['grace', wanted.graceMs, stored.graceMs],
  ];
  for (const [setting, own, value] of pairs) {
    if (own !== undefined && own !== value) emit({ type: 'setting-overruled', setting, own, stored: value });
  }
}
