import type { Clock, RandomSource } from '../../base/clock.js';
import { AcquireTimeoutError, StoreUnusableError } from '../../base/errors.js';
import { backoffMs, SERVER_AWAY } from '../../base/retry.js';
import { type ListedObject, StoreError } from '../../store/lease-store.js';
import { probeStore, THOROUGH } from '../../store/probe/probe.js';
import type { WantedSettings } from '../model/cluster-config.js';
import { refuseForeign } from '../model/foreign-cluster.js';
import type { LeaseListener } from '../model/lease.js';
import {
  changeCluster,
  createCluster,
  markCluster,
  readCluster,
  readExistingCluster,
  recordProbeFailure,
  type StoredCluster,
} from '../session/cluster-store.js';
import { whileStoreIsAway } from '../session/store-retry.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../session/store-session.js';
import { ProbeWait } from './probe-wait.js';

/** Options of `ensureCluster()`. */
export interface EnsureClusterOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** For a cluster that does not exist yet. */
  readonly wanted: WantedSettings;
  readonly signal?: AbortSignal | undefined;
  /** The complete listing, if it shows no settings: they are then created without a read first. */
  readonly listing?: readonly ListedObject[] | undefined;
  /**
   * Time limit on the monotonic clock: for another task's probe, and for retries while the store is away. Both
   * get some seconds in any case. @default as long as that task needs, and ten seconds for a request
   */
  readonly until?: number | undefined;
  /**
   * Whether to check that ages grow, too, and to probe far longer if an earlier probe failed.
   * @default false
   */
  readonly thorough?: boolean | undefined;
  /** Receives the failures of the store that are retried. */
  readonly emit?: LeaseListener | undefined;
}

/** The cluster's settings, and the task that created them. */
interface EnsuredCluster {
  readonly cluster: StoredCluster;
  /** Whether this call created it. */
  readonly created: boolean;
  /**
   * Whether another task created it at the same time: then the store has refused a create-if-absent, and
   * there are other starters.
   */
  readonly raced: boolean;
}

/** Maximum number of refusals to create settings that do not exist, before the store is probed. */
const MAX_REFUSALS = 5;
/** The shortest assumed time of a request, in milliseconds, whatever was observed. */
const MIN_REQUEST_MS = 10;

/**
 * Reads the cluster's settings, and creates them if there are none. A remote store is used only after it has
 * passed the probe, and the settings record that. The task that creates them probes. Other tasks wait for the
 * record, and probe if it does not come. A failed probe is recorded, too.
 *
 * @throws {StoreUnusableError} when the store fails the probe or failed an earlier one, contains another
 * program's cluster, or refuses to create the settings. Also when only an existing cluster is wanted, and
 * there is none
 * @throws {AcquireTimeoutError} when no task has probed the store in time
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function ensureCluster(options: EnsureClusterOptions): Promise<EnsuredCluster> {
  const { session, clock, wanted, signal } = options;
  const call = { signal };
  const needsProbe = session.store.remote && wanted.probed !== true;
  let { listing } = options;
  let refusals = 0;
  // The time of a listing, which takes longer than most requests.
  let observedMs = Math.max(session.requestMs ?? 0, MIN_REQUEST_MS);
  const byAnother = () => probedByAnother(options, { observedMs, raced: refusals > 0 });
  for (;;) {
    signal?.throwIfAborted();
    if (listing !== undefined) await refuseForeign(session, listing, call);
    // The cluster may have been created after the listing.
    if (listing !== undefined && wanted.cluster !== 'existing') {
      const sentAt = clock.monotonic();
      const cluster = await createCluster(session, wanted);
      if (cluster !== undefined)
        return {
          cluster: needsProbe ? await probed(options, cluster) : cluster,
          created: true,
          raced: refusals > 0,
        };
      refusals += 1;
      observedMs = Math.max(observedMs, clock.monotonic() - sentAt);
    }
    // The task that won the race probes now. A read is useful only after that.
    let cluster = refusals > 0 && needsProbe ? await byAnother() : await readCluster(session, call);
    if (cluster?.config.proofFailed !== undefined) {
      if (options.thorough !== true) throw refusedBefore(session, cluster.config.proofFailed);
      cluster = await probed(options, cluster);
    }
    if (cluster !== undefined && !cluster.config.proven && session.store.remote) cluster = await byAnother();
    if (cluster !== undefined) {
      const own = await named(options, cluster);
      if (own !== undefined) return { cluster: own, created: false, raced: refusals > 0 };
      listing = undefined;
      continue;
    }
    if (wanted.cluster === 'existing') {
      const what = 'there is no cluster, and only an existing one is to be used (cluster: existing)';
      throw new StoreUnusableError(
        'CLUSTER_MISSING',
        `${session.store.url}: ${what}: is the prefix right? If there never was one, nodelease init makes it`,
      );
    }
    if (refusals > 0) await afterRefusal(options, refusals);
    // Another program may keep very many objects there.
    const timeoutMs = Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs);
    const list = () => session.list({ ...call, timeoutMs });
    listing = (await whileStoreIsAway(options)(list)).objects;
  }
}

/**
 * Gives a cluster without a name that of this task. Undefined if another task has changed the settings.
 * @throws {StoreUnusableError} when it has another name
 */
async function named(
  { session, wanted: { clusterName }, signal }: EnsureClusterOptions,
  cluster: StoredCluster,
): Promise<StoredCluster | undefined> {
  const { name } = cluster.config;
  if (clusterName === undefined || clusterName === name) return cluster;
  if (name === undefined) return changeCluster(session, cluster, { name: clusterName }, { signal });
  throw new StoreUnusableError(
    'CLUSTER_FOREIGN',
    `${session.store.url}: the cluster is that of ${name}, and this task is of ${clusterName}: give each service its own prefix, or this task --cluster-name ${name}`,
  );
}

/**
 * The store refused to create settings as if they existed, and shows none. Pauses before the next attempt, or
 * throws if there is none.
 */
async function afterRefusal(options: EnsureClusterOptions, refusals: number): Promise<void> {
  const { session, clock, random, signal } = options;
  const what = `${session.store.url}: the store refuses to create cluster.json, as if it were there, and shows none`;
  if (refusals === MAX_REFUSALS) {
    await passProbe(options);
    throw new StoreUnusableError('STORE_UNSAFE', `${what}; other objects are created as they should be`);
  }
  await clock.sleep(backoffMs(SERVER_AWAY, refusals, random), signal);
}

/**
 * Waits for the record of another task's probe, and probes if it does not come. One of the waiting tasks
 * takes the probe over, and the others wait longer for that task. Undefined if there are no settings after
 * all.
 */
async function probedByAnother(
  options: EnsureClusterOptions,
  { observedMs, raced }: { observedMs: number; raced: boolean },
): Promise<StoredCluster | undefined> {
  const { session, clock, random, signal, until = Number.POSITIVE_INFINITY } = options;
  const requestMs = () => Math.max(observedMs, session.requestMs ?? 0);
  const wait = new ProbeWait({ clock, random, requestMs, raced, until });
  const retry = whileStoreIsAway(options);
  for (;;) {
    await wait.pause(signal);
    const cluster = await retry((call) => readCluster(session, call));
    if (cluster === undefined || cluster.config.proven) return cluster;
    if (cluster.config.proofFailed !== undefined) throw refusedBefore(session, cluster.config.proofFailed);
    if (wait.looked(cluster.config.proofsTakenOver)) {
      const own = await retry(() => takeOver(options, cluster));
      if (own !== undefined) return probed(options, own);
    }
    if (wait.isOver)
      throw new AcquireTimeoutError(
        `${session.store.url}: no task has shown in time that the store keeps its conditions`,
      );
  }
}

/** Takes the probe over in the settings. Undefined if another task has just taken it over. */
async function takeOver(
  { session, signal }: EnsureClusterOptions,
  cluster: StoredCluster,
): Promise<StoredCluster | undefined> {
  try {
    const proofsTakenOver = (cluster.config.proofsTakenOver ?? 0) + 1;
    const own = await changeCluster(session, cluster, { proofsTakenOver }, { signal });
    if (own !== undefined) return own;
    const now = await readCluster(session, { signal });
    // If the write was refused although nothing has changed, the store must be probed.
    return now?.etag === cluster.etag ? now : undefined;
  } catch (error) {
    // The probe will report what the store refuses.
    if (error instanceof StoreError && !error.transient) return cluster;
    throw error;
  }
}

/** Probes the store and records the result. */
async function probed(options: EnsureClusterOptions, cluster: StoredCluster): Promise<StoredCluster> {
  const { session, thorough } = options;
  const retry = whileStoreIsAway(options);
  await passProbe(options, cluster);
  for (let known = cluster; ; ) {
    const seen = known;
    const marked = await retry((call) => markCluster(session, seen, 'proven', call));
    if (marked !== undefined) return marked;
    known = await retry((call) => readExistingCluster(session, call));
    // Another task has probed as well, and found a fault.
    if (known.config.proofFailed !== undefined && !thorough)
      throw refusedBefore(session, known.config.proofFailed);
  }
}

function refusedBefore({ store }: StoreSession, reason: string): StoreUnusableError {
  return new StoreUnusableError(
    'STORE_UNSAFE',
    `${store.url}: the store cannot be trusted with leases, as an earlier probe has found: ${reason} (a far longer probe may clear it: nodelease doctor --accept)`,
  );
}

/** @throws {StoreUnusableError} when the store fails the probe; that is recorded if there are settings */
async function passProbe(options: EnsureClusterOptions, cluster?: StoredCluster): Promise<void> {
  const { session, clock, random, signal, until, thorough, emit } = options;
  const { store } = session;
  const reported = await session.epoch({ signal });
  emit?.({ type: 'testing-store', store: store.url });
  const report = await probeStore(store, {
    clock,
    random,
    ...(cluster?.config.proofFailed !== undefined && THOROUGH),
    // Starters do not check that ages grow: if the store's clock has stopped, no lease expires, which is
    // safe.
    watchAgeMs: thorough ? undefined : 0,
    signal,
    until,
    onFailure: (error, sleepMs) => emit?.({ type: 'store-failed', error, sleepMs }),
  });
  if (report.ok) return;
  // A store that has gone back meanwhile loses what the probe wrote.
  if ((await session.epoch({ signal })) !== reported) return passProbe(options, cluster);
  const faults = report.checks.filter((check) => check.status === 'fault').map((check) => check.detail);
  const reason = faults.join('; ');
  // A failure that cannot be recorded is found again by the next probe.
  const record = whileStoreIsAway(options)((call) => recordProbeFailure(session, reason, call));
  await record.catch(() => undefined);
  throw new StoreUnusableError(
    'STORE_UNSAFE',
    `${store.url}: the store cannot be trusted with leases: ${reason}`,
  );
}
