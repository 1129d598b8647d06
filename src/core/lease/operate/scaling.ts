import type { Clock, RandomSource } from '../../base/clock.js';
import { concurrently, REQUESTS_AT_ONCE } from '../../base/concurrently.js';
import { StoreUnusableError } from '../../base/errors.js';
import type { Retry } from '../../base/retry.js';
import { type ListedObject, StoreError } from '../../store/lease-store.js';
import { createVacant } from '../acquire/bootstrap.js';
import { CLUSTER_KEY, type ClusterConfig } from '../model/cluster-config.js';
import { refuseMarked } from '../model/foreign-cluster.js';
import { nodeIdOf } from '../model/lease-state.js';
import { changeCluster, readCluster, type StoredCluster } from '../session/cluster-store.js';
import { whileStoreIsAway } from '../session/store-retry.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';

/** A live holder whose lease does not record the wider width yet. */
export interface NarrowHolder {
  readonly id: number;
  readonly taskId: string;
  /** The width in its lease. */
  readonly idWidth: number;
}

/** A holder of a node id that the cluster gives up. */
export interface RetiringHolder {
  readonly id: number;
  readonly taskId: string;
  readonly version: number;
}

/** A lease object that is left as it is: absent although it existed once, or unreadable. */
export interface DamagedLease {
  readonly id: number;
  /** What is wrong, as the rest of the sentence "the object …". */
  readonly problem: string;
}

/** What happens while a cluster grows or shrinks. Listeners must not throw. */
export type ScaleEvent =
  /**
   * These holders make unique ids that are too narrow for the new size. They learn of it at their next
   * renewals.
   */
  | { readonly type: 'waiting'; readonly idWidth: number; readonly holders: readonly NarrowHolder[] }
  /** All of them make wider ids now. */
  | { readonly type: 'adopted'; readonly idWidth: number; readonly tookMs: number }
  /** The settings have fewer node ids now: no task that knows them takes an id beyond the size. */
  | { readonly type: 'shrunk'; readonly from: number; readonly to: number }
  /** How many of the `total` lease objects beyond the size are retired; a few times a second at most. */
  | { readonly type: 'retired'; readonly retired: number; readonly total: number }
  /**
   * The call waits for these holders of ids beyond the size, at most `leftMs` milliseconds. Reported once for
   * each set of holders.
   */
  | { readonly type: 'draining'; readonly holders: readonly RetiringHolder[]; readonly leftMs: number }
  /** The time was up: the id was taken from this holder, which learns of it at its next renewal. */
  | { readonly type: 'forced'; readonly holder: RetiringHolder }
  /** Left as it is. Reported once each. */
  | ({ readonly type: 'damaged' } & DamagedLease);

/** The result of `scaleCluster`. */
export type ScaleOutcome =
  | { readonly kind: 'no-cluster' }
  /** The cluster has the size. `from` is the size before; the same if it had been changed already. */
  | {
      readonly kind: 'scaled';
      readonly from: number;
      readonly to: number;
      /** How many bits a node id takes in unique ids. */
      readonly idWidth: number;
      /** Whether the new size needs more bits than any earlier size of the cluster. */
      readonly widened: boolean;
      /** Number of lease objects that this call created. */
      readonly created: number;
      /**
       * Number of retired lease objects below the size that this call made acquirable again; 0 unless `from`
       * and `to` are the same.
       */
      readonly reopened: number;
      /** Number of lease objects beyond the size that this call retired. */
      readonly retired: number;
      /** The holders that did not give their ids back in time, in ascending order of the ids. */
      readonly forced: readonly RetiringHolder[];
      /**
       * Damaged objects of ids that the cluster got or gave up, in ascending order of the ids; left as they
       * are, for a repair.
       */
      readonly damaged: readonly DamagedLease[];
    }
  /**
   * Not all holders use the width, which stays published. Nothing else was changed. The next call continues.
   */
  | {
      readonly kind: 'not-adopted';
      readonly size: number;
      readonly idWidth: number;
      readonly holders: readonly NarrowHolder[];
    }
  /** Another task has changed the size meanwhile, and that size is kept. The next call changes it again. */
  | { readonly kind: 'superseded'; readonly size: number };

/** Options of `scaleCluster`. */
export interface ScaleOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** The new number of node ids, 1 … 65528. */
  readonly size: number;
  /** How long to wait for all holders to use a wider width, in milliseconds. @default 60000 */
  readonly waitTimeoutMs?: number | undefined;
  /** How long holders may keep ids that the cluster gives up, in milliseconds. @default 600000 */
  readonly drainTimeoutMs?: number | undefined;
  /** Stops the call. Completed steps stay consistent. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the progress. Must not throw. */
  readonly onEvent?: ((event: ScaleEvent) => void) | undefined;
}

/** What one LIST shows of a cluster. */
interface ClusterListing {
  /** Undefined when there is no `cluster.json`. */
  readonly clusterEtag: string | undefined;
  /** The lease objects by their node ids, also those beyond the size. */
  readonly rows: ReadonlyMap<number, ListedObject>;
}

/** The time between two scans of the remaining holders, in milliseconds. */
export const scanEveryMs = (durationMs: number) => Math.min(Math.max(durationMs / 3, 100), 2_000);

/** Shortest pause before another attempt after a failure or a conflict, in milliseconds. */
export const PAUSE_MS = 100;
/**
 * Maximum number of consecutive failed changes of the settings, of refused changes in all, and of consecutive
 * listings that do not show what was written.
 */
const FAILURES = 5;
const CONFLICTS = 100;
const LISTINGS = 10;

/** The steps that growing and shrinking share. Used once; every step may be repeated. */
export class ScaleSteps {
  /** Number of lease objects that were created. */
  created = 0;
  #failures = 0;
  #conflicts = 0;
  readonly #damaged = new Map<number, string>();
  readonly #retry: Retry;

  constructor(readonly options: ScaleOptions) {
    this.#retry = whileStoreIsAway(options);
  }

  /** What was reported, in ascending order of the ids. */
  get damaged(): readonly DamagedLease[] {
    return [...this.#damaged].sort(([a], [b]) => a - b).map(([id, problem]) => ({ id, problem }));
  }

  reportDamage(id: number, problem: string): void {
    if (this.#damaged.has(id)) return;
    this.#damaged.set(id, problem);
    this.options.onEvent?.({ type: 'damaged', id, problem });
  }

  read(): Promise<StoredCluster | undefined> {
    return this.#retry((call) => readCluster(this.options.session, call));
  }

  async list(): Promise<ClusterListing> {
    const { session } = this.options;
    const { objects } = await this.#retry((call) => session.list(call));
    refuseMarked(session, objects);
    const rows = new Map<number, ListedObject>();
    let clusterEtag: string | undefined;
    for (const row of objects) {
      if (row.key === CLUSTER_KEY) clusterEtag = row.etag;
      const id = nodeIdOf(row.key);
      if (id !== undefined) rows.set(id, row);
    }
    return { clusterEtag, rows };
  }

  /**
   * Calls `step` for every id, several at a time, and again while the store is away. `step` begins with a
   * read of the current state.
   */
  async onEach(
    ids: readonly number[],
    step: (id: number, call: SessionCall) => Promise<void>,
  ): Promise<void> {
    const each = (id: number, signal: AbortSignal) =>
      whileStoreIsAway({ ...this.options, signal })((call) => step(id, call));
    await concurrently(ids, REQUESTS_AT_ONCE, each, this.options.signal);
  }

  /**
   * Creates the missing objects, from `first` to below `end`, of ids that were never held. Resolves to a
   * listing that shows all of them: the reply to an own write is not enough if another task writes at the
   * same time.
   */
  async createMissing(first: number, end: number): Promise<ClusterListing> {
    const { session } = this.options;
    for (let listing = 1; ; listing += 1) {
      const listed = await this.list();
      const missing = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index).filter(
        (id) => !listed.rows.has(id),
      );
      if (missing.length === 0) return listed;
      await this.pauseAfterListing(listing);
      await this.onEach(missing, async (id, call) => {
        if ((await createVacant(session, id, call)) === 'created') this.created += 1;
      });
    }
  }

  /**
   * Changes the settings. Undefined if another task has changed them, or the outcome is unknown: they must
   * then be read again (rule 5).
   */
  async change(cluster: StoredCluster, change: Partial<ClusterConfig>): Promise<StoredCluster | undefined> {
    const { session, clock, random, signal } = this.options;
    try {
      const changed = await changeCluster(session, cluster, change, { signal });
      this.#failures = 0;
      if (changed !== undefined) return changed;
      this.#conflicts += 1;
    } catch (error) {
      signal?.throwIfAborted();
      this.#failures += 1;
      if (!(error instanceof StoreError && error.transient) || this.#failures === FAILURES) throw error;
    }
    if (this.#conflicts === CONFLICTS)
      throw new StoreUnusableError(
        'CLUSTER_CHANGED',
        `${session.store.url}: ${CLUSTER_KEY} changes too often to be changed`,
      );
    await clock.sleep(PAUSE_MS * (1 + random.next()), signal);
    return undefined;
  }

  /**
   * Waits a moment when several consecutive listings have not shown what was written. This one is number
   * `listing`.
   *
   * @throws {StoreUnusableError} after too many
   */
  async pauseAfterListing(listing: number): Promise<void> {
    const { session, clock, random, signal } = this.options;
    if (listing === LISTINGS)
      throw new StoreUnusableError(
        'STORE_UNSAFE',
        `${session.store.url}: does not list the lease objects that were written`,
      );
    if (listing > 2) await clock.sleep(PAUSE_MS * listing * (1 + random.next()), signal);
  }
}
