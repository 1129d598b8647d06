import { explain, StoreUnusableError } from '../errors.js';
import { absentIds, createVacant } from './bootstrap.js';
import type { ClusterConfig } from './cluster-config.js';
import { markCluster, readCluster, reportOverruled, type StoredCluster } from './cluster-store.js';
import { concurrently } from './concurrently.js';
import { type EnsureClusterOptions, ensureCluster } from './ensure-cluster.js';
import type { LeaseListener } from './lease.js';
import { type LeaseCodec, nativeCodec } from './lease-codec.js';
import { type KnownNodes, type LeaseState, leaseKey, type ReleasedLease, retired, versionOf } from './lease-state.js';
import { patiently } from './patiently.js';
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

/** What {@link initializeCluster} works with. */
export interface InitializeOptions extends EnsureClusterOptions {
  /** Called for each lease object, with how many there are by then and how many there are to be. Must not throw. */
  readonly onProgress?: ((progress: { readonly done: number; readonly of: number }) => void) | undefined;
}

/** Requests under way at once. */
const WRITES = 16;

/**
 * Creates the cluster's settings, after the probe, and every lease object that is missing. Safe beside running tasks and other calls of it;
 * interrupted and called again, it goes on where it was.
 *
 * @throws {ConfigError} when a setting is out of range
 * @throws {StoreUnusableError} when the store fails the probe
 * @throws {StoreError} also for a request that was given up when `signal` aborted
 * @throws `signal.reason`
 */
export async function initializeCluster(options: InitializeOptions, emit: LeaseListener = () => undefined): Promise<InitializeReport> {
  const { session, wanted, signal, onProgress } = options;
  const { cluster, created: clusterCreated } = await ensureCluster(options);
  reportOverruled(wanted, cluster.config, emit);
  if (cluster.config.bootstrapped) {
    // What the cluster has given up had an object as well, and needs it when it grows again.
    const once = { ...cluster, config: { ...cluster.config, size: cluster.config.peak } };
    return { cluster, clusterCreated, created: [], damaged: await patiently(options, () => absentIds(session, nativeCodec, once)) };
  }
  const absent = await patiently(options, () => absentIds(session, nativeCodec, cluster));
  const of = cluster.config.size;
  let done = of - absent.length;
  const create = async (id: number, own: AbortSignal) => {
    // Among thousands of writes one may well go wrong. Made twice it does no harm: whatever stands there stays.
    const outcome = await patiently({ ...options, signal: own }, () => createVacant(session, nativeCodec, id, { signal: own }));
    done += 1;
    onProgress?.({ done, of });
    return { id, outcome };
  };
  const outcomes = await concurrently(absent, WRITES, create, signal);
  return {
    cluster: await markWhenComplete(options, cluster),
    clusterCreated,
    created: outcomes.filter(({ outcome }) => outcome === 'created').map(({ id }) => id),
    damaged: [],
  };
}

/** Somebody else may change the settings meanwhile; then their newer word is read and the mark set on top. Resolves to what stands there. */
async function markWhenComplete(options: InitializeOptions, cluster: StoredCluster): Promise<StoredCluster> {
  const { session } = options;
  for (let known = cluster; ; known = await patiently(options, () => existingCluster(session))) {
    const seen = known;
    if ((await patiently(options, () => absentIds(session, nativeCodec, seen))).length > 0) return seen;
    const marked = await patiently(options, () => markCluster(session, seen, 'bootstrapped'));
    if (marked !== undefined) return marked;
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
 * damaged object's metadata, and in what the other nodes know. Where nothing is known of an id, only `aboveVersion` can help. What the
 * cluster had before it shrank is restored as well, and stays retired.
 *
 * @throws {StoreError}
 */
export async function repairCluster(session: StoreSession, aboveVersion: number | undefined): Promise<readonly Repair[]> {
  const cluster = await existingCluster(session);
  const ids = Array.from({ length: cluster.config.peak }, (_, id) => id);
  // Noted one by one: what all know of all would take memory by the square of their number.
  const seen = new Map<number, number>();
  const objects = await concurrently(ids, WRITES, async (id) => {
    const { state, ...found } = await examine(session, nativeCodec, id, cluster.config.bootstrapped);
    if (state?.kind === 'held') noteHighest(state.knownNodes, seen);
    return found;
  });
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

function noteHighest(known: KnownNodes, highest: Map<number, number>): void {
  for (const [id, version] of Object.entries(known)) highest.set(Number(id), Math.max(version, highest.get(Number(id)) ?? 0));
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
  const tombstone: ReleasedLease = {
    kind: 'released',
    version: Math.max(...versions) + 1,
    timestamp,
    durationMs: cluster.durationMs,
    stampedUntil: undefined,
  };
  const state = id < cluster.size ? tombstone : retired(tombstone, cluster.generation);
  const result = await session.write(leaseKey(id), nativeCodec.encode(state), etag);
  return { id, problem, version: result.status === 'written' ? versionOf(state) : undefined };
}
