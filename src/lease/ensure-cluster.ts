import type { Clock, RandomSource } from '../clock.js';
import { StoreUnusableError } from '../errors.js';
import { probeStore } from '../store/probe.js';
import type { WantedSettings } from './cluster-config.js';
import { createCluster, markCluster, readCluster, type StoredCluster } from './cluster-store.js';
import type { StoreSession } from './store-session.js';

/** What a cluster that does not exist yet is made with. */
export interface EnsureClusterOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** For a cluster that does not exist yet. */
  readonly wanted: WantedSettings;
  readonly signal?: AbortSignal | undefined;
}

/** How long to leave the proof to whoever created the cluster, and how often to look, in milliseconds. */
const PROOF_PATIENCE_MS = 3_000;
const PROOF_POLL_MS = 250;

/**
 * The cluster's settings, created where there are none. A remote store is used only once it has passed the probe, which is recorded
 * in the settings: the one who creates them probes, the others wait for that, and probe themselves when it does not come.
 *
 * @throws {StoreUnusableError} when the store fails the probe, now and at every later start
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function ensureCluster(options: EnsureClusterOptions): Promise<{ cluster: StoredCluster; created: boolean }> {
  const { session, clock, random, wanted, signal } = options;
  const patientUntil = clock.monotonic() + PROOF_PATIENCE_MS;
  let created = false;
  for (;;) {
    signal?.throwIfAborted();
    const cluster = await readCluster(session, signal && { signal });
    if (cluster === undefined) {
      created = (await createCluster(session, wanted)) === 'created';
      if (created && session.store.remote) await prove(options);
    } else if (cluster.config.proven || !session.store.remote) {
      return { cluster, created };
    } else if (clock.monotonic() < patientUntil) {
      await clock.sleep(PROOF_POLL_MS * (1 + random.next()), signal);
    } else {
      await prove(options);
    }
  }
}

async function prove({ session, clock, random, signal }: EnsureClusterOptions): Promise<void> {
  const { store } = session;
  // Without watching ages grow: that takes seconds, and where the store's clock stands still nothing ever expires, which is safe.
  const report = await probeStore(store, { clock, random, watchAgeMs: 0, ...(signal && { signal }) });
  if (!report.ok) {
    const faults = report.checks.filter((check) => check.status === 'fault').map((check) => check.detail);
    throw new StoreUnusableError(`${store.url}: the store cannot be trusted with leases: ${faults.join('; ')}`);
  }
  for (;;) {
    const cluster = await readCluster(session);
    if (cluster === undefined) throw new StoreUnusableError(`${store.url}: cluster.json is gone`);
    if (await markCluster(session, cluster, 'proven')) return;
  }
}
