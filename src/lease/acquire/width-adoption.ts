import type { Clock, RandomSource } from '../../base/clock.js';
import { concurrently } from '../../base/concurrently.js';
import { explain, StoreUnusableError } from '../../base/errors.js';
import type { StoredObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { availability, evicted, type HeldLease, type LeaseState, leaseKey, stampedUntilOf } from '../model/lease-state.js';
import { retry, whileStoreIsAway } from '../session/retry.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';

/** A live holder that has not told yet that it makes unique ids of the wider width. */
export interface NarrowHolder {
  readonly id: number;
  readonly taskId: string;
  /** The width that its lease tells of; undefined where it tells of none. */
  readonly idWidth: number | undefined;
}

/** What a {@link WidthAdoption} came to. */
export type WidthAdopted =
  /** No narrower ids are made any more, and none is stamped later than `idFloor`, in store time. */
  | { readonly kind: 'adopted'; readonly idFloor: number }
  /** Time is up, and these still do. */
  | { readonly kind: 'not-adopted'; readonly holders: readonly NarrowHolder[] };

export interface WidthAdoptionOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** The cluster's settings, which tell all tasks of the width already. */
  readonly cluster: ClusterConfig;
  /** The width that is waited for. */
  readonly idWidth: number;
  /** When to stop waiting, on the monotonic clock; called when there is a holder to wait for. */
  readonly until: () => number;
  readonly onWaiting: (holders: readonly NarrowHolder[]) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Requests under way at once. */
const REQUESTS = 16;
/** The shortest and the longest time between two scans of the holders that are waited for, in milliseconds. */
const POLL_MS = { min: 100, max: 2_000 };

/**
 * Waits until every live holder has told in its lease that it makes wider ids, and finds out how late the narrower ones may be
 * stamped.
 *
 * `cluster.json` has to show the width before this begins. Then one look at each lease is enough, unless it is held and narrow at that
 * look. An id that is free at that look may be held a moment later, even by a task that had read the settings long before: but its
 * acquiring write comes after the look, so after the width was published, and a tenure reads the settings *after* its acquiring write
 * before it makes its first id. A lease that was lost or taken away cannot be prolonged any more: its ids are stamped
 * before the `timestamp` in the object, which every later state of the object keeps or exceeds. A holder that has gone over to the width says how
 * late its narrower ids are stamped, and a holder that released the id how late all of them are.
 *
 * An expired lease that no task has taken is the exception. A renewal that its holder sent in time, and that the network has held back, may
 * still be applied and revive it, with a later `timestamp` and without the width. So it is released by force, which costs nothing: it is free
 * for any task to take (rule 4), and from then on that renewal is refused.
 */
export class WidthAdoption {
  #idFloor = 0;

  constructor(private readonly options: WidthAdoptionOptions) {}

  /**
   * @param ids the node ids whose leases there are, all of them
   * @throws {StoreUnusableError} when an object is damaged: nothing tells what its holder does
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async wait(ids: readonly number[]): Promise<WidthAdopted> {
    const { clock, cluster, signal, onWaiting } = this.options;
    const pollMs = Math.min(Math.max(cluster.durationMs / 3, POLL_MS.min), POLL_MS.max);
    let holders = await this.#scan(ids);
    if (holders.length === 0) return { kind: 'adopted', idFloor: this.#idFloor };
    onWaiting(holders);
    for (const until = this.options.until(); ; ) {
      const leftMs = until - clock.monotonic();
      if (leftMs <= 0) return { kind: 'not-adopted', holders };
      await clock.sleep(Math.min(pollMs, leftMs), signal);
      holders = await this.#scan(holders.map(({ id }) => id));
      if (holders.length === 0) return { kind: 'adopted', idFloor: this.#idFloor };
    }
  }

  /** Those of the ids that have to be looked at once more. */
  async #scan(ids: readonly number[]): Promise<NarrowHolder[]> {
    const { clock, random, signal } = this.options;
    const examine = (id: number, own: AbortSignal) =>
      retry(() => this.#examine(id, { signal: own }), whileStoreIsAway({ clock, random, signal: own }));
    const found = await concurrently(ids, REQUESTS, examine, signal);
    return found.filter((holder) => holder !== undefined);
  }

  async #examine(id: number, call: SessionCall): Promise<NarrowHolder | undefined> {
    const { session, cluster, idWidth } = this.options;
    const key = leaseKey(id);
    const object = await session.read(key, call);
    if (object === undefined) {
      // A vacancy, before bootstrap is complete, and beyond what the cluster ever had.
      if (cluster.bootstrapped && id < cluster.peak) throw this.#damaged(key, 'is absent although the cluster is bootstrapped');
      return undefined;
    }
    let state: LeaseState;
    try {
      state = nativeCodec.decode(object.body, object.metadata);
    } catch (error) {
      if (id < cluster.peak) throw this.#damaged(key, explain(error));
      // No task can hold an id that does not exist yet; a former holder cannot prolong it.
      this.#note(this.#latestStamp(key, object, 0));
      return undefined;
    }
    if (state.kind === 'held' && state.idWidth < idWidth) {
      const holder = { id, taskId: state.taskId, idWidth: state.idWidth || undefined };
      if (availability(state, object.age, cluster.graceMs).kind !== 'free') return holder;
      if (!(await this.#release(key, state, object.etag, call))) return holder;
    }
    this.#note(this.#narrowUntil(key, object, state));
    return undefined;
  }

  /** False when the object has changed meanwhile, or may have. */
  async #release(key: string, held: HeldLease, etag: string, call: SessionCall): Promise<boolean> {
    const tombstone = nativeCodec.encode(evicted(held, true));
    return (await this.options.session.write(key, tombstone, etag, call)).status === 'written';
  }

  /** How late ids narrower than the width may be stamped with which the lease's node id was, or is, held. */
  #narrowUntil(key: string, object: StoredObject, state: LeaseState): number {
    if (state.kind === 'held' && state.idWidth >= this.options.idWidth && state.narrowIdsUntil !== undefined) return state.narrowIdsUntil;
    return stampedUntilOf(state) ?? this.#latestStamp(key, object, state.kind === 'vacant' ? 0 : state.durationMs);
  }

  /** Where a tenure does not tell how late its ids are stamped: no later than a duration from its last write, which is in the past. */
  #latestStamp(key: string, { storeTime }: StoredObject, durationMs: number): number {
    const { session, cluster } = this.options;
    if (!Number.isFinite(storeTime.max)) {
      throw new StoreUnusableError(`${session.store.url}: ${key} tells no time, and the store does not tell its own`);
    }
    return session.latest(storeTime) + Math.max(durationMs, cluster.durationMs);
  }

  #note(narrowUntil: number): void {
    this.#idFloor = Math.max(this.#idFloor, narrowUntil);
  }

  #damaged(key: string, problem: string): StoreUnusableError {
    const { url } = this.options.session.store;
    const advice = '`nodelease init --repair` restores it; nothing tells what ids its holder makes until then';
    return new StoreUnusableError(`${url}: ${key} is damaged, so the cluster cannot grow: ${problem}: ${advice}`);
  }
}
