import type { ListedObject, StoredObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import {
  availability,
  evicted,
  type LeaseState,
  leaseKey,
  mayExceed,
  type RetiredLease,
  retired,
} from '../model/lease-state.js';
import { readCluster, type StoredCluster } from '../session/cluster-store.js';
import type { SessionCall } from '../session/store-session.js';
import { readingOf } from './inspect.js';
import { PAUSE_MS, type RetiringHolder, type ScaleSteps, scanEveryMs } from './scaling.js';

/** A holder that the retirement waits for. */
interface Waited {
  readonly holder: RetiringHolder;
  /** The age from which on its lease can be expired, in milliseconds. */
  readonly limitMs: number;
}

/**
 * The shortest time between two listings for each object, in milliseconds: a listing takes a request for
 * every thousand objects.
 */
const POLL_PER_OBJECT_MS = 0.2;
/** The time between two events of progress, in milliseconds. */
const PROGRESS_MS = 250;
/** The default of `drainTimeoutMs`. */
const DRAIN_TIMEOUT_MS = 600_000;

/**
 * Retires the lease objects of ids that a cluster has given up, by tombstones with the cluster's generation.
 * No object is deleted.
 *
 * - A lease without a holder is retired at once. So is an expired lease, with the next version: a late
 *   renewal of its holder is then refused.
 * - A live holder gets time to end. It learns of the new size at its renewals.
 * - When the time is up the id is taken from it, as {@link evicted} does: no other task gets the id before
 *   its duration is over, even if the cluster grows again at once.
 *
 * A task with older settings may still take an id that is not retired yet, and gets the same time to end.
 * Retirement ends when a listing shows only tombstones of this generation beyond the size. A tombstone of an
 * earlier generation is replaced. The cluster may have had the id in between, and a task with the settings of
 * that time would take it.
 *
 * The settings are compared with every listing, and read once more before a live holder's id is taken away.
 * So a tenure that begins after the cluster has the id again is never ended. If the settings change at that
 * moment, the tombstone's generation is older than theirs, and it counts as released.
 */
export class Retirement {
  /** Number of lease objects that were retired here. */
  retired = 0;
  #generation: number | undefined;
  #until: number | undefined;
  /** True once other settings have been seen: nothing is written before they are read again. */
  #outdated = false;
  #reported = { at: Number.NEGATIVE_INFINITY, settled: 0, holders: '' };
  readonly #forced = new Map<number, RetiringHolder>();
  /** Objects that are not read again as long as they have this etag. */
  readonly #settled = new Map<number, string>();
  /** The damaged ones among them. */
  readonly #unreadable = new Set<number>();
  readonly #waited = new Map<number, Waited>();
  /** Own tombstones whose outcome may not be known. */
  readonly #tried = new Map<number, { version: number; from: RetiringHolder | undefined }>();

  constructor(private readonly steps: ScaleSteps) {}

  /** The holders that lost their ids, in ascending order of the ids. */
  get forced(): readonly RetiringHolder[] {
    return [...this.#forced.values()].sort((a, b) => a.id - b.id);
  }

  /**
   * Resolves to 'changed' as soon as it sees other settings. The caller then reads them, and calls this
   * again.
   */
  async run(cluster: StoredCluster): Promise<'done' | 'changed'> {
    const { clock, signal, drainTimeoutMs = DRAIN_TIMEOUT_MS } = this.steps.options;
    this.#begin(cluster.config);
    this.#until ??= clock.monotonic() + drainTimeoutMs;
    for (let listing = 1; ; listing += 1) {
      const forcing = this.#waited.size > 0 && clock.monotonic() >= this.#until;
      const { rows, clusterEtag } = await this.steps.list();
      if (clusterEtag !== cluster.etag) return 'changed';
      this.#reportAbsent(rows, cluster.config);
      const beyond = [...rows].filter(([id]) => id >= cluster.config.size);
      const due = beyond.filter(([id, row]) => this.#isDue(id, row, forcing)).map(([id]) => id);
      if (due.length === 0 && this.#waited.size === 0) return 'done';
      await this.steps.onEach(due, async (id, call) => {
        await this.#examine(id, cluster, forcing, call);
        this.#reportProgress(beyond.length, PROGRESS_MS);
      });
      this.#reportProgress(beyond.length, 0);
      if (this.#waited.size === 0) {
        await this.steps.pauseAfterListing(listing);
        continue;
      }
      listing = 0;
      const leftMs = this.#until - clock.monotonic();
      if (leftMs > 0) this.#reportDraining(leftMs);
      if (leftMs > 0) await clock.sleep(Math.min(pollMs(cluster.config, rows.size), leftMs), signal);
      else if (forcing) await clock.sleep(PAUSE_MS, signal);
    }
  }

  /** An id that is retired in another generation is not retired in this one. */
  #begin({ generation }: ClusterConfig): void {
    this.#outdated = false;
    if (this.#generation === generation) return;
    this.#generation = generation;
    this.#settled.clear();
    this.#unreadable.clear();
    this.#tried.clear();
  }

  #reportAbsent(rows: ReadonlyMap<number, ListedObject>, { size, peak }: ClusterConfig): void {
    for (let id = size; id < peak; id += 1) if (!rows.has(id)) this.#leave(id, 'is absent, and existed once');
    for (const id of this.#waited.keys()) if (!rows.has(id)) this.#waited.delete(id);
  }

  /** Whether the object must be read. A write by a live holder's renewal is no reason. */
  #isDue(id: number, row: ListedObject, forcing: boolean): boolean {
    if (this.#settled.get(id) === row.etag) return false;
    const waited = this.#waited.get(id);
    return (
      waited === undefined ||
      forcing ||
      row.size <= nativeCodec.tombstoneMaxBytes ||
      mayExceed(row.age, waited.limitMs)
    );
  }

  async #examine(id: number, cluster: StoredCluster, forcing: boolean, call: SessionCall): Promise<void> {
    const object = await this.steps.options.session.read(leaseKey(id), call);
    if (object === undefined) return this.#leave(id, 'is absent, and existed once');
    const reading = readingOf(object);
    if (reading.kind === 'unreadable') {
      this.#leave(id, reading.problem);
      this.#settled.set(id, object.etag);
      this.#unreadable.add(id);
    }
    if (reading.kind === 'lease')
      await this.#retire(id, { object, state: reading.lease, cluster, forcing }, call);
  }

  async #retire(
    id: number,
    {
      object,
      state,
      cluster: stored,
      forcing,
    }: { object: StoredObject; state: LeaseState; cluster: StoredCluster; forcing: boolean },
    call: SessionCall,
  ): Promise<void> {
    const cluster = stored.config;
    // A writer with newer settings wrote a later generation. With an earlier one, tasks with older settings
    // would take the id.
    if (state.kind === 'retired' && state.generation >= cluster.generation)
      return this.#settle(id, object.etag, state);
    const expired = availability(state, object.age, cluster.graceMs).kind === 'free';
    const holder =
      state.kind === 'held' && !expired ? { id, taskId: state.taskId, version: state.version } : undefined;
    if (state.kind === 'held' && holder !== undefined && !(forcing && (await this.#isAsRead(stored, call)))) {
      this.#waited.set(id, { holder, limitMs: state.durationMs + cluster.graceMs });
      return;
    }
    if (this.#outdated) return;
    const { session } = this.steps.options;
    const over = state.kind === 'held' ? evicted(state, expired, ['retired', session.storeNow().min]) : state;
    const tombstone = retired(over, cluster.generation);
    this.#tried.set(id, { version: tombstone.version, from: holder });
    const result = await session.write(leaseKey(id), nativeCodec.encode(tombstone), object.etag, call);
    // After a refusal the settings are read again, then the object.
    if (result.status === 'written') this.#settle(id, result.etag, tombstone);
    else this.#tried.delete(id);
  }

  /**
   * Whether the settings are still those that were read. If another task undid the change, no id may be taken
   * away.
   */
  async #isAsRead({ etag }: StoredCluster, call: SessionCall): Promise<boolean> {
    const isAsRead = (await readCluster(this.steps.options.session, call))?.etag === etag;
    if (!isAsRead) this.#outdated = true;
    return isAsRead;
  }

  #settle(id: number, etag: string, { version }: RetiredLease): void {
    this.#settled.set(id, etag);
    this.#unreadable.delete(id);
    this.#waited.delete(id);
    const tried = this.#tried.get(id);
    this.#tried.delete(id);
    // A tombstone of another writer has another version, or the same effect.
    if (tried?.version !== version) return;
    this.retired += 1;
    if (tried.from === undefined) return;
    this.#forced.set(id, tried.from);
    this.steps.options.onEvent?.({ type: 'forced', holder: tried.from });
  }

  #leave(id: number, problem: string): void {
    this.#waited.delete(id);
    this.#settled.delete(id);
    this.#unreadable.delete(id);
    this.steps.reportDamage(id, problem);
  }

  #reportProgress(total: number, leastMs: number): void {
    const { clock, onEvent } = this.steps.options;
    const settled = this.#settled.size - this.#unreadable.size;
    const now = clock.monotonic();
    if (settled === this.#reported.settled || now - this.#reported.at < leastMs) return;
    this.#reported = { ...this.#reported, at: now, settled };
    onEvent?.({ type: 'retired', retired: settled, total });
  }

  #reportDraining(leftMs: number): void {
    const holders = [...this.#waited.values()].map(({ holder }) => holder).sort((a, b) => a.id - b.id);
    const who = holders.map(({ id, version }) => `${id} ${version}`).join();
    if (who === this.#reported.holders) return;
    this.#reported = { ...this.#reported, holders: who };
    this.steps.options.onEvent?.({ type: 'draining', holders, leftMs });
  }
}

function pollMs({ durationMs }: ClusterConfig, objects: number): number {
  return Math.max(scanEveryMs(durationMs), objects * POLL_PER_OBJECT_MS);
}
