import { checkArguments, checked, whole } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import { type ClusterTimes, checkWanted } from '../model/cluster-config.js';
import { refuseForeign } from '../model/foreign-cluster.js';
import { leastGraceMs } from '../model/lease-state.js';
import { changeCluster, readCluster } from '../session/cluster-store.js';
import { whileStoreIsAway } from '../session/store-retry.js';
import { inspectCluster, type LateHolder, lateHolders } from './inspect.js';
import type { ScaleOptions } from './scaling.js';

/** Options of {@link tuneCluster}. */
export interface TuneOptions extends Pick<ScaleOptions, 'session' | 'clock' | 'random' | 'signal'> {
  /** How long a lease is to be valid without renewal, in milliseconds, 1000 … 86400000. */
  readonly durationMs: number;
  /**
   * How much longer contenders are to wait, in milliseconds: a thousandth of the duration or more, at most an
   * hour. @default as before, and at least a thousandth of the duration
   */
  readonly graceMs?: number | undefined;
}

/** The result of {@link tuneCluster}. */
export type TuneOutcome =
  | { readonly kind: 'no-cluster' }
  | {
      readonly kind: 'tuned';
      /** The times before; the same object as `to` if the cluster had them already, and nothing was written. */
      readonly from: ClusterTimes;
      readonly to: ClusterTimes;
      /** The holders that have not followed yet, in ascending order of the ids. */
      readonly late: readonly LateHolder[];
    }
  /** Another call has set other times meanwhile, and those apply. */
  | { readonly kind: 'superseded'; readonly to: ClusterTimes };

/** How many changes of its times a cluster remembers. */
const REMEMBERED = 8;

/**
 * Gives a cluster another duration and grace while tasks run, by one conditional write. Holders follow with
 * their renewals: within their settings interval, one former duration and one renewal. No lease is lost by it,
 * and no deadline moves back (rule 14). Called again, it writes nothing, and returns who has not followed.
 *
 * @throws {ConfigError} when a time is out of range, or the store does not keep up with the renewals
 * @throws {StoreUnusableError} when `cluster.json` is unreadable, or another program keeps a cluster there
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function tuneCluster(options: TuneOptions): Promise<TuneOutcome> {
  const { session, clock, random, durationMs, graceMs, signal } = checked(options, { durationMs: whole(1) });
  checkArguments({ session, clock, random });
  checkWanted({ durationMs, graceMs });
  const { minWriteIntervalMs = 0 } = session.store;
  const minMs = 3 * minWriteIntervalMs;
  if (durationMs < minMs) {
    const pace = `the store takes a write of an object every ${minWriteIntervalMs} ms, and a lease is renewed every third of it`;
    throw new ConfigError('durationMs', durationMs, `at least ${minMs} ms: ${pace}`);
  }
  const retry = whileStoreIsAway({ clock, random, signal });
  for (let from: ClusterTimes | undefined; ; ) {
    // Also after a conflict, and after a write whose reply was lost (rule 5).
    const cluster = await retry((call) => readCluster(session, call));
    if (cluster === undefined) {
      await refuseForeign(session, (await retry((call) => session.list(call))).objects);
      return { kind: 'no-cluster' };
    }
    const { config } = cluster;
    const present = { durationMs: config.durationMs, graceMs: config.graceMs };
    const are = (times: ClusterTimes) =>
      present.durationMs === times.durationMs && present.graceMs === times.graceMs;
    const to = { durationMs, graceMs: graceMs ?? Math.max(present.graceMs, leastGraceMs(durationMs)) };
    from ??= present;
    if (are(to)) {
      const status = await retry(() => inspectCluster(session));
      return { kind: 'tuned', from, to: present, late: status ? lateHolders(status) : [] };
    }
    if (!are(from)) return { kind: 'superseded', to: present };
    const change = { at: Math.floor(session.storeNow().min), from, to };
    const tuned = [change, ...(config.tuned ?? [])].slice(0, REMEMBERED);
    const longestMs = Math.max(config.longestMs, durationMs);
    await retry((call) => changeCluster(session, cluster, { ...to, longestMs, tuned }, call));
  }
}
