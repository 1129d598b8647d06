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
import { type NarrowHolder, type ScaleOutcome, type ScaleSteps, scanEveryMs } from './scaling.js';

/**
 * Gives a cluster more node ids while tasks run (docs/design/protocol.md, "Unique ids"):
 *
 * 1. If the size needs more bits in unique ids than any before, `cluster.json` publishes the width first. The
 * call waits until every live holder makes such ids: otherwise two nodes of different widths could make the
 * same id.
 * 2. The lease objects are created before the size grows: from then on an absent object is damage. Objects of
 * an earlier size exist already. Their tombstones are of an earlier generation, and count as released once
 * the size has grown.
 * 3. One write changes the size, its generation, and the last timestamp of narrower ids (`idFloor`).
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
      // The width of an earlier size was adopted before the cluster had that size, and no task returns to a
      // narrower width.
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
    // Also scans ids at or above the peak: an interrupted call may have left objects there, and other objects
    // may exist.
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
      await clock.sleep(Math.min(scanEveryMs(durationMs), leftMs), signal);
      holders = await adoption.scan(holders.map(({ id }) => id));
    }
    onEvent?.({ type: 'adopted', idWidth, tookMs: clock.monotonic() - begunAt });
    return holders;
  }

  /** Ensures that every new id has an object that may be acquired once the cluster has the id. */
  async #provide(cluster: StoredCluster): Promise<void> {
    const { size } = this.steps.options;
    const { config } = cluster;
    // After bootstrap, an absent object of an earlier size is damage: creating it would restart its versions
    // (rule 2).
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
   * Replaces a tombstone of a later generation: it would keep the id from ever being
   * acquired. 'outdated' means that the settings have changed, and that these must not be used to change the
   * size.
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
      // A writer with newer settings wrote it. With an earlier generation, tasks with older settings would
      // take the id.
      if ((await readCluster(session, call))?.etag !== etag) return 'outdated';
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
 * Finds the live holders whose leases do not record the wider width, and the last timestamp of narrower ids.
 *
 * `cluster.json` must show the width before this begins. Then one read of each lease is enough, unless that
 * read shows it held and narrow. An id that is free in that read may be held a moment later, even by a task
 * that read the settings long before. But its acquiring write comes after the read, so after the width was
 * published. And a tenure reads the settings *after* its acquiring write, before it makes its first id. A
 * lease that was lost or taken away cannot be renewed any more. Its ids carry times before the `timestamp` in
 * the object, and every later state of the object keeps or exceeds that. A holder that has adopted the width
 * records the last timestamp of its narrower ids. A holder that released the id records the last timestamp of
 * all its ids.
 *
 * An expired lease that no task has taken is the exception. A renewal that its holder sent in time may be
 * delayed in the network, and be applied later. It would revive the lease, with a later `timestamp` and
 * without the width. So the lease is released by force. That costs nothing, since any task may take the id
 * (rule 4), and from then on that renewal is refused.
 */
class WidthAdoption {
  /**
   * The last timestamp, in store time, of narrower ids of the scanned node ids; final once a scan finds no
   * holder.
   */
  idFloor = 0;

  /** @param cluster the cluster's settings, which publish the width already */
  constructor(
    private readonly steps: ScaleSteps,
    private readonly cluster: ClusterConfig,
    private readonly idWidth: number,
  ) {}

  /**
   * The live holders among these ids that still make narrower ids.
   *
   * @throws {StoreUnusableError} when an object is damaged: its holder's width is then unknown
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
      // Before bootstrap is complete, and at or above the peak, an absent object is a vacant id.
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
      const holder = { id, taskId: state.taskId, idWidth: state.idWidth };
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

  /** The last timestamp that narrower ids of this lease's node id may carry. */
  #narrowUntil(key: string, object: StoredObject, state: LeaseState): number {
    if (state.kind === 'held' && state.idWidth >= this.idWidth) return state.narrowIdsUntil;
    return (
      stampedUntilOf(state) ?? this.#latestStamp(key, object, state.kind === 'vacant' ? 0 : state.durationMs)
    );
  }

  /**
   * The bound for a tenure that does not record its last id timestamp: the longest duration after its last
   * write, which is in the past.
   */
  #latestStamp(key: string, { storeTime }: StoredObject, durationMs: number): number {
    const { session } = this.steps.options;
    if (!Number.isFinite(storeTime.max)) {
      throw new StoreUnusableError(
        'STORE_UNSUPPORTED',
        `${session.store.url}: ${key} has no timestamp, and the store does not report its time`,
      );
    }
    return session.latest(storeTime) + Math.max(durationMs, this.cluster.longestMs);
  }

  #note(narrowUntil: number): void {
    this.idFloor = Math.max(this.idFloor, narrowUntil);
  }

  #damaged(key: string, problem: string): StoreUnusableError {
    const { url } = this.steps.options.session.store;
    const advice =
      '`nodelease init --repair` restores it; until then the ids that its holder makes are unknown';
    return new StoreUnusableError(
      'CLUSTER_DAMAGED',
      `${url}: ${key} is damaged, so the cluster cannot grow: ${problem}: ${advice}`,
    );
  }
}
