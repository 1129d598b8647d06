import { backoffMs, SERVER_AWAY } from '../../base/backoff.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { AcquireTimeoutError, StoreUnusableError } from '../../base/errors.js';
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
  recordProbeFailure,
  type StoredCluster,
} from '../session/cluster-store.js';
import { whileStoreIsAway } from '../session/store-retry.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../session/store-session.js';
import { ProbeWait } from './probe-wait.js';

/** What a cluster that does not exist yet is made with. */
export interface EnsureClusterOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** For a cluster that does not exist yet. */
  readonly wanted: WantedSettings;
  readonly signal?: AbortSignal | undefined;
  /** All that the store lists, where there are no settings: then nothing is read before they are created. */
  readonly listing?: readonly ListedObject[] | undefined;
  /**
   * Until when to leave the probe to another task, some seconds all the same, and to retry what fails while
   * the store is away, on the monotonic clock. @default as long as that task needs, and ten seconds for a
   * request
   */
  readonly until?: number;
  /**
   * Whether to watch ages grow as well, and to probe far longer where an earlier probe has failed.
   * @default false
   */
  readonly thorough?: boolean;
  /** Receives failures of the store that are followed by another attempt. */
  readonly emit?: LeaseListener;
}

/** The cluster's settings, and what was learned on the way. */
export interface EnsuredCluster {
  readonly cluster: StoredCluster;
  /** Whether it was created here. */
  readonly created: boolean;
  /**
   * Whether another task created it at the same time: then the store has refused a create-if-absent, and
   * there are other starters.
   */
  readonly raced: boolean;
}

/**
 * How often the store may refuse to create settings that are not there, before it is asked what it makes of
 * conditions.
 */
const MAX_REFUSALS = 5;
/** The least time that a request is taken to last, in milliseconds, whatever was observed. */
const MIN_REQUEST_MS = 10;

/**
 * The cluster's settings, created where there are none. A remote store is used only once it has passed the
 * probe, which is recorded in the settings: the task that creates them probes, the others wait for the
 * record, and probe themselves when it does not come. A probe that failed is recorded there as well.
 *
 * @throws {StoreUnusableError} when the store fails the probe, or has failed one, or holds another program's
 * cluster, or refuses to create the settings; when only a cluster that exists is wanted, and none does
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
  // Of a listing, which takes longer than most requests.
  let observedMs = Math.max(session.requestMs ?? 0, MIN_REQUEST_MS);
  const byAnother = () => probedByAnother(options, { observedMs, raced: refusals > 0 });
  for (;;) {
    signal?.throwIfAborted();
    if (listing !== undefined) await refuseForeign(session, listing, call);
    // A listing may be older than a cluster that exists.
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
    // The task that was faster probes now: nothing is worth reading before that has ended.
    let cluster = refusals > 0 && needsProbe ? await byAnother() : await readCluster(session, call);
    if (cluster?.config.proofFailed !== undefined) {
      if (options.thorough !== true) throw refusedBefore(session, cluster.config.proofFailed);
      cluster = await probed(options, cluster);
    }
    if (cluster !== undefined && !cluster.config.proven && session.store.remote) cluster = await byAnother();
    if (cluster !== undefined) return { cluster, created: false, raced: refusals > 0 };
    if (wanted.cluster === 'existing') {
      const what = 'there is no cluster, and only an existing one is to be used (cluster: existing)';
      throw new StoreUnusableError(
        `${session.store.url}: ${what}: is the prefix right? nodelease init makes one`,
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
 * The store has refused to create settings as if they were there, and shows none. Pauses before another
 * attempt; throws where there is to be none.
 */
async function afterRefusal(options: EnsureClusterOptions, refusals: number): Promise<void> {
  const { session, clock, random, signal, until = Number.POSITIVE_INFINITY } = options;
  const what = `${session.store.url}: the store refuses to create cluster.json, as if it were there, and shows none`;
  if (refusals === MAX_REFUSALS) {
    await passProbe(options);
    throw new StoreUnusableError(`${what}; other objects are created as they should be`);
  }
  if (clock.monotonic() >= until) throw new StoreUnusableError(what);
  await clock.sleep(backoffMs(SERVER_AWAY, refusals, random), signal);
}

/**
 * Waits for the record of another task's probe, and probes where it does not come: one of the waiting tasks
 * does, and the others leave it to that one, for longer. Undefined where there are no settings after all.
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

/**
 * The settings with the probe taken over by this task; undefined where another task has just taken it over.
 */
async function takeOver(
  { session, signal }: EnsureClusterOptions,
  cluster: StoredCluster,
): Promise<StoredCluster | undefined> {
  try {
    const proofsTakenOver = (cluster.config.proofsTakenOver ?? 0) + 1;
    const own = await changeCluster(session, cluster, { proofsTakenOver }, { signal });
    if (own !== undefined) return own;
    const now = await readCluster(session, { signal });
    // Nothing has changed, and yet the write was refused: such a store has to be probed.
    return now?.etag === cluster.etag ? now : undefined;
  } catch (error) {
    // The probe will name what the store refuses.
    if (error instanceof StoreError && !error.transient) return cluster;
    throw error;
  }
}

/** Probes the store and records the result. */
async function probed(options: EnsureClusterOptions, cluster: StoredCluster): Promise<StoredCluster> {
  const { session, thorough } = options;
  const retry = whileStoreIsAway(options);
  await passProbe(options, cluster);
  for (let known: StoredCluster | undefined = cluster; known !== undefined; ) {
    const seen: StoredCluster = known;
    const marked = await retry((call) => markCluster(session, seen, 'proven', call));
    if (marked !== undefined) return marked;
    known = await retry((call) => readCluster(session, call));
    // Another task has probed as well, and found a fault.
    if (known?.config.proofFailed !== undefined && !thorough)
      throw refusedBefore(session, known.config.proofFailed);
  }
  throw new StoreUnusableError(`${session.store.url}: cluster.json is gone`);
}

function refusedBefore({ store }: StoreSession, reason: string): StoreUnusableError {
  return new StoreUnusableError(
    `${store.url}: the store cannot be trusted with leases, as an earlier probe has found: ${reason} (a far longer probe may clear it: nodelease doctor --accept)`,
  );
}

/** @throws {StoreUnusableError} where the store fails the probe; that is recorded where there are settings */
async function passProbe(options: EnsureClusterOptions, cluster?: StoredCluster): Promise<void> {
  const { session, clock, random, signal, until, thorough, emit } = options;
  const { store } = session;
  const report = await probeStore(store, {
    clock,
    random,
    ...(cluster?.config.proofFailed !== undefined && THOROUGH),
    // Starters do not watch ages grow: where the store's clock stands still nothing ever expires, which is
    // safe.
    ...(!thorough && { watchAgeMs: 0 }),
    ...(signal && { signal }),
    ...(until !== undefined && { until }),
    ...(emit && { onFailure: (error, sleepMs) => emit({ type: 'store-failed', error, sleepMs }) }),
  });
  if (report.ok) return;
  const faults = report.checks.filter((check) => check.status === 'fault').map((check) => check.detail);
  const reason = faults.join('; ');
  // A failure that cannot be recorded is found again by the next probe.
  const record = whileStoreIsAway(options)((call) => recordProbeFailure(session, reason, call));
  await record.catch(() => undefined);
  throw new StoreUnusableError(`${store.url}: the store cannot be trusted with leases: ${reason}`);
}
