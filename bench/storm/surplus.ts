import type { Lease } from '../../src/lease/lease.js';
import { MemoryBucket } from '../../src/store/memory/memory-bucket.js';
import { Dice } from '../../test/simulation/dice.js';
import { CLUSTERS, setUp } from './clusters.js';
import { CONTESTANTS, type ContestantName } from './contestants.js';
import { total } from './request-count.js';
import { ShapedStore } from './shaped-store.js';
import { checkDistinct, DURATION_MS } from './storm.js';
import { VirtualTime } from './virtual-time.js';

/** Twice as many tasks as node ids: one half holds them, the other half waits. */
export interface Surplus {
  readonly contestant: ContestantName;
  /** Tasks that wait, and node ids. */
  readonly waiting: number;
  /** Requests of one waiting task in the time of a lease's duration, while nothing is free; the mean, and the most. */
  readonly perDuration: number;
  readonly mostPerDuration: number;
  /** From when one task begins to release its id until another one has the id, in milliseconds. */
  readonly afterReleaseMs: number;
  /** From the last renewal of a task that crashes until another one has the id, in milliseconds. */
  readonly afterCrashMs: number;
  /** The same where all who hold ids crash at once: of the last of them. */
  readonly afterCrashOfAllMs: number;
}

export interface SurplusOptions {
  readonly contestant: ContestantName;
  readonly waiting: number;
  readonly seed: number;
}

/** Durations until those who wait have settled down, and for how many of them their requests are counted then. */
const SETTLING = 2;
const COUNTED = 4;
/** Milliseconds of virtual time. */
const LONGEST_MS = 3_600_000;

/** Measures those who wait, in virtual time, on a store in memory that is as far away as S3. */
export function memorySurplus(options: SurplusOptions): Promise<Surplus> {
  const time = new VirtualTime();
  return time.run(new Fleet(options, time).measure(), LONGEST_MS);
}

/** A task that has its id. */
interface Holder {
  readonly lease: Lease;
  readonly store: ShapedStore;
  /** On the monotonic clock. */
  readonly since: number;
}

class Fleet {
  readonly #stores: readonly ShapedStore[];
  readonly #dice: Dice;
  /** In the order in which they got their ids. */
  readonly #holders: Holder[] = [];
  /** Told of the next holder of an id. */
  readonly #awaited = new Map<number, (holder: Holder) => void>();
  #onHolder: () => void = () => undefined;

  constructor(
    private readonly options: SurplusOptions,
    private readonly time: VirtualTime,
  ) {
    const { contestant, waiting, seed } = options;
    this.#dice = new Dice(seed);
    const bucket = new MemoryBucket(time, 1_000);
    const { form, remote } = CONTESTANTS[contestant];
    setUp({ shape: CLUSTERS.initialised, form, starters: waiting, durationMs: DURATION_MS, bucket, time, dice: this.#dice });
    this.#stores = Array.from(
      { length: 2 * waiting },
      (_, task) => new ShapedStore({ bucket, clock: time, random: this.#dice.fork(1, task), remote }),
    );
  }

  async measure(): Promise<Surplus> {
    const { contestant, waiting } = this.options;
    const failed = Promise.race(this.#stores.map((store, task) => this.#start(store, task)));
    const measured = this.#measure();
    await Promise.race([failed, measured]);
    return { contestant, waiting, ...(await measured) };
  }

  async #measure(): Promise<Omit<Surplus, 'contestant' | 'waiting'>> {
    const { waiting } = this.options;
    await this.#until(waiting);
    checkDistinct(this.#holders.map(({ lease }) => lease.id));
    const perDuration = await this.#countRequests();
    const originals = this.#holders.slice(0, waiting);
    const [one, other, ...others] = originals as [Holder, Holder, ...Holder[]];
    return {
      perDuration: perDuration.reduce((a, b) => a + b, 0) / perDuration.length,
      mostPerDuration: Math.max(...perDuration),
      afterReleaseMs: await this.#afterRelease(one),
      afterCrashMs: await this.#afterCrash([other]),
      afterCrashOfAllMs: await this.#afterCrash(others),
    };
  }

  /** Never resolves: a task holds its id until the end. */
  async #start(store: ShapedStore, task: number): Promise<never> {
    const { contestant, waiting } = this.options;
    const chance = { clock: this.time, random: this.#dice.fork(2, task) };
    const lease = await CONTESTANTS[contestant].acquire({
      ...chance,
      store,
      nodes: waiting,
      durationMs: DURATION_MS,
      taskId: `task-${task}`,
    });
    const holder = { lease, store, since: this.time.monotonic() };
    this.#holders.push(holder);
    this.#onHolder();
    this.#awaited.get(lease.id)?.(holder);
    return new Promise(() => undefined);
  }

  /** Until so many have got an id. */
  #until(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#onHolder = () => {
        if (this.#holders.length >= count) resolve();
      };
      this.#onHolder();
    });
  }

  /** Of each that waits, in the time of a duration. */
  async #countRequests(): Promise<readonly number[]> {
    await this.time.sleep(SETTLING * DURATION_MS);
    const holding = new Set(this.#holders.map(({ store }) => store));
    const waiting = this.#stores.filter((store) => !holding.has(store));
    const before = waiting.map((store) => total(store.requests));
    await this.time.sleep(COUNTED * DURATION_MS);
    if (this.#holders.length > holding.size) throw new Error('an id was taken although all are held');
    return waiting.map((store, index) => (total(store.requests) - (before[index] as number)) / COUNTED);
  }

  async #afterRelease({ lease }: Holder): Promise<number> {
    const begun = this.time.monotonic();
    const taken = this.#successorOf(lease);
    await lease.release();
    return (await taken).since - begun;
  }

  async #afterCrash(holders: readonly Holder[]): Promise<number> {
    // Not while a renewal is under way, that may have reached the store already.
    for (const { store } of holders) store.crash();
    const renewed = holders.map(({ lease }) => lease.deadline - DURATION_MS);
    const taken = await Promise.all(holders.map(async ({ lease }) => (await this.#successorOf(lease)).since));
    return Math.max(...taken.map((since, index) => since - (renewed[index] as number)));
  }

  /** The next one who gets the id. */
  #successorOf({ id }: Lease): Promise<Holder> {
    return new Promise((resolve) => this.#awaited.set(id, resolve));
  }
}
