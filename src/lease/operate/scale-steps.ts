import { concurrently } from '../../base/concurrently.js';
import { StoreUnusableError } from '../../base/errors.js';
import { type ListedObject, StoreError } from '../../store/lease-store.js';
import { createVacant } from '../acquire/bootstrap.js';
import { CLUSTER_KEY, type ClusterConfig, encodeCluster } from '../model/cluster-config.js';
import { refuseCamunda } from '../model/foreign-cluster.js';
import { nativeCodec } from '../model/lease-codec.js';
import { nodeIdOf } from '../model/lease-state.js';
import { readCluster, type StoredCluster } from '../session/cluster-store.js';
import { retry, whileStoreIsAway } from '../session/retry.js';
import type { SessionCall } from '../session/store-session.js';
import type { DamagedLease, ScaleOptions } from './scaling.js';

/** What one LIST shows of a cluster. */
export interface ClusterListing {
  /** Undefined when there is no `cluster.json`. */
  readonly clusterEtag: string | undefined;
  /** The lease objects by their node ids, also those beyond the size. */
  readonly rows: ReadonlyMap<number, ListedObject>;
}

/** Requests under way at once. */
const REQUESTS = 16;
/** The shortest pause before another attempt, where the store or another task got in the way, in milliseconds. */
export const PAUSE_MS = 100;
/** A store that fails that many changes of the settings in a row, while it answers reads, is given up; and one that refuses that many in all. */
const FAILURES = 5;
const CONFLICTS = 100;
/** A store that does not list that often what it was given is given up. */
const LISTINGS = 10;

/** What growing and shrinking have in common. One use each; every step may be taken again. */
export class ScaleSteps {
  #created = 0;
  #failures = 0;
  #conflicts = 0;
  readonly #damaged = new Map<number, string>();

  constructor(readonly options: ScaleOptions) {}

  /** How many lease objects were created. */
  get created(): number {
    return this.#created;
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
    return this.#retry(() => readCluster(this.options.session, this.#call()));
  }

  async list(): Promise<ClusterListing> {
    const { session } = this.options;
    const { objects } = await this.#retry(() => session.list(this.#call()));
    refuseCamunda(session, objects);
    const rows = new Map<number, ListedObject>();
    let clusterEtag: string | undefined;
    for (const row of objects) {
      if (row.key === CLUSTER_KEY) clusterEtag = row.etag;
      const id = nodeIdOf(row.key);
      if (id !== undefined) rows.set(id, row);
    }
    return { clusterEtag, rows };
  }

  /** Calls `step` for every id, some at a time, and again while the store is away: it has to begin by reading what there is. */
  async onEach(ids: readonly number[], step: (id: number, call: SessionCall) => Promise<void>): Promise<void> {
    const { clock, random, signal } = this.options;
    await concurrently(
      ids,
      REQUESTS,
      (id, own) => retry(() => step(id, { signal: own }), whileStoreIsAway({ clock, random, signal: own })),
      signal,
    );
  }

  /**
   * Creates the objects of ids that were never held, where there are none: from `first` on, below `end`. Resolves to a listing that shows
   * every one of them: an answer to a write of our own is not enough, where another task wrote at the same time.
   */
  async createMissing(first: number, end: number): Promise<ClusterListing> {
    const { session } = this.options;
    for (let listing = 1; ; listing += 1) {
      const listed = await this.list();
      const missing = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index).filter((id) => !listed.rows.has(id));
      if (missing.length === 0) return listed;
      await this.pauseAfterListing(listing);
      await this.onEach(missing, async (id, call) => {
        if ((await createVacant(session, nativeCodec, id, call)) === 'created') this.#created += 1;
      });
    }
  }

  /** What was written. Undefined when another task has changed the settings, or the outcome is not known: then they are to be read anew (rule 5). */
  async change(cluster: StoredCluster, change: Partial<ClusterConfig>): Promise<StoredCluster | undefined> {
    const { session, clock, random, signal } = this.options;
    const config = { ...cluster.config, ...change };
    const body = encodeCluster(config, cluster.body);
    try {
      const result = await session.write(CLUSTER_KEY, { body, metadata: {} }, cluster.etag, this.#call());
      this.#failures = 0;
      if (result.status === 'written') return { config, body, etag: result.etag };
      this.#conflicts += 1;
    } catch (error) {
      signal?.throwIfAborted();
      this.#failures += 1;
      if (!(error instanceof StoreError && error.transient) || this.#failures === FAILURES) throw error;
    }
    if (this.#conflicts === CONFLICTS) throw new StoreUnusableError(`${session.store.url}: ${CLUSTER_KEY} changes too often to be changed`);
    await clock.sleep(PAUSE_MS * (1 + random.next()), signal);
    return undefined;
  }

  /**
   * Waits a little where several listings in a row, this one being the `listing`th of them, have not shown what was written.
   *
   * @throws {StoreUnusableError} after too many
   */
  async pauseAfterListing(listing: number): Promise<void> {
    const { session, clock, random, signal } = this.options;
    if (listing === LISTINGS) throw new StoreUnusableError(`${session.store.url}: does not list the lease objects that were written`);
    if (listing > 2) await clock.sleep(PAUSE_MS * listing * (1 + random.next()), signal);
  }

  #retry<T>(call: () => Promise<T>): Promise<T> {
    return retry(call, whileStoreIsAway(this.options));
  }

  #call(): SessionCall {
    const { signal } = this.options;
    return signal === undefined ? {} : { signal };
  }
}
