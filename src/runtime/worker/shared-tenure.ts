import type { TenureTime } from '../../lease/hold/tenure-time.js';
import { DRIFT } from '../../lease/session/store-time.js';

/** What the keeper's thread lets the main one know of a tenure. */
export interface TenureFacts {
  /** On the monotonic clock, in milliseconds; 0 once the lease is not held any more. */
  readonly deadline: number;
  /** See {@link TenureTime}. */
  readonly time: Pick<TenureTime, 'after' | 'before' | 'now'>;
}

/** What each of the numbers is: the stamps in whole milliseconds since the Unix epoch, the others in microseconds. */
const Cell = { deadline: 0, after: 1, before: 2, learnedAt: 3, storeOffset: 4, stampedUntil: 5 } as const;
const CELLS = 6;
const MICROS = 1_000;

/**
 * The part of a tenure that a thread has to know while it is blocked, or is not heard by the other one: in memory that both of them have.
 * All threads of a process see the same monotonic clock.
 *
 * Each number has one thread that writes it: what the main thread stamped its ids with is the main thread's, the others are the keeper's.
 */
export class SharedTenure {
  readonly #cells: BigInt64Array;

  /** @param memory that of the other thread's. @default new memory */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.#cells = new BigInt64Array(memory);
  }

  /** On the monotonic clock, in milliseconds; 0 when the lease is not held. */
  get deadline(): number {
    return this.#load(Cell.deadline) / MICROS;
  }

  get after(): number {
    return this.#load(Cell.after);
  }

  get before(): number {
    return this.#load(Cell.before);
  }

  /** The last millisecond that the main thread stamped an id with; 0 for none. */
  get stampedUntil(): number {
    return this.#load(Cell.stampedUntil);
  }

  /**
   * Store time at the least, as of what was published last.
   *
   * @param monotonic now, on the monotonic clock
   */
  storeNow(monotonic: number): number {
    // In this order, the reverse of the other thread's: a new offset with an older time is a lower bound, the other way round it is not.
    const learnedAt = this.#load(Cell.learnedAt) / MICROS;
    const offset = this.#load(Cell.storeOffset) / MICROS;
    return monotonic + offset - Math.max(0, monotonic - learnedAt) * DRIFT;
  }

  /**
   * For the keeper's thread.
   *
   * @param monotonic now, on the monotonic clock
   */
  publish({ deadline, time }: TenureFacts, monotonic: number): void {
    this.#store(Cell.after, time.after);
    this.#store(Cell.before, time.before());
    this.#store(Cell.storeOffset, (time.now() - monotonic) * MICROS);
    this.#store(Cell.learnedAt, monotonic * MICROS);
    this.#store(Cell.deadline, deadline * MICROS);
  }

  /** For the keeper's thread: the lease is not held any more. */
  end(): void {
    this.#store(Cell.deadline, 0);
  }

  /** For the main thread. */
  stamp(untilMs: number): void {
    if (untilMs > this.stampedUntil) this.#store(Cell.stampedUntil, untilMs);
  }

  #load(cell: number): number {
    return Number(Atomics.load(this.#cells, cell));
  }

  #store(cell: number, value: number): void {
    Atomics.store(this.#cells, cell, BigInt(Math.floor(value)));
  }
}
