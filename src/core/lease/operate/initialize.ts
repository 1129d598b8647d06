import { checkArguments, checked, FUNCTION, maybe, OBJECT, whole } from '../../base/arguments.js';
import type { Clock } from '../../base/clock.js';
import { concurrently, REQUESTS_AT_ONCE } from '../../base/concurrently.js';
import { explain, StoreUnusableError } from '../../base/errors.js';
import type { Interval } from '../../store/lease-store.js';
import { createVacant, listAbsentIds } from '../acquire/bootstrap.js';
import { type EnsureClusterOptions, ensureCluster } from '../acquire/ensure-cluster.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { refuseMarked } from '../model/foreign-cluster.js';
import type { LeaseListener } from '../model/lease.js';
import { LeaseUnreadableError, MOST_COUNT, nativeCodec } from '../model/lease-codec.js';
import {
  END_OF_TIME,
  type LeaseState,
  leapt,
  leaseKey,
  type ReleasedLease,
  retired,
  takenAfterMs,
  versionOf,
} from '../model/lease-state.js';
import {
  markCluster,
  readCluster,
  readExistingCluster,
  reportOverruled,
  type StoredCluster,
} from '../session/cluster-store.js';
import { whileStoreIsAway, whileStoreIsBusy } from '../session/store-retry.js';
import type { StoreSession } from '../session/store-session.js';

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

/** Options of {@link initializeCluster}. */
export interface InitializeOptions extends EnsureClusterOptions {
  /** Called for each lease object, with the current and the final number of objects. Must not throw. */
  readonly onProgress?: ((progress: { readonly done: number; readonly of: number }) => void) | undefined;
}

/** The highest version that a repair accepts: it leaves room for later ones. */
const MAX_VERSION = MOST_COUNT - 2 ** 32;

/**
 * Creates the cluster's settings, after the probe, and every missing lease object. It is safe while tasks and
 * other calls of it run. After an interruption the next call continues.
 *
 * @throws {ConfigError} when a setting is out of range
 * @throws {StoreUnusableError} when the store fails the probe
 * @throws {StoreError} also for a request that was given up when `signal` aborted
 * @throws `signal.reason`
 */
export async function initializeCluster(
  options: InitializeOptions,
  emit: LeaseListener = () => undefined,
): Promise<InitializeReport> {
  const { session, clock, random, wanted, signal, onProgress } = checked(options, { wanted: OBJECT });
  checkArguments({ session, clock, random, emit }, { emit: FUNCTION });
  const retry = whileStoreIsAway(options);
  const ensured = await whileStoreIsBusy(options)(() => ensureCluster(options));
  const { cluster, created: clusterCreated } = ensured;
  reportOverruled(wanted, cluster.config, emit);
  // What the cluster has given up had an object as well, and needs it when it grows again.
  const of = cluster.config.peak;
  const absent = await retry(() => listAbsentIds(session, of));
  if (cluster.config.bootstrapped) return { cluster, clusterCreated, created: [], damaged: absent };
  let done = of - absent.length;
  const create = async (id: number, own: AbortSignal) => {
    // Among thousands of writes one may well go wrong. Made twice it does no harm: an object that exists
    // stays.
    const outcome = await whileStoreIsAway({ ...options, signal: own })((call) =>
      createVacant(session, id, call),
    );
    done += 1;
    onProgress?.({ done, of });
    return { id, outcome };
  };
  const outcomes = await concurrently(absent, REQUESTS_AT_ONCE, create, signal);
  return {
    cluster: await markWhenComplete(options, cluster),
    clusterCreated,
    created: outcomes.filter(({ outcome }) => outcome === 'created').map(({ id }) => id),
    damaged: [],
  };
}

/**
 * Marks the cluster as bootstrapped. If another task changes the settings meanwhile, the newer ones are read
 * and marked. Resolves to the current settings.
 */
async function markWhenComplete(options: InitializeOptions, cluster: StoredCluster): Promise<StoredCluster> {
  const { session } = options;
  const retry = whileStoreIsAway(options);
  const absent = await retry(() => listAbsentIds(session, cluster.config.peak));
  if (absent.length > 0) return cluster;
  const marked = await retry(() => markCluster(session, cluster, 'bootstrapped'));
  return marked ?? markWhenComplete(options, await retry(() => readExistingCluster(session)));
}

/** One lease object that {@link repairCluster} restored, or could not. */
export interface Repair {
  readonly id: number;
  readonly problem: string;
  /**
   * The version of the tombstone that was written; the next tenure gets the one above. Undefined when nothing
   * was written.
   */
  readonly version: number | undefined;
  /**
   * Why nothing was written. `recent`: it was written within the longest duration and the grace, so a task may
   * hold it. `unknown`: no version of it is known. `changed`: another task wrote at the same time.
   */
  readonly kept?: 'recent' | 'unknown' | 'changed';
}

/** Options of {@link repairCluster}. */
export interface RepairOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  /** A version that no tenure of a damaged node id has exceeded, for ids without a known version. */
  readonly aboveVersion?: number | undefined;
  /** Called before it watches damaged objects for writes, with the length of that watch in milliseconds. */
  readonly onWait?: ((ms: number) => void) | undefined;
}

/**
 * Restores lease objects that are absent after bootstrap, or at any time with `aboveVersion`, or unreadable. Each one gets a tombstone above
 * every version in its metadata, and above the versions that other nodes know, which may be outdated: far above
 * them, where nothing else is as high. For an id without a known version, only `aboveVersion` can help. Objects from before the cluster shrank are restored, too, and stay
 * retired. An object that may have been written within the longest duration and the grace is watched for that
 * long first, since a task may hold it.
 *
 * @throws {StoreUnusableError} when there is no cluster, or an object belongs to another program's; nothing
 * has been written
 * @throws {StoreError}
 */
export async function repairCluster(options: RepairOptions): Promise<readonly Repair[]> {
  const { session, clock, aboveVersion, onWait } = checked(options, {
    aboveVersion: maybe(whole(0, MAX_VERSION)),
  });
  checkArguments({ session, clock });
  refuseMarked(session, (await session.list()).objects);
  const cluster = await readCluster(session);
  if (cluster === undefined)
    throw new StoreUnusableError(
      'CLUSTER_MISSING',
      `There is no cluster at ${session.store.url} yet. If there was one, start nothing: its data is missing.`,
    );
  const { config } = cluster;
  // Whoever names a version says that there were tenures: an absent id may have had some, too.
  const hadAll = config.bootstrapped || aboveVersion !== undefined;
  const ids = Array.from({ length: config.peak }, (_, id) => id);
  // Noted one by one: keeping the known nodes of all leases would take memory by the square of their number.
  const seen = new Map<number, number>();
  const objects = await concurrently(ids, REQUESTS_AT_ONCE, async (id) => {
    const { state, ...found } = await examine(session, id, hadAll);
    if (state?.kind === 'held')
      for (const [other, version] of Object.entries(state.knownNodes))
        seen.set(Number(other), Math.max(version, seen.get(Number(other)) ?? 0));
    return found;
  });
  const damaged = objects
    .filter(({ problem }) => problem !== undefined)
    .map(({ version, ...found }) => {
      const versions = [version, aboveVersion].filter((known) => known !== undefined);
      const hint = positive(seen.get(found.id), MAX_VERSION);
      // A node that knew it may have died long ago: where nothing else is as high, it is leapt over.
      if (hint !== undefined && hint > Math.max(0, ...versions))
        versions.push(leapt(hint, session.storeNow().min));
      return { ...found, versions };
    });
  const untouchedMs = takenAfterMs(config.longestMs, config.graceMs);
  const isRecent = ({ age }: Pick<Examined, 'age'>) => age !== undefined && age.min <= untouchedMs;
  const recent = damaged.filter((found) => isRecent(found) && found.versions.length > 0);
  if (recent.length > 0) {
    // Both ends of an age may be cut to the store's time step, and each cut lowers its lower bound.
    const waitMs =
      Math.max(...recent.map(({ age }) => untouchedMs - (age?.min ?? 0) + 1)) + 2 * session.store.timeStepMs;
    onWait?.(waitMs);
    await clock.sleep(waitMs);
  }
  return concurrently(damaged, REQUESTS_AT_ONCE, async ({ versions, ...found }) => {
    const { id, problem = '', etag } = found;
    if (versions.length === 0) return { id, problem, version: undefined, kept: 'unknown' };
    if (isRecent(found)) {
      const now = await examine(session, id, hadAll);
      if (now.etag !== etag || isRecent(now)) return { id, problem, version: undefined, kept: 'recent' };
    }
    return restore(session, config, found, Math.max(...versions) + 1);
  });
}

interface Examined {
  readonly id: number;
  readonly etag?: string;
  /** Milliseconds since it was written, by the store's clock; undefined for an absent object. */
  readonly age?: Interval;
  readonly state?: LeaseState;
  readonly problem?: string;
  /** From its metadata: a version that leaves room for later ones, and the `timestamp`. */
  readonly version?: number | undefined;
  readonly expiry?: number | undefined;
}

async function examine(session: StoreSession, id: number, hadObject: boolean): Promise<Examined> {
  const object = await session.read(leaseKey(id));
  if (object === undefined) return { id, ...(hadObject && { problem: 'is absent' }) };
  const { etag, age, metadata } = object;
  const found = {
    id,
    etag,
    age,
    version: positive(metadata.version, MAX_VERSION),
    expiry: positive(metadata.expiry, END_OF_TIME - 1),
  };
  try {
    return { ...found, state: nativeCodec.decode(object.body, metadata) };
  } catch (error) {
    if (error instanceof LeaseUnreadableError && error.isForeign)
      throw new StoreUnusableError(
        'CLUSTER_FOREIGN',
        `${session.store.url}: ${leaseKey(id)} ${error.problem}: nothing is repaired`,
      );
    return { ...found, problem: explain(error) };
  }
}

function positive(text: string | number | undefined, max: number): number | undefined {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 && value <= max ? value : undefined;
}

/**
 * As after an eviction, the tombstone keeps the id from being taken for the longest duration: the holder of
 * the damaged object may still be at work.
 */
async function restore(
  session: StoreSession,
  cluster: ClusterConfig,
  found: Examined,
  version: number,
): Promise<Repair> {
  const { id, etag, problem = '', expiry = 0 } = found;
  // The last id timestamp of its holder: at most the longest duration from its last write, which is in the past.
  const now = session.latest(session.storeNow());
  const timestamp = Number.isFinite(now)
    ? Math.max(now + cluster.longestMs, cluster.idFloor + 1, expiry)
    : expiry;
  const tombstone: ReleasedLease = {
    kind: 'released',
    version,
    timestamp,
    durationMs: cluster.longestMs,
    stampedUntil: undefined,
  };
  const state = id < cluster.size ? tombstone : retired(tombstone, cluster.generation);
  const result = await session.write(leaseKey(id), nativeCodec.encode(state), etag);
  return result.status === 'written'
    ? { id, problem, version: versionOf(state) }
    : { id, problem, version: undefined, kept: 'changed' };
}
