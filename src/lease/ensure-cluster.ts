import type { Clock, RandomSource } from '../clock.js';
import { AcquireTimeoutError, StoreUnusableError } from '../errors.js';
import { type ListedObject, StoreError } from '../store/lease-store.js';
import { probeStore, THOROUGH } from '../store/probe.js';
import type { WantedSettings } from './cluster-config.js';
import { createCluster, keepProofFailed, markCluster, readCluster, type StoredCluster, takeOverProof } from './cluster-store.js';
import { refuseForeign } from './foreign-cluster.js';
import type { LeaseListener } from './lease.js';
import { patiently } from './patiently.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from './store-session.js';

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
   * How long to leave the proof to others, some seconds all the same, and to try again what fails while the store is away, on the monotonic clock.
   * @default as long as it takes others, and ten seconds for a request
   */
  readonly until?: number;
  /** Whether to probe with an eye on the ages, and for far longer where an earlier probe has failed: for who has the time. @default false */
  readonly thorough?: boolean;
  /** Told of failures of the store that are followed by another attempt. */
  readonly emit?: LeaseListener;
}

/** The cluster's settings, and what was learned on the way. */
export interface EnsuredCluster {
  readonly cluster: StoredCluster;
  /** Whether it was created here. */
  readonly created: boolean;
  /** Whether somebody else created it at the same time: then the store has refused a create-if-absent, and others are starting, too. */
  readonly raced: boolean;
}

/** How long at the least to leave the proof to whoever created the cluster, in milliseconds. */
const PROOF_PATIENCE_MS = 3_000;
/** How long a probe takes, and how long to leave until the next look after that, in requests one after the other. */
const PROBE_REQUESTS = 66;
const LATE_REQUESTS = 8;
/** How long a request is taken to last at the least and at the most, whatever was observed, in milliseconds. */
const REQUEST_MS = { least: 10, most: 45 } as const;
/**
 * How long a proof is left to others at the most, what a request is taken to last for that, the longest pause between two looks, in
 * milliseconds, and how many times as long the first may become.
 */
const PATIENCE_MOST = { ms: 20_000, requestMs: 2_000, lateMs: 5_000, times: 1.5 } as const;

/**
 * The cluster's settings, created where there are none. A remote store is used only once it has passed the probe, which is recorded
 * in the settings: the one who creates them probes, the others wait for that, and probe themselves when it does not come. A probe that failed is
 * recorded there as well.
 *
 * @throws {StoreUnusableError} when the store fails the probe, or has failed one, or holds somebody else's cluster
 * @throws {AcquireTimeoutError} when nobody has proven the store in time
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function ensureCluster(options: EnsureClusterOptions): Promise<EnsuredCluster> {
  const { session, clock, wanted, signal } = options;
  const call = signal && { signal };
  let { listing } = options;
  let raced = false;
  let observedMs = session.requestMs ?? 0;
  for (;;) {
    signal?.throwIfAborted();
    if (listing !== undefined) {
      await refuseForeign(session, listing, call);
      const sentAt = clock.monotonic();
      const cluster = await createCluster(session, wanted);
      if (cluster !== undefined) return { cluster: session.store.remote ? await proven(options, cluster) : cluster, created: true, raced };
      raced = true;
      observedMs = Math.max(observedMs, clock.monotonic() - sentAt);
    }
    // Whoever was faster probes now: nothing is worth reading before that has ended.
    let cluster = raced && session.store.remote ? await provenByOthers(options, { observedMs, raced }) : await readCluster(session, call);
    if (cluster?.config.proofFailed !== undefined) {
      if (options.thorough !== true) throw refusedBefore(session, cluster.config.proofFailed);
      cluster = await proven(options, cluster);
    }
    if (cluster !== undefined && !cluster.config.proven && session.store.remote)
      cluster = await provenByOthers(options, { observedMs, raced });
    if (cluster !== undefined) return { cluster, created: false, raced };
    // Whoever else keeps objects there may have very many.
    const timeoutMs = Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs);
    listing = (await patiently(options, () => session.list({ ...call, timeoutMs }))).objects;
  }
}

/**
 * Waits for the mark of somebody else's probe, and probes where it does not come: of all who lose their patience one does, and the others
 * leave it to that one, for twice as long. Undefined where there are no settings after all.
 */
async function provenByOthers(
  options: EnsureClusterOptions,
  { observedMs, raced }: { observedMs: number; raced: boolean },
): Promise<StoredCluster | undefined> {
  const { session, clock, random, signal, until = Number.POSITIVE_INFINITY } = options;
  const requestMs = Math.min(Math.max(observedMs, REQUEST_MS.least), REQUEST_MS.most);
  // A store that is slow is slow for the one who probes as well.
  const slowMs = () => Math.min(Math.max(observedMs, session.requestMs ?? 0), PATIENCE_MOST.requestMs);
  const patienceMs = () => Math.min(Math.max(PROOF_PATIENCE_MS, 3 * PROBE_REQUESTS * slowMs()), PATIENCE_MOST.ms);
  let times = raced ? 1 + random.next() / 2 : 1;
  let since = clock.monotonic();
  // Who does not want to wait for an id has lost no more than a race.
  const endAt = Math.max(until, since + PROOF_PATIENCE_MS);
  let sleepMs = PROBE_REQUESTS * requestMs;
  let known: StoredCluster | undefined;
  for (let lateMs = LATE_REQUESTS * requestMs; ; lateMs = Math.min(2 * lateMs, PATIENCE_MOST.lateMs)) {
    await clock.sleep(Math.min(sleepMs * (1 + random.next() / 8), Math.max(0, endAt - clock.monotonic())), signal);
    const sentAt = clock.monotonic();
    const cluster = await patiently(options, () => readCluster(session, signal && { signal }));
    if (cluster === undefined || cluster.config.proven) return cluster;
    if (cluster.config.proofFailed !== undefined) throw refusedBefore(session, cluster.config.proofFailed);
    const tookMs = clock.monotonic() - sentAt;
    const takenOver = known !== undefined && known.config.proofsTakenOver !== cluster.config.proofsTakenOver;
    known = cluster;
    if (takenOver) times = Math.min(2 * times, PATIENCE_MOST.times);
    const isOver = clock.monotonic() >= since + times * patienceMs();
    const impatient = !takenOver && isOver;
    const own = impatient ? await patiently(options, () => takenOverHere(options, cluster)) : undefined;
    if (own !== undefined) return proven(options, own);
    if (clock.monotonic() >= endAt)
      throw new AcquireTimeoutError(`${session.store.url}: nobody has proven in time that the store keeps its conditions`);
    if (takenOver || impatient) since = clock.monotonic();
    sleepMs = Math.min(Math.max(lateMs, LATE_REQUESTS * tookMs), Math.max(0, since + times * patienceMs() - clock.monotonic()));
  }
}

/** What is to be proven here; undefined where somebody else has just taken that over. */
async function takenOverHere({ session, signal }: EnsureClusterOptions, cluster: StoredCluster): Promise<StoredCluster | undefined> {
  try {
    const own = await takeOverProof(session, cluster, signal && { signal });
    if (own !== undefined) return own;
    const now = await readCluster(session, signal && { signal });
    // Nobody has changed anything, and yet it was refused: such a store has to be put to the test.
    return now?.etag === cluster.etag ? now : undefined;
  } catch (error) {
    // What the store does not take the probe will name.
    if (error instanceof StoreError && !error.transient) return cluster;
    throw error;
  }
}

/** Puts the store to the test, and records what came of it. */
async function proven(options: EnsureClusterOptions, cluster: StoredCluster): Promise<StoredCluster> {
  const { session, clock, random, signal, until, thorough, emit } = options;
  const { store } = session;
  const call = signal && { signal };
  const report = await probeStore(store, {
    clock,
    random,
    ...(cluster.config.proofFailed !== undefined && THOROUGH),
    // Without watching ages grow where others wait: where the store's clock stands still nothing ever expires, which is safe.
    ...(!thorough && { watchAgeMs: 0 }),
    ...(signal && { signal }),
    ...(until !== undefined && { until }),
    ...(emit && { onFailure: (error, sleepMs) => emit({ type: 'store-failed', error, sleepMs }) }),
  });
  if (!report.ok) {
    const faults = report.checks.filter((check) => check.status === 'fault').map((check) => check.detail);
    const reason = faults.join('; ');
    // What cannot be kept is found again by the next probe, if by a less lucky one.
    await patiently(options, () => keepProofFailed(session, reason, call)).catch(() => undefined);
    throw new StoreUnusableError(`${store.url}: the store cannot be trusted with leases: ${reason}`);
  }
  for (let known: StoredCluster | undefined = cluster; known !== undefined; ) {
    const seen: StoredCluster = known;
    const marked = await patiently(options, () => markCluster(session, seen, 'proven', call));
    if (marked !== undefined) return marked;
    known = await patiently(options, () => readCluster(session, call));
    // Somebody else has probed as well, with less luck.
    if (known?.config.proofFailed !== undefined && !thorough) throw refusedBefore(session, known.config.proofFailed);
  }
  throw new StoreUnusableError(`${store.url}: cluster.json is gone`);
}

function refusedBefore({ store }: StoreSession, reason: string): StoreUnusableError {
  return new StoreUnusableError(
    `${store.url}: the store cannot be trusted with leases, as an earlier probe has found: ${reason} (a far longer probe may clear it: nodelease doctor --accept)`,
  );
}
