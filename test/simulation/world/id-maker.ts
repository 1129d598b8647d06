import { cluster16, type IdLayout, idsPerMs } from '../../../src/core/id/id-layout.js';
import { IdsExhaustedError } from '../../../src/core/id/id-time.js';
import { uniqueIds } from '../../../src/core/id/lease-ids.js';
import type { UniqueIdGenerator } from '../../../src/core/id/unique-id-generator.js';
import { type Lease, LeaseLostError, LeaseReleasedError } from '../../../src/core/lease/model/lease.js';
import { StoreError } from '../../../src/core/store/lease-store.js';
import type { Dice } from './dice.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

export interface IdMakerOptions {
  readonly world: World;
  readonly process: SimulatedProcess;
  readonly dice: Dice;
  /** How the task is called in the history. */
  readonly name: string;
  readonly lease: Lease;
}

/** Room for what is made in one step; what is in it is of no interest afterwards. */
const ROOM = new BigUint64Array(4_096);
/** How long after it was stopped a process may go on with what it had begun, in milliseconds. */
const AFTER_STOP_MS = 1_000;

/**
 * A task's use of unique ids: when it asks for a generator, with which options, and when it makes how many.
 */
export class IdMaker {
  readonly #layout: IdLayout | undefined;
  readonly #lagMs: number;
  readonly #advanceMs: number;
  /** Milliseconds between two uses, on the average. */
  readonly #everyMs: number;
  /** The share of bursts of whole milliseconds among the uses. */
  readonly #burstShare: number;
  #ids: UniqueIdGenerator | undefined;
  /**
   * How many uses of ids are under way: the end of the lease is heard in the middle of one, and is the
   * beginning of another.
   */
  #uses = 0;

  constructor(private readonly options: IdMakerOptions) {
    const { dice } = options;
    // One id a millisecond: a burst of these soon meets every bound that there is.
    this.#layout = dice.chance(0.15) ? cluster16(16) : undefined;
    this.#lagMs = dice.pick(this.#layout === undefined ? [4_000, 4_000, 0] : [4_000, 0]);
    this.#advanceMs = dice.pick(
      this.#layout === undefined ? [8_000, 8_000, 0, 2, 20_000] : [8_000, 20_000, 20_000],
    );
    this.#everyMs = dice.magnitude(1_000, 15_000);
    this.#burstShare = options.world.conditions.widens ? 0.15 : 0.06;
  }

  /**
   * Once the lease is held: from some time on, or never, there will be ids. An engine that has no time of its
   * own for them makes none.
   */
  begin(): void {
    const { lease, dice } = this.options;
    if (lease.tenureTime === undefined || dice.chance(0.1)) return;
    this.#after(dice.chance(0.2) ? 0 : dice.magnitude(1, 3_000), () => void this.#ask());
    if (dice.chance(0.15)) this.#after(dice.magnitude(1, 6_000), () => void this.#ask());
    lease.signal.addEventListener('abort', () => this.makeSometimes(), { once: true });
  }

  /** In one step of the process, perhaps none. */
  makeSometimes(): void {
    if (this.#ids !== undefined && this.options.dice.chance(0.5)) this.#make(this.#ids);
  }

  async #ask(): Promise<void> {
    const { lease, world, name, dice } = this.options;
    try {
      const ids = await uniqueIds(lease, {
        layout: this.#layout,
        lagMs: this.#lagMs,
        advanceMs: this.#advanceMs,
      });
      if (this.#ids !== undefined && this.#ids !== ids)
        world.invariants.onUnexpected(name, new Error('there are two generators'));
      const first = this.#ids === undefined;
      this.#ids = ids;
      if (first) await this.#use(ids);
    } catch (error) {
      // A store that refuses may say more the next time.
      if (error instanceof StoreError) this.#after(dice.magnitude(50, 2_000), () => void this.#ask());
      else this.#hear(error);
    }
  }

  async #use(ids: UniqueIdGenerator): Promise<void> {
    const { dice, process, lease } = this.options;
    for (let triesLeft = 3; triesLeft > 0; ) {
      if (dice.chance(0.1)) this.#report(ids, ROOM.fill(await ids.nextAsync(), 0, 1), 1);
      else this.#make(ids);
      // Somebody who has not heard of the end asks a few times more.
      if (!lease.isValid()) triesLeft -= 1;
      await process.clock.sleep(dice.between(0, 2 * this.#everyMs));
    }
  }

  #make(ids: UniqueIdGenerator): void {
    this.#uses += 1;
    this.#makeIn(this.#uses > 1 ? new BigUint64Array(ROOM.length) : ROOM, ids);
    this.#uses -= 1;
  }

  #makeIn(room: BigUint64Array, ids: UniqueIdGenerator): void {
    const { dice } = this.options;
    const perMs = idsPerMs(ids.layout);
    const kind = dice.next();
    // More than there are, where little may be made in advance.
    if (kind < 0.015) this.#fill(room, ids, Math.min(1_024, (this.#advanceMs + 2) * perMs));
    else if (this.#layout !== undefined && kind < 0.45)
      this.#fill(room, ids, Math.floor(dice.magnitude(64, room.length)));
    // Whole milliseconds: where ids of two nodes may be the same, they are.
    else if (kind < this.#burstShare) this.#fill(room, ids, Math.min(512, perMs * dice.pick([1, 1, 2])));
    else if (kind < 0.65) this.#fill(room, ids, 1 + dice.below(40));
    else this.#one(room, ids, 1 + dice.below(8));
  }

  #one(room: BigUint64Array, ids: UniqueIdGenerator, count: number): void {
    let made = 0;
    try {
      for (; made < count; made += 1) room[made] = ids.next();
    } catch (error) {
      this.#hear(error);
    }
    this.#report(ids, room, made);
  }

  #fill(room: BigUint64Array, ids: UniqueIdGenerator, count: number): void {
    room.fill(0n, 0, count);
    try {
      ids.fill(room, 0, count);
    } catch (error) {
      this.#hear(error);
      const written = room.indexOf(0n);
      if (error instanceof IdsExhaustedError && error.filled !== written)
        this.options.world.invariants.onUnexpected(
          this.options.name,
          new Error(`${written} ids are there, not ${error.filled}`),
        );
      count = written;
    }
    this.#report(ids, room, count);
  }

  #report({ layout: { nodeBits } }: UniqueIdGenerator, ids: BigUint64Array, count: number): void {
    const { world, process, name, lease } = this.options;
    const fresh = world.scheduler.now - process.resumedAt > AFTER_STOP_MS;
    world.invariants.ids.onMade({
      ...{ name, nodeId: lease.id, version: lease.version, width: nodeBits, ids, count, fresh },
      ...{ fixed: this.#layout !== undefined, lagMs: this.#lagMs, advanceMs: this.#advanceMs },
    });
  }

  /** Whether a task has to expect this; anything else is a mistake. */
  #hear(error: unknown): void {
    const { world, name } = this.options;
    if (
      error instanceof IdsExhaustedError ||
      error instanceof LeaseLostError ||
      error instanceof LeaseReleasedError
    )
      return;
    world.invariants.onUnexpected(name, error);
  }

  #after(ms: number, act: () => void): void {
    const { world, process } = this.options;
    world.scheduler.at(world.scheduler.now + ms, process, act);
  }
}
