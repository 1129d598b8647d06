import type { RandomSource } from '../../base/clock.js';
import { StoreUnusableError } from '../../base/errors.js';
import { StoreError } from '../../store/lease-store.js';
import {
  CLUSTER_KEY,
  type ClusterConfig,
  decodeCluster,
  encodeCluster,
  newCluster,
  settled,
  type WantedSettings,
} from '../model/cluster-config.js';
import type { LeaseListener } from '../model/lease.js';
import { LeaseUnreadableError, readAs } from '../model/lease-codec.js';
import { leapt, takenAfterMs } from '../model/lease-state.js';
import type { SessionCall, StoreSession } from './store-session.js';

/** A cluster's settings as they are stored. */
export interface StoredCluster {
  readonly config: ClusterConfig;
  readonly body: string;
  readonly etag: string;
  /** By when it had been written, on the monotonic clock. */
  readonly writtenAt: number;
  /** Whether that is only when this process has seen it first. */
  readonly isObserved: boolean;
}

/**
 * The cluster's settings, or undefined when there is no cluster yet.
 *
 * @throws {StoreUnusableError} when `cluster.json` is unreadable: without it no task knows the duration of a
 * lease
 * @throws {StoreError}
 */
export async function readCluster(
  session: StoreSession,
  call: SessionCall = {},
): Promise<StoredCluster | undefined> {
  const object = await session.read(CLUSTER_KEY, call);
  if (object === undefined) return undefined;
  try {
    const { body, etag, age } = object;
    const stored = decodeCluster(body);
    const config = age.min > takenAfterMs(stored.longestMs, stored.graceMs) ? settled(stored) : stored;
    session.expectObjects(config.peak);
    const writtenAt = session.clock.monotonic() - age.min;
    return { config, body, etag, writtenAt, isObserved: age.max === Number.POSITIVE_INFINITY };
  } catch (error) {
    const problem = error instanceof LeaseUnreadableError ? error.problem : String(error);
    const advice =
      'put the former object back, or, once no task is running, remove it and call `nodelease init` with the same --nodes, --duration and --grace, ' +
      'then `nodelease scale N` with as many node ids';
    throw new StoreUnusableError(
      'CLUSTER_DAMAGED',
      `${session.store.url}: ${CLUSTER_KEY} cannot be used, it ${problem}: ${advice}`,
    );
  }
}

/**
 * Like {@link readCluster}, but throws without a cluster. @throws {StoreUnusableError} when its settings are
 * gone
 */
export async function readExistingCluster(session: StoreSession, call?: SessionCall): Promise<StoredCluster> {
  const cluster = await readCluster(session, call);
  if (cluster === undefined)
    throw new StoreUnusableError('CLUSTER_MISSING', `${session.store.url}: ${CLUSTER_KEY} is gone`);
  return cluster;
}

/**
 * Creates `cluster.json`. Undefined if another task was first. After an unknown outcome it is read back (rule
 * 5); another task may have written the same, and then both have created it.
 *
 * @throws {ConfigError} when a setting is out of range
 * @throws {StoreError}
 */
export async function createCluster(
  session: StoreSession,
  wanted: WantedSettings,
): Promise<StoredCluster | undefined> {
  const proven = wanted.probed === true || !session.store.remote;
  const { epoch: known } = wanted;
  // A remote store that has gone back since that was known reports another one at the next step. Each folder of a
  // file system has its own.
  const store = known && session.store.remote ? known.store : await session.epoch();
  const epoch = (known || store !== undefined) && { ...known, store };
  const config = { ...newCluster(wanted), proven, ...(epoch && { epoch }) };
  try {
    return await write(session, config);
  } catch (error) {
    if (!(error instanceof StoreError && error.outcome === 'unknown')) throw error;
    const found = await readCluster(session);
    if (found?.body !== encodeCluster(config)) throw error;
    return found;
  }
}

/**
 * Changes the cluster's settings. Undefined if another task has changed them meanwhile.
 *
 * @throws {StoreError}
 */
export function changeCluster(
  session: StoreSession,
  cluster: StoredCluster,
  change: Partial<ClusterConfig>,
  call: SessionCall = {},
): Promise<StoredCluster | undefined> {
  return write(session, { ...cluster.config, ...change }, cluster, call);
}

/** What a new series of the map of shards is above: every epoch so far, lost ones too (T10). */
export function nextFloor({ shards }: ClusterConfig, session: StoreSession): number {
  return leapt(shards?.floor ?? 0, session.storeNow().min);
}

/**
 * Records that the store has gone back (rule 10): the map of shards that came back with it is damage from now
 * on. Undefined if another task has changed the settings meanwhile.
 *
 * @param store the epoch that it reports
 * @throws {StoreError}
 */
export function recordEpoch(
  session: StoreSession,
  cluster: StoredCluster,
  { store, random }: { readonly store: string | undefined; readonly random: RandomSource },
  call: SessionCall = {},
): Promise<StoredCluster | undefined> {
  const { shards, generation } = cluster.config;
  return changeCluster(
    session,
    cluster,
    {
      epoch: { store, mark: random.hex(8), settling: true },
      // The store may have lost objects: they are made again, and versions of absent ones leap as well.
      bootstrapped: false,
      // A tombstone of a lost change of the size, written late, would keep its id from ever being acquired.
      generation: leapt(generation, session.storeNow().min),
      ...(shards && {
        shards: { ...shards, floor: nextFloor(cluster.config, session), created: true },
      }),
    },
    call,
  );
}

/**
 * Records that every lease object has been seen, or that the store has passed the probe, whatever an earlier
 * probe found. Undefined if another task has changed the settings meanwhile.
 *
 * @throws {StoreError}
 */
export async function markCluster(
  session: StoreSession,
  cluster: StoredCluster,
  mark: 'bootstrapped' | 'proven',
  call: SessionCall = {},
): Promise<StoredCluster | undefined> {
  return cluster.config[mark] ? cluster : changeCluster(session, cluster, { [mark]: true }, call);
}

/** Number of attempts to record a failed probe: a store that cannot be trusted may lose the record, too. */
const ATTEMPTS = 5;

/**
 * Records in the settings why the store cannot be trusted, even if they record a passed probe: that one was
 * lucky.
 *
 * @throws {StoreError}
 */
export async function recordProbeFailure(
  session: StoreSession,
  reason: string,
  call: SessionCall = {},
): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const cluster = await readCluster(session, call);
    if (cluster === undefined || cluster.config.proofFailed !== undefined) return;
    await changeCluster(session, cluster, { proven: false, proofFailed: reason }, call);
  }
}

async function write(
  session: StoreSession,
  config: ClusterConfig,
  previous?: StoredCluster,
  call?: SessionCall,
): Promise<StoredCluster | undefined> {
  const body = encodeCluster(config, previous?.body);
  // No task could read, or mend, what is beyond a limit: a number that was written by hand may be next to it.
  readAs(CLUSTER_KEY, () => decodeCluster(body));
  const result = await session.write(CLUSTER_KEY, { body, metadata: {} }, previous?.etag, call);
  if (result.status === 'conflict') return undefined;
  return { config, body, etag: result.etag, writtenAt: session.clock.monotonic(), isObserved: false };
}

/** Reports each own setting that the cluster overrules. */
export function reportOverruled(
  wanted: WantedSettings & { readonly preferId?: number | undefined },
  stored: ClusterConfig,
  emit: LeaseListener,
): void {
  const pairs: [string, number | undefined, number][] = [
    ['nodes', wanted.nodes, stored.size],
    ['duration', wanted.durationMs, stored.durationMs],
    ['grace', wanted.graceMs, stored.graceMs],
  ];
  for (const [setting, own, value] of pairs) {
    if (own !== undefined && own !== value) emit({ type: 'setting-overruled', setting, own, stored: value });
  }
  const { preferId: own = 0 } = wanted;
  if (own >= stored.size) emit({ type: 'setting-overruled', setting: 'prefer-id', own, stored: stored.size });
}
