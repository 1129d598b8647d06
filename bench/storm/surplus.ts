import type { Lease } from '../../src/core/lease/model/lease.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { Dice } from '../../test/simulation/world/dice.js';
import { CLUSTERS, setUp } from './clusters.js';
import { CONTESTANTS, type ContestantName } from './contestants.js';
import { total } from './request-count.js';
import { ShapedStore } from './shaped-store.js';
import { checkDistinct, DURATION_MS } from './storm.js';
import { VirtualTime } from './virtual-time.js';

/** From an event until a waiting task has the id, in milliseconds, over several such events. */
export interface Delay {
  readonly medianMs: number;
  readonly maxMs: number;
}

/** More tasks than node ids: all ids are held, the other tasks wait. */
export interface Surplus {
  readonly contestant: ContestantName;
  /** How many tasks wait. */
  readonly waiting: number;
  /**
   * Requests of one waiting task in the time of a lease's duration, while nothing is free; the mean, and the
   * most.
   */
  readonly perDuration: number;
  readonly mostPerDuration: number;
  /** From when a task begins to release its id. */
  readonly afterRelease: Delay;
  /** From the last renewal of a task that crashes. */
  readonly afterCrash: Delay;
  /** The same where many tasks crash at once: as many as wait, or all. */
  readonly afterCrashOfAll: Delay;
}

export interface SurplusOptions {
  readonly contestant: ContestantName;
  readonly waiting: number;
  readonly seed: number;
  /** How many releases and how many crashes are measured, one after the other. @default 9 */
  readonly rounds?: number;
}

/** How many node ids there are: a listing of one page. */
const NODE_IDS = 20;
/**
 * Durations until the pauses of the waiting tasks are as long as they get, and for how many of them requests
 * are counted then.
 */
const SETTLING = 2;
const COUNTED = 4;
/** Milliseconds of virtual time. */
const LONGEST_MS = 3_600_000;

/** Measures waiting tasks, in virtual time, on a store in memory that is as far away as S3. */
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
  readonly #bucket: MemoryBucket;
  readonly #stores: ShapedStore[] = [];
  readonly #dice: Dice;
  /** In the order in which they got their ids. */
  readonly #holders: Holder[] = [];
  /** Called with the next holder of an id. */
  readonly #awaited = new Map<number, (holder: Holder) => void>();
  #onHolder: () => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;

  constructor(
    private readonly options: SurplusOptions,
    private readonly time: VirtualTime,
  ) {
    const { contestant, seed } = options;
    this.#dice = new Dice(seed);
    this.#bucket = new MemoryBucket(time, 1_000);
    const { form } = CONTESTANTS[contestant];
    const cluster = { shape: CLUSTERS.initialised, form, starters: NODE_IDS, durationMs: DURATION_MS };
    setUp({ ...cluster, bucket: this.#bucket, time, dice: this.#dice });
  }

  async measure(): Promise<Surplus> {
    const { contestant, waiting } = this.options;
    const failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    return { contestant, waiting, ...(await Promise.race([failed, this.#measure()])) };
  }

  async #measure(): Promise<Omit<Surplus, 'contestant' | 'waiting'>> {
    const { waiting, rounds = 9 } = this.options;
    for (let task = 0; task < NODE_IDS; task += 1) this.#start();
    await this.#until(NODE_IDS);
    checkDistinct(this.#holders.map(({ lease }) => lease.id));
    for (let task = 0; task < waiting; task += 1) this.#start();
    const perDuration = await this.#countRequests();
    const releases: number[] = [];
    const crashes: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      releases.push(await this.#afterRelease());
      await this.#refill(1);
      crashes.push(...(await this.#afterCrash(1)));
      await this.#refill(1);
    }
    return {
      perDuration: perDuration.reduce((a, b) => a + b, 0) / perDuration.length,
      mostPerDuration: Math.max(...perDuration),
      afterRelease: delay(releases),
      afterCrash: delay(crashes),
      afterCrashOfAll: delay(await this.#afterCrash(Math.min(waiting, NODE_IDS))),
    };
  }

  /** Starts a task, which holds its id until the end. */
  #start(): void {
    const { contestant } = this.options;
    const task = this.#stores.length;
    const { remote, acquire } = CONTESTANTS[contestant];
    const store = new ShapedStore({
      bucket: this.#bucket,
      clock: this.time,
      random: this.#dice.fork(1, task),
      remote,
    });
    this.#stores.push(store);
    const chance = { clock: this.time, random: this.#dice.fork(2, task) };
    acquire({ ...chance, store, nodes: NODE_IDS, durationMs: DURATION_MS, taskId: `task-${task}` }).then(
      (lease) => {
        const holder = { lease, store, since: this.time.monotonic() };
        this.#holders.push(holder);
        this.#onHolder();
        this.#awaited.get(lease.id)?.(holder);
      },
      this.#fail,
    );
  }

  /** Lets as many tasks wait as before, until their pauses are as long as they get. */
  async #refill(count: number): Promise<void> {
    for (let task = 0; task < count; task += 1) this.#start();
    await this.time.sleep((SETTLING + this.#dice.next()) * DURATION_MS);
  }

  /** The holders of ids, the longest first. */
  #holding(): readonly Holder[] {
    const latest = new Map(this.#holders.map((holder) => [holder.lease.id, holder]));
    return this.#holders.filter((holder) => latest.get(holder.lease.id) === holder);
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

  async #afterRelease(): Promise<number> {
    const [{ lease }] = this.#holding() as [Holder];
    const begun = this.time.monotonic();
    const taken = this.#successorOf(lease);
    await lease.release();
    return (await taken).since - begun;
  }

  /** Of each of so many that crash at once. */
  async #afterCrash(count: number): Promise<readonly number[]> {
    const holders = this.#holding().slice(0, count);
    for (const { store } of holders) store.crash();
    const renewed = holders.map(({ lease }) => lease.deadline - DURATION_MS);
    const taken = await Promise.all(holders.map(async ({ lease }) => (await this.#successorOf(lease)).since));
    return taken.map((since, index) => since - (renewed[index] as number));
  }

  /** The next holder of the id. */
  #successorOf({ id }: Lease): Promise<Holder> {
    return new Promise((resolve) => this.#awaited.set(id, resolve));
  }
}

function delay(times: readonly number[]): Delay {
  const sorted = [...times].sort((a, b) => a - b);
  return {
    medianMs: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN,
    maxMs: sorted.at(-1) ?? Number.NaN,
  };
}
