import type { ListedObject } from '../../store/lease-store.js';
import { type WidthAdopted, WidthAdoption } from '../acquire/width-adoption.js';
import { type ClusterConfig, idWidthFor } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey, type RetiredLease, revived } from '../model/lease-state.js';
import { readCluster, type StoredCluster } from '../session/cluster-store.js';
import type { SessionCall } from '../session/store-session.js';
import { readingOf } from './inspect.js';
import type { ScaleSteps } from './scale-steps.js';
import type { ScaleOutcome } from './scaling.js';

/**
 * Gives a cluster more node ids, with running tasks on it (docs/design/protocol.md, "Unique ids"):
 *
 * 1. A size that takes more bits in unique ids than any before is told in `cluster.json` first, and waited for until every live holder makes
 *    such ids: two nodes of different widths could make the same id otherwise.
 * 2. The lease objects are created, before the size grows: from then on an absent one is damage. What the cluster had before is there already;
 *    its tombstones, of an earlier generation, are as good as released ones as soon as the size has grown.
 * 3. The size, its generation, and the time until which narrower ids may be stamped (`idFloor`), are changed together.
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
      let { idFloor } = config;
      // A size that the cluster once had was adopted before it had it, and no task goes back to a narrower width.
      if (idWidthFor(config.peak) < idWidth) {
        const adopted: WidthAdopted = await this.#adoption(config, idWidth);
        if (adopted.kind === 'not-adopted') return { kind: 'not-adopted', size: config.size, idWidth, holders: adopted.holders };
        idFloor = Math.max(idFloor, adopted.idFloor);
      }
      await this.#provide(cluster);
      if (size === config.size) return this.#scaled(first.config, config);
      const { generation, peak } = config;
      const change = { size, idFloor, generation: generation + 1, peak: Math.max(peak, size) };
      if ((await this.steps.change(cluster, change)) !== undefined) return this.#scaled(first.config, config);
      known = await this.steps.read();
    }
  }

  #scaled({ size: from, peak }: ClusterConfig, { idWidth }: ClusterConfig): ScaleOutcome {
    const { size } = this.steps.options;
    const { created, damaged } = this.steps;
    const widened = idWidthFor(peak) < idWidthFor(size);
    return { kind: 'scaled', from, to: size, idWidth, widened, created, reopened: 0, retired: 0, forced: [], damaged };
  }

  async #adoption(cluster: ClusterConfig, idWidth: number): Promise<WidthAdopted> {
    const { session, clock, random, signal, onEvent, waitTimeoutMs = 60_000 } = this.steps.options;
    let waitingSince: number | undefined;
    const adoption = new WidthAdoption({
      ...{ session, clock, random, signal, cluster, idWidth },
      until: () => {
        this.#waitUntil ??= clock.monotonic() + waitTimeoutMs;
        return this.#waitUntil;
      },
      onWaiting: (holders) => {
        waitingSince = clock.monotonic();
        onEvent?.({ type: 'waiting', idWidth, holders });
      },
    });
    // Beyond what the cluster ever had as well: objects that an interrupted call has left, and whatever else they may hold.
    const { rows } = await this.steps.list();
    const beyond = [...rows.keys()].filter((id) => id >= cluster.peak);
    const adopted = await adoption.wait([...Array.from({ length: cluster.peak }, (_, id) => id), ...beyond]);
    if (adopted.kind === 'adopted' && waitingSince !== undefined) {
      onEvent?.({ type: 'adopted', idWidth, tookMs: clock.monotonic() - waitingSince });
    }
    return adopted;
  }

  /** Sees to it that every id that the cluster is to get has an object, one that may be acquired once it has the id. */
  async #provide(cluster: StoredCluster): Promise<void> {
    const { size } = this.steps.options;
    const { config } = cluster;
    // What there was once and is absent is damage, when bootstrap is complete: creating it would begin its versions anew (rule 2).
    const first = config.bootstrapped ? config.peak : 0;
    const { rows } = await this.steps.createMissing(first, size);
    const regained: number[] = [];
    for (let id = config.size; id < Math.min(first, size); id += 1) {
      if (!rows.has(id)) this.steps.reportDamage(id, 'is absent, and existed once');
    }
    for (let id = config.size; id < size; id += 1) if (!isEmpty(rows.get(id))) regained.push(id);
    let outdated = false;
    await this.steps.onEach(regained, async (id, call) => {
      if (!outdated) outdated = (await this.#open(id, cluster, call)) === 'outdated';
    });
  }

  /**
   * A tombstone without a generation, or with a later one, would keep the id from being acquired for ever. 'outdated' means
   * that the settings have changed, and that the size is not going to be changed by these.
   */
  async #open(id: number, { config: { generation }, etag }: StoredCluster, call: SessionCall): Promise<'outdated' | undefined> {
    const { session } = this.steps.options;
    for (;;) {
      const object = await session.read(leaseKey(id), call);
      if (object === undefined) return;
      const reading = readingOf(object);
      if (reading.kind === 'unreadable') this.steps.reportDamage(id, reading.problem);
      if (reading.kind !== 'lease') return;
      const { lease } = reading;
      if (lease.kind !== 'retired' || revived(lease, generation + 1).kind !== 'retired') return;
      // A writer that knows newer settings wrote it: with an earlier generation, tasks that know older settings would take the id.
      if (lease.generation !== undefined && (await readCluster(session, call))?.etag !== etag) return 'outdated';
      // Still retired until the size has grown.
      const tombstone: RetiredLease = { ...lease, generation };
      if ((await session.write(leaseKey(id), nativeCodec.encode(tombstone), object.etag, call)).status === 'written') return;
    }
  }
}

function isEmpty(row: ListedObject | undefined): boolean {
  return row === undefined || row.size === 0;
}
