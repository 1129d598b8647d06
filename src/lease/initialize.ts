import { explain, StoreUnusableError } from '../errors.js';
import { absentIds, createVacant } from './bootstrap.js';
import type { ClusterConfig } from './cluster-config.js';
import { markCluster, readCluster, reportOverruled, type StoredCluster } from './cluster-store.js';
import { concurrently } from './concurrently.js';
import { type EnsureClusterOptions, ensureCluster } from './ensure-cluster.js';
import type { LeaseListener } from './lease.js';
import { type LeaseCodec, nativeCodec } from './lease-codec.js';
import { type LeaseState, leaseKey, versionOf } from './lease-state.js';
import type { StoreSession } from './store-session.js';

/** What {@link initializeCluster} did. */
export interface InitializeReport {
  readonly cluster: StoredCluster;
  /** False when there was a `cluster.json` already. */
  readonly clusterCreated: boolean;
  /** Ids whose objects this call created. */
  readonly created: readonly number[];
  /** Ids that are absent although the cluster was bootstrapped; left alone, see {@link repairCluster}. */
  readonly damaged: readonly number[];
}

/** Requests under way at once. */
const WRITES = 16;

/**
 * Creates the cluster's settings, after the probe, and every lease object that is missing. Safe beside running tasks and other calls of it;
 * interrupted and called again, it goes on where it was.
 *
 * @throws {ConfigError} when a setting is out of range
 * @throws {StoreUnusableError} when the store fails the probe
 * @throws {StoreError}
 */
export async function initializeCluster(options: EnsureClusterOptions, emit: LeaseListener = () => undefined): Promise<InitializeReport> {
  const { session, wanted } = options;
  const { cluster, created: clusterCreated } = await ensureCluster(options);
  reportOverruled(wanted, cluster.config, emit);
  const absent = await absentIds(session, nativeCodec, cluster);
  if (cluster.config.bootstrapped) return { cluster, clusterCreated, created: [], damaged: absent };
  const outcomes = await concurrently(absent, WRITES, async (id) => ({ id, outcome: await createVacant(session, nativeCodec, id) }));
  await markWhenComplete(session);
  return {
    cluster: await existingCluster(session),
    clusterCreated,
    created: outcomes.filter(({ outcome }) => outcome === 'created').map(({ id }) => id),
    damaged: [],
  };
}

/** Somebody else may change the settings meanwhile; then their newer word is read and the mark set on top. */
async function markWhenComplete(session: StoreSession): Promise<void> {
  for (;;) {
    const cluster = await existingCluster(session);
    if ((await absentIds(session, nativeCodec, cluster)).length > 0) return;
    if (await markCluster(session, cluster, 'bootstrapped')) return;
  }
}

async function existingCluster(session: StoreSession): Promise<StoredCluster> {
  const cluster = await readCluster(session);
  if (cluster === undefined) throw new StoreUnusableError(`${session.store.url}: there is no cluster; \`nodelease init\` creates one`);
  return cluster;
}

/** One lease object that {@link repairCluster} restored, or could not. */
export interface Repair {
  readonly id: number;
  readonly problem: string;
  /** The version of the tombstone that was written; the next tenure gets the one above. Undefined when nothing was written. */
  readonly version: number | undefined;
}

/**
 * Restores lease objects that are absent after bootstrap, or unreadable, by tombstones above every version that was seen: in the
 * damaged object's metadata, and in what the other nodes know. Where nothing is known of an id, only `aboveVersion` can help.
 *
 * @throws {StoreError}
 */
export async function repairCluster(session: StoreSession, aboveVersion: number | undefined): Promise<readonly Repair[]> {
  const cluster = await existingCluster(session);
  const ids = Array.from({ length: cluster.config.size }, (_, id) => id);
  const objects = await concurrently(ids, WRITES, (id) => examine(session, nativeCodec, id, cluster.config.bootstrapped));
  const seen = highestKnown(objects.flatMap(({ state }) => (state?.kind === 'held' ? [state.knownNodes] : [])));
  return concurrently(
    objects.filter(({ problem }) => problem !== undefined),
    WRITES,
    ({ id, etag, problem = '', metadataVersion, metadataExpiry }) => {
      const versions = [plausible(seen.get(id)), plausible(metadataVersion), aboveVersion];
      return restore(session, cluster.config, { id, etag, problem, expiry: plausible(metadataExpiry) ?? 0 }, versions);
    },
  );
}

interface Examined {
  readonly id: number;
  readonly etag: string | undefined;
  readonly state: LeaseState | undefined;
  readonly problem: string | undefined;
  readonly metadataVersion: number | undefined;
  /** The `timestamp` that its metadata tell of. */
  readonly metadataExpiry: number | undefined;
}

async function examine(session: StoreSession, codec: LeaseCodec, id: number, bootstrapped: boolean): Promise<Examined> {
  const object = await session.read(leaseKey(id));
  if (object === undefined) {
    const problem = bootstrapped ? 'is absent' : undefined;
    return { id, etag: undefined, state: undefined, problem, metadataVersion: undefined, metadataExpiry: undefined };
  }
  const { etag, metadata } = object;
  const told = { metadataVersion: positive(metadata.version), metadataExpiry: positive(metadata.expiry) };
  try {
    return { id, etag, state: codec.decode(object.body, metadata), problem: undefined, ...told };
  } catch (error) {
    return { id, etag, state: undefined, problem: explain(error), ...told };
  }
}

function positive(text: string | undefined): number | undefined {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

function highestKnown(mappings: readonly Readonly<Record<number, number>>[]): Map<number, number> {
  const highest = new Map<number, number>();
  for (const mapping of mappings) {
    for (const [id, version] of Object.entries(mapping)) highest.set(Number(id), Math.max(version, highest.get(Number(id)) ?? 0));
  }
  return highest;
}

/** No id has had that many tenures: a version above it is somebody's mistake or malice, and would leave no room for further ones. */
const MOST_PLAUSIBLE_VERSION = 2 ** 52;

function plausible(version: number | undefined): number | undefined {
  return version !== undefined && version <= MOST_PLAUSIBLE_VERSION ? version : undefined;
}

/** The holder of a damaged object may still be at work: like an eviction, the tombstone keeps others off for a lease's duration. */
async function restore(
  session: StoreSession,
  cluster: ClusterConfig,
  { id, etag, problem, expiry }: { id: number; etag: string | undefined; problem: string; expiry: number },
  evidence: readonly (number | undefined)[],
): Promise<Repair> {
  const versions = evidence.filter((version) => version !== undefined);
  if (versions.length === 0) return { id, problem, version: undefined };
  // Where it stands is not known, but what its holder stamped ids with is: a duration from its last write at the most, which is in the past.
  const { max } = session.storeNow();
  const timestamp = Number.isFinite(max) ? Math.max(Math.ceil(max) + cluster.durationMs, cluster.idFloor + 1, expiry) : expiry;
  const state: LeaseState = {
    kind: 'released',
    version: Math.max(...versions) + 1,
    timestamp,
    durationMs: cluster.durationMs,
    stampedUntil: undefined,
  };
  const result = await session.write(leaseKey(id), nativeCodec.encode(state), etag);
  return { id, problem, version: result.status === 'written' ? versionOf(state) : undefined };
}
