import type { Clock, RandomSource } from '../clock.js';
import { ConfigError, StoreUnusableError } from '../errors.js';
import { StoreError } from '../store/lease-store.js';
import { createVacant } from './bootstrap.js';
import { CLUSTER_KEY, type ClusterConfig, encodeCluster, idWidthFor } from './cluster-config.js';
import { readCluster, type StoredCluster } from './cluster-store.js';
import { concurrently } from './concurrently.js';
import { nativeCodec } from './lease-codec.js';
import { MAX_NODE_IDS, nodeIdOf } from './lease-state.js';
import { patiently } from './patiently.js';
import type { StoreSession } from './store-session.js';
import { type NarrowHolder, WidthAdoption } from './width-adoption.js';

/** What happens while a cluster grows. Listeners must not throw. */
export type ScaleEvent =
  /** These holders make unique ids that are too narrow for the new size; they learn of it at their next renewals. */
  | { readonly type: 'waiting'; readonly idWidth: number; readonly holders: readonly NarrowHolder[] }
  /** None of them does any more. */
  | { readonly type: 'adopted'; readonly idWidth: number; readonly tookMs: number };

/** What {@link scaleCluster} came to. */
export type ScaleOutcome =
  | { readonly kind: 'no-cluster' }
  /** The cluster has the size. `from` is what it had before; the same where it had grown already. */
  | {
      readonly kind: 'scaled';
      readonly from: number;
      readonly to: number;
      /** How many bits a node id takes in unique ids. */
      readonly idWidth: number;
      /** Whether the new size took more of them than the old one. */
      readonly widened: boolean;
      /** How many lease objects this call created. */
      readonly created: number;
    }
  /** Not all holders use the width, which stays published. Nothing else was changed; called again, it goes on. */
  | { readonly kind: 'not-adopted'; readonly size: number; readonly idWidth: number; readonly holders: readonly NarrowHolder[] };

/** How many node ids a cluster is to have, and what {@link scaleCluster} works with. */
export interface ScaleOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** How many node ids the cluster is to have, 1 … 65528, and no fewer than it has. */
  readonly size: number;
  /** How long to wait in all for the holders to use a wider width, in milliseconds. @default 60000 */
  readonly waitTimeoutMs?: number | undefined;
  /** Gives up; whatever is done already stays consistent. */
  readonly signal?: AbortSignal | undefined;
  /** Receives what is done on the way. Must not throw. */
  readonly onEvent?: ((event: ScaleEvent) => void) | undefined;
}

/** Requests under way at once. */
const WRITES = 16;
/** Between two attempts that the store or somebody else got in the way of, at the least, in milliseconds. */
const PAUSE_MS = 100;
/** A store that fails that many changes of the settings in a row, while it answers reads, is given up; and one that refuses that many in all. */
const FAILURES = 5;
const CONFLICTS = 100;
/** A store that does not list that often what it was given is given up. */
const LISTINGS = 10;

/**
 * Gives a cluster more node ids, with running tasks on it (DESIGN 6):
 *
 * 1. A size that takes more bits in unique ids is told in `cluster.json` first, and waited for until every live holder makes such ids: two
 *    nodes of different widths could make the same id otherwise.
 * 2. The lease objects are created, before the size grows: from then on an absent one is damage.
 * 3. The size, and the time until which narrower ids may be stamped (`idFloor`), are changed together.
 *
 * Everything is worked out from what is stored, anew whenever somebody else has changed the settings: interrupted anywhere, and called
 * again, it goes on; several calls at once end with the greatest size, and the others fail as if they had come later. Where bootstrap is not
 * complete the missing lease objects below the present size are created as well; that it is complete is for those to record who take
 * ids, as ever.
 *
 * @throws {ConfigError} when the size is out of range, or below the present one
 * @throws {StoreUnusableError} when a lease object is damaged and the width has to grow, or when `cluster.json` cannot be understood
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function scaleCluster(options: ScaleOptions): Promise<ScaleOutcome> {
  const { size } = options;
  if (!Number.isSafeInteger(size) || size < 1 || size > MAX_NODE_IDS) {
    throw new ConfigError('number of node ids', size, `a whole number from 1 to ${MAX_NODE_IDS}`);
  }
  return new Growth(options).run();
}

class Growth {
  #created = 0;
  #failures = 0;
  #conflicts = 0;
  #waitUntil: number | undefined;

  constructor(private readonly options: ScaleOptions) {}

  async run(): Promise<ScaleOutcome> {
    const { size, signal } = this.options;
    const idWidth = idWidthFor(size);
    let from: number | undefined;
    for (;;) {
      signal?.throwIfAborted();
      const cluster = await patiently(this.options, () => readCluster(this.options.session, this.#call()));
      if (cluster === undefined) return { kind: 'no-cluster' };
      const { config } = cluster;
      from ??= config.size;
      if (size < config.size) {
        throw new ConfigError(
          'number of node ids',
          size,
          `at least ${config.size}, which the cluster has: taking node ids away is not offered yet`,
        );
      }
      if (config.idWidth < idWidth) {
        await this.#change(cluster, { idWidth });
        continue;
      }
      let { idFloor } = config;
      if (idWidthFor(config.size) < idWidth) {
        const adopted = await this.#adoption(config, idWidth);
        if (adopted.kind === 'not-adopted') return { kind: 'not-adopted', size: config.size, idWidth, holders: adopted.holders };
        idFloor = Math.max(idFloor, adopted.idFloor);
      }
      await this.#createMissing(config);
      if (size === config.size || (await this.#change(cluster, { size, idFloor }))) {
        return this.#scaled(from, config.idWidth);
      }
    }
  }

  #scaled(from: number, idWidth: number): ScaleOutcome {
    const { size } = this.options;
    return { kind: 'scaled', from, to: size, idWidth, widened: idWidthFor(from) < idWidthFor(size), created: this.#created };
  }

  async #adoption(cluster: ClusterConfig, idWidth: number) {
    const { session, clock, random, signal, onEvent, waitTimeoutMs = 60_000 } = this.options;
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
    // Beyond the present size as well: objects that an interrupted call has left, and whatever else they may hold.
    const listed = await this.#listedIds();
    const beyond = [...listed].filter((id) => id >= cluster.size);
    const adopted = await adoption.wait([...Array.from({ length: cluster.size }, (_, id) => id), ...beyond]);
    if (adopted.kind === 'adopted' && waitingSince !== undefined) {
      onEvent?.({ type: 'adopted', idWidth, tookMs: clock.monotonic() - waitingSince });
    }
    return adopted;
  }

  /** Resolves when a listing shows every object: an answer to a write of our own is not enough, where somebody else wrote at the same time. */
  async #createMissing({ size: present, bootstrapped }: ClusterConfig): Promise<void> {
    const { session, clock, random, size, signal } = this.options;
    // Below the present size an absent object is damage once bootstrap is complete: creating it would begin its versions anew (rule 2).
    const first = bootstrapped ? present : 0;
    for (let listing = 1; ; listing += 1) {
      const listed = await this.#listedIds();
      const missing = Array.from({ length: size - first }, (_, index) => first + index).filter((id) => !listed.has(id));
      if (missing.length === 0) return;
      if (listing === LISTINGS) throw new StoreUnusableError(`${session.store.url}: does not list the lease objects that were written`);
      if (listing > 2) await clock.sleep(PAUSE_MS * listing * (1 + random.next()), signal);
      const create = async (id: number, own: AbortSignal) => {
        const call = { signal: own };
        const outcome = await patiently({ clock, random, signal: own }, () => createVacant(session, nativeCodec, id, call));
        if (outcome === 'created') this.#created += 1;
      };
      await concurrently(missing, WRITES, create, signal);
    }
  }

  async #listedIds(): Promise<Set<number>> {
    const { session } = this.options;
    const { objects } = await patiently(this.options, () => session.list(this.#call()));
    return new Set(objects.map(({ key }) => nodeIdOf(key)).filter((id) => id !== undefined));
  }

  /** False when somebody else has changed the settings, or the outcome is not known: then they are to be read anew (rule 5). */
  async #change(cluster: StoredCluster, change: Partial<ClusterConfig>): Promise<boolean> {
    const { session, clock, random, signal } = this.options;
    const body = encodeCluster({ ...cluster.config, ...change }, cluster.body);
    try {
      const { status } = await session.write(CLUSTER_KEY, { body, metadata: {} }, cluster.etag, this.#call());
      this.#failures = 0;
      if (status === 'written') return true;
      this.#conflicts += 1;
    } catch (error) {
      signal?.throwIfAborted();
      this.#failures += 1;
      if (!(error instanceof StoreError && error.transient) || this.#failures === FAILURES) throw error;
    }
    if (this.#conflicts === CONFLICTS) throw new StoreUnusableError(`${session.store.url}: ${CLUSTER_KEY} changes too often to be changed`);
    await clock.sleep(PAUSE_MS * (1 + random.next()), signal);
    return false;
  }

  #call(): { signal?: AbortSignal } {
    const { signal } = this.options;
    return signal === undefined ? {} : { signal };
  }
}
