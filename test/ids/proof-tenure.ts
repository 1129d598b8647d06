import { setImmediate as turn } from 'node:timers/promises';
import type { RandomSource } from '../../src/core/base/clock.js';
import { systemRandom } from '../../src/core/base/system.js';
import { IdsExhaustedError, type UniqueIdGenerator, uniqueIds } from '../../src/core/id/index.js';
import { acquireLease, evictHolder, StoreSession } from '../../src/core/lease/index.js';
import { type Lease, LeaseLostError, LeaseReleasedError } from '../../src/core/lease/model/lease.js';
import type { LeaseStore } from '../../src/core/store/lease-store.js';
import type { HurriedClock } from './hurried-clock.js';
import type { IdBitmap } from './id-bitmap.js';
import { IdWitness } from './id-witness.js';
import { plantedIds } from './planted-ids.js';
import type { Ending, Shared, TenureReport, ThreadSettings } from './proof-messages.js';
import { SeveredStore } from './severed-store.js';

export interface TenureOptions {
  readonly settings: ThreadSettings;
  readonly store: LeaseStore;
  readonly clock: HurriedClock;
  readonly dice: RandomSource;
  readonly bitmap: IdBitmap;
  readonly shared: Shared;
  readonly signal: AbortSignal;
}

const HOUR_MS = 3_600_000;
/** How many ids a burst makes before the thread's loop turns. */
const BLOCK = 16_384;
/** How long an operator waits for the store, in milliseconds. */
const EVICTION_MS = 60_000;
/**
 * How long to wait before one looks again whether there are ids, in milliseconds: the tenure may have come to
 * its end.
 */
const LONGEST_WAIT_MS = 1_000;

/**
 * One tenure: a node id is acquired, makes ids in bursts and trickles while its host's clock is stepped
 * about, and comes to some end.
 */
export async function runTenure(options: TenureOptions, taskId: string): Promise<TenureReport> {
  const { settings, clock, bitmap, signal } = options;
  const { durationMs, graceMs, shape, thread } = settings;
  const store = new SeveredStore(options.store);
  let from: TenureReport['from'] = 'vacant';
  const lease = await acquireLease({
    ...{ store, clock, random: systemRandom, taskId, nodes: shape.nodes, durationMs, graceMs, signal },
    onEvent: (event) => {
      if (event.type === 'acquired') from = event.from;
    },
  });
  const witness = new IdWitness(bitmap, lease.id + 8);
  const work = new Work(options, lease, witness);
  const ending = await work.run(store);
  return {
    ...{ thread, nodeId: lease.id, version: lease.version, from, ending, steps: work.steps },
    ...{ ids: witness.seen, first: witness.first, last: witness.last, faults: witness.faults },
  };
}

class Work {
  steps = 0;
  readonly #block = new BigUint64Array(BLOCK);

  constructor(
    private readonly options: TenureOptions,
    private readonly lease: Lease,
    private readonly witness: IdWitness,
  ) {}

  async run(store: SeveredStore): Promise<Ending> {
    const { clock, dice, shared } = this.options;
    const endsAt = clock.monotonic() + 500 + dice.next() ** 2 * 12_000;
    try {
      const ids = await this.#generator();
      while (clock.monotonic() < endsAt && !shared.isStopped) await this.#act(ids);
      return await this.#end(ids, store);
    } catch (error) {
      if (isOver(error)) return 'lost';
      throw error;
    }
  }

  #generator(): Promise<UniqueIdGenerator> {
    const { settings, clock, dice } = this.options;
    const { plant, defaultLayout, shape } = settings;
    // Most with what the product has by itself; some with less, some with more.
    const spread =
      dice.next() < 0.6
        ? {}
        : { lagMs: Math.floor(dice.next() * 6_000), advanceMs: Math.floor(dice.next() * 12_000) };
    const { layout } = shape;
    if (plant !== undefined) return plantedIds(this.lease, plant, { clock, layout, ...spread });
    return uniqueIds(this.lease, defaultLayout ? spread : { layout, ...spread });
  }

  /** A burst or a trickle, and now and then a step of the host's clock. */
  async #act(ids: UniqueIdGenerator): Promise<void> {
    const { dice } = this.options;
    if (dice.next() < 0.1) this.#stepClock();
    if (dice.next() < 0.8) return this.#burst(ids);
    const some = 1 + Math.floor(dice.next() * 300);
    await this.#make(() => {
      for (let at = 0; at < some; at += 1) {
        this.#block[0] = ids.next();
        this.#see(1);
      }
    });
    await this.options.clock.sleep(dice.next() * 400);
  }

  async #burst(ids: UniqueIdGenerator): Promise<void> {
    let waitMs = 0;
    for (let blocks = 0; blocks < 64 && waitMs === 0; blocks += 1) {
      waitMs = await this.#make(() => {
        this.#block.fill(0n);
        try {
          ids.fill(this.#block);
        } finally {
          // What was written before a refusal is good, whatever the refusal was.
          const end = this.#block.indexOf(0n);
          this.#see(end < 0 ? BLOCK : end);
        }
      });
      await turn();
    }
    if (waitMs > 0) await this.options.clock.sleep(Math.min(waitMs, LONGEST_WAIT_MS));
  }

  /** Makes ids; how long to wait for more, in milliseconds. */
  async #make(make: () => void): Promise<number> {
    try {
      make();
      return 0;
    } catch (error) {
      if (error instanceof IdsExhaustedError) return error.waitMs;
      throw error;
    }
  }

  #see(count: number): void {
    this.witness.see(this.#block, count);
    this.options.shared.add(count);
  }

  #stepClock(): void {
    const { clock, dice } = this.options;
    const reach = dice.next() < 0.5 ? 20_000 : 24 * HOUR_MS;
    clock.wallOffsetMs = (dice.next() * 2 - 1) * reach;
    this.steps += 1;
  }

  async #end(ids: UniqueIdGenerator, store: SeveredStore): Promise<Ending> {
    const { dice, clock, shared } = this.options;
    const draw = shared.isStopped ? 0 : dice.next();
    if (draw < 0.5) {
      const released = this.lease.release();
      await this.#exhaust(ids);
      await released;
      return 'released';
    }
    if (draw < 0.6) {
      // It is not asked for ids any more; what it still does is cut off, too.
      store.cut('requests');
      return 'crashed';
    }
    if (draw < 0.85) {
      const what = draw < 0.72 ? 'requests' : 'replies';
      store.cut(what);
      await this.#exhaust(ids);
      return `${what} cut`;
    }
    await evictHolder(new StoreSession(this.options.store, clock, EVICTION_MS), this.lease.id);
    await this.#exhaust(ids);
    return 'evicted';
  }

  /** Asks for ids until there will be none any more. */
  async #exhaust(ids: UniqueIdGenerator): Promise<void> {
    try {
      for (;;) await this.#burst(ids);
    } catch (error) {
      if (!isOver(error)) throw error;
    }
  }
}

function isOver(error: unknown): boolean {
  return error instanceof LeaseLostError || error instanceof LeaseReleasedError;
}
