import { explain, StoreUnusableError } from '../../base/errors.js';
import type { StoredObject } from '../../store/lease-store.js';
import { type ClusterConfig, idWidthFor } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import {
  availability,
  evicted,
  type LeaseState,
  leaseKey,
  type RetiredLease,
  revived,
  stampedUntilOf,
} from '../model/lease-state.js';
import { readCluster, type StoredCluster } from '../session/cluster-store.js';
import type { SessionCall } from '../session/store-session.js';
import { readingOf } from './inspect.js';
import type { NarrowHolder, ScaleOutcome, ScaleSteps } from './scaling.js';

/**
 * The shortest and the longest time between two scans of the holders that are waited for, in milliseconds.
 */
const POLL_MS = { min: 100, max: 2_000 };

/**
 * Gives a cluster more node ids, with running tasks on it (docs/design/protocol.md, "Unique ids"):
 *
 * 1. A size that takes more bits in unique ids than any before is told in `cluster.json` first, and waited
 * for until every live holder makes such ids: two nodes of different widths could make the same id otherwise.
 * 2. The lease objects are created, before the size grows: from then on an absent one is damage. What the
 * cluster had before is there already; its tombstones, of an earlier generation, are as good as released ones
 * as soon as the size has grown.
 * 3. The size, its generation, and the time until which narrower ids may be stamped (`idFloor`), are changed
 * together.
 */
export class Growth {
  #waitUntil: number | undefined;

  constructor(private readonly steps: ScaleSteps) {}

  /** @param first the settings, of a smaller size */
  async run(first: StoredCluster): Promise<ScaleOutcome> {
    const { size, signal } = this.steps.options;
    const idWidth = idWidthFor(size);
    for (let known: StoredCluster | undefined = first; ; ) {
      signal?.throwIfAborted();
      if (known === undefined) return { kind: 'no-cluster' };
      const cluster: StoredCluster = known;
      const { config } = cluster;
      if (config.size > size) return { kind: 'superseded', size: config.size };
      if (config.idWidth < idWidth) {
        known = (await this.steps.change(cluster, { idWidth })) ?? (await this.steps.read());
        continue;
      }
      const adoption = new WidthAdoption(this.steps, config, idWidth);
      // A size that the cluster once had was adopted before it had it, and no task goes back to a narrower
      // width.
      if (idWidthFor(config.peak) < idWidth) {
        const holders = await this.#adopt(adoption, config, idWidth);
        if (holders.length > 0) return { kind: 'not-adopted', size: config.size, idWidth, holders };
      }
      await this.#provide(cluster);
      if (size === config.size) return this.#scaled(first.config, config);
      const { generation, peak } = config;
      const idFloor = Math.max(config.idFloor, adoption.idFloor);
      const change = { size, idFloor, generation: generation + 1, peak: Math.max(peak, size) };
      if ((await this.steps.change(cluster, change)) !== undefined) return this.#scaled(first.config, config);
      known = await this.steps.read();
    }
  }

  #scaled({ size: from, peak }: ClusterConfig, { idWidth }: ClusterConfig): ScaleOutcome {
    const { size } = this.steps.options;
    const { created, damaged } = this.steps;
    const widened = idWidthFor(peak) < idWidthFor(size);
    return {
      kind: 'scaled',
      from,
      to: size,
      idWidth,
      widened,
      created,
      reopened: 0,
      retired: 0,
      forced: [],
      damaged,
    };
  }

  /**
   * Waits until no live holder makes narrow ids. Resolves to the holders that still do when the time is up.
   */
  async #adopt(
    adoption: WidthAdoption,
    { peak, durationMs }: ClusterConfig,
    idWidth: number,
  ): Promise<readonly NarrowHolder[]> {
    const { clock, signal, onEvent, waitTimeoutMs = 60_000 } = this.steps.options;
    const pollMs = Math.min(Math.max(durationMs / 3, POLL_MS.min), POLL_MS.max);
    // Beyond what the cluster ever had as well: objects that an interrupted call has left, and whatever else
    // they may hold.
    const { rows } = await this.steps.list();
    const beyond = [...rows.keys()].filter((id) => id >= peak);
    let holders = await adoption.scan([...Array.from({ length: peak }, (_, id) => id), ...beyond]);
    if (holders.length === 0) return holders;
    const begunAt = clock.monotonic();
    this.#waitUntil ??= begunAt + waitTimeoutMs;
    onEvent?.({ type: 'waiting', idWidth, holders });
    while (holders.length > 0) {
      const leftMs = this.#waitUntil - clock.monotonic();
      if (leftMs <= 0) return holders;
      await clock.sleep(Math.min(pollMs, leftMs), signal);
      holders = await adoption.scan(holders.map(({ id }) => id));
    }
    onEvent?.({ type: 'adopted', idWidth, tookMs: clock.monotonic() - begunAt });
    return holders;
  }

  /**
   * Makes sure that every id that the cluster is to get has an object, one that may be acquired once it has
   * the id.
   */
  async #provide(cluster: StoredCluster): Promise<void> {
    const { size } = this.steps.options;
    const { config } = cluster;
    // What there was once and is absent is damage, when bootstrap is complete: creating it would begin its
    // versions anew (rule 2).
    const first = config.bootstrapped ? config.peak : 0;
    const { rows } = await this.steps.createMissing(first, size);
    const regained: number[] = [];
    for (let id = config.size; id < size; id += 1) {
      const row = rows.get(id);
      if (row === undefined && id < first) this.steps.reportDamage(id, 'is absent, and existed once');
      if (row !== undefined && row.size > 0) regained.push(id);
    }
    let outdated = false;
    await this.steps.onEach(regained, async (id, call) => {
      if (!outdated) outdated = (await this.#open(id, cluster, call)) === 'outdated';
    });
  }

  /**
   * A tombstone without a generation, or with a later one, would keep the id from being acquired for ever.
   * 'outdated' means that the settings have changed, and that the size is not going to be changed by these.
   */
  async #open(
    id: number,
    { config: { generation }, etag }: StoredCluster,
    call: SessionCall,
  ): Promise<'outdated' | undefined> {
    const { session } = this.steps.options;
    for (;;) {
      const object = await session.read(leaseKey(id), call);
      if (object === undefined) return;
      const reading = readingOf(object);
      if (reading.kind === 'unreadable') this.steps.reportDamage(id, reading.problem);
      if (reading.kind !== 'lease') return;
      const { lease } = reading;
      if (lease.kind !== 'retired' || revived(lease, generation + 1).kind !== 'retired') return;
      // A writer that knows newer settings wrote it: with an earlier generation, tasks that know older
      // settings would take the id.
      if (lease.generation !== undefined && (await readCluster(session, call))?.etag !== etag)
        return 'outdated';
      // Still retired until the size has grown.
      const tombstone: RetiredLease = { ...lease, generation };
      if (
        (await session.write(leaseKey(id), nativeCodec.encode(tombstone), object.etag, call)).status ===
        'written'
      )
        return;
    }
  }
}

/**
 * Finds the live holders that have not told in their leases that they make wider ids, and how late narrower
 * ids may be stamped.
 *
 * `cluster.json` has to show the width before this begins. Then one look at each lease is enough, unless it
 * is held and narrow at that look. An id that is free at that look may be held a moment later, even by a task
 * that had read the settings long before: but its acquiring write comes after the look, so after the width
 * was published, and a tenure reads the settings *after* its acquiring write before it makes its first id. A
 * lease that was lost or taken away cannot be prolonged any more: its ids are stamped before the `timestamp`
 * in the object, which every later state of the object keeps or exceeds. A holder that has gone over to the
 * width says how late its narrower ids are stamped, and a holder that released the id how late all of them
 * are.
 *
 * An expired lease that no task has taken is the exception. A renewal that its holder sent in time, and that
 * the network has held back, may still be applied and revive it, with a later `timestamp` and without the
 * width. So it is released by force, which costs nothing: it is free for any task to take (rule 4), and from
 * then on that renewal is refused.
 */
class WidthAdoption {
  /**
   * The last timestamp, in store time, of narrower ids of the scanned node ids; final once a scan finds no
   * holder.
   */
  idFloor = 0;

  /** @param cluster the cluster's settings, which tell all tasks of the width already */
  constructor(
    private readonly steps: ScaleSteps,
    private readonly cluster: ClusterConfig,
    private readonly idWidth: number,
  ) {}

  /**
   * The live holders among these ids that still make narrower ids.
   *
   * @throws {StoreUnusableError} when an object is damaged: nothing tells what its holder does
   * @throws {StoreError}
   * @throws `signal.reason`
   */
  async scan(ids: readonly number[]): Promise<readonly NarrowHolder[]> {
    const holders: NarrowHolder[] = [];
    await this.steps.onEach(ids, async (id, call) => {
      const holder = await this.#examine(id, call);
      if (holder !== undefined) holders.push(holder);
    });
    return holders.sort((a, b) => a.id - b.id);
  }

  async #examine(id: number, call: SessionCall): Promise<NarrowHolder | undefined> {
    const { cluster, idWidth } = this;
    const { session } = this.steps.options;
    const key = leaseKey(id);
    const object = await session.read(key, call);
    if (object === undefined) {
      // A vacancy, before bootstrap is complete, and beyond what the cluster ever had.
      if (cluster.bootstrapped && id < cluster.peak)
        throw this.#damaged(key, 'is absent although the cluster is bootstrapped');
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
      // The write is refused when the object has changed meanwhile.
      const { status } = await session.write(
        key,
        nativeCodec.encode(evicted(state, true)),
        object.etag,
        call,
      );
      if (status !== 'written') return holder;
    }
    this.#note(this.#narrowUntil(key, object, state));
    return undefined;
  }

  /** How late ids narrower than the width may be stamped with which the lease's node id was, or is, held. */
  #narrowUntil(key: string, object: StoredObject, state: LeaseState): number {
    if (state.kind === 'held' && state.idWidth >= this.idWidth && state.narrowIdsUntil !== undefined)
      return state.narrowIdsUntil;
    return (
      stampedUntilOf(state) ?? this.#latestStamp(key, object, state.kind === 'vacant' ? 0 : state.durationMs)
    );
  }

  /**
   * Where a tenure does not tell how late its ids are stamped: no later than a duration from its last write,
   * which is in the past.
   */
  #latestStamp(key: string, { storeTime }: StoredObject, durationMs: number): number {
    const { session } = this.steps.options;
    if (!Number.isFinite(storeTime.max)) {
      throw new StoreUnusableError(
        `${session.store.url}: ${key} tells no time, and the store does not tell its own`,
      );
    }
    return session.latest(storeTime) + Math.max(durationMs, this.cluster.durationMs);
  }

  #note(narrowUntil: number): void {
    this.idFloor = Math.max(this.idFloor, narrowUntil);
  }

  #damaged(key: string, problem: string): StoreUnusableError {
    const { url } = this.steps.options.session.store;
    const advice =
      '`nodelease init --repair` restores it; nothing tells what ids its holder makes until then';
    return new StoreUnusableError(
      `${url}: ${key} is damaged, so the cluster cannot grow: ${problem}: ${advice}`,
    );
  }
}
