import { orAborted } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import { shareAnswer } from '../../../core/base/share-answer.js';
import { type TenureTime, TenureWidth, type WidthListener } from '../../../core/lease/hold/tenure-time.js';
import { DRIFT } from '../../../core/lease/session/store-time.js';
import type { ToWorker } from './messages.js';

/**
 * The index of each number. Id timestamps are whole milliseconds since the Unix epoch, the others
 * microseconds.
 */
const Cell = { deadline: 0, after: 1, before: 2, learnedAt: 3, storeOffset: 4, stampedUntil: 5 } as const;
const CELLS = 6;
const MICROS = 1_000;

/**
 * The part of a tenure that a thread must know while it is blocked, or while the other thread is. It is in
 * shared memory. All threads of a process see the same monotonic clock.
 *
 * Each number has one writing thread: the main thread writes its last id timestamp, the keeper's thread the
 * others.
 */
export class SharedTenure {
  readonly #cells: BigInt64Array;

  /** @param memory the memory of the other thread. @default new memory */
  constructor(
    readonly memory: SharedArrayBuffer = new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT),
  ) {
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

  /** The last id timestamp of the main thread; 0 for none. */
  get stampedUntil(): number {
    return this.#load(Cell.stampedUntil);
  }

  /**
   * The lower bound of store time, from the last publication. @param monotonic now, on the monotonic clock
   */
  storeNow(monotonic: number): number {
    // The order is the reverse of the other thread's. A new offset with an older time is a lower bound. An
    // old offset with a newer time is not.
    const learnedAt = this.#load(Cell.learnedAt) / MICROS;
    const offset = this.#load(Cell.storeOffset) / MICROS;
    return monotonic + offset - Math.max(0, monotonic - learnedAt) * DRIFT;
  }

  /**
   * For the keeper's thread. Both times are on the monotonic clock, in milliseconds: the deadline, and
   * `monotonic`, which is now.
   */
  publish(deadline: number, time: Pick<TenureTime, 'after' | 'before' | 'now'>, monotonic: number): void {
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

  #store(cell: number, value: number) {
    Atomics.store(this.#cells, cell, BigInt(Math.floor(value)));
  }
}

interface WorkerTenureTimeOptions {
  readonly clock: Clock;
  readonly shared: SharedTenure;
  /** The width in the acquiring write, which other tasks can read. */
  readonly idWidth: number;
  /** Throws when the tenure has ended. */
  readonly check: () => void;
  /** Sends to the keeper's thread. */
  readonly send: (message: ToWorker) => void;
}

/**
 * The id time window of a tenure whose lease is renewed in another thread. All that a generator reads while
 * it makes ids is in shared memory. So a thread that does nothing else for minutes has the bounds of the
 * latest renewal.
 */
export class WorkerTenureTime implements TenureTime {
  readonly clock: Clock;
  readonly #ending = new AbortController();
  readonly signal: AbortSignal = this.#ending.signal;
  readonly #width: TenureWidth;
  /**
   * Asks the keeper's thread, once for all callers until it fails. All callers may have given up by the time of
   * a failure; the next one asks again.
   */
  readonly #askToPrepare = shareAnswer(
    () =>
      new Promise<void>((resolve, reject) => {
        this.#answer = (error) => (error === undefined ? resolve() : reject(error));
        this.options.send({ type: 'prepare' });
      }),
  );
  #answer: (error?: unknown) => void = () => undefined;

  constructor(private readonly options: WorkerTenureTimeOptions) {
    this.clock = options.clock;
    this.#width = new TenureWidth(options.idWidth, (idWidth) => options.send({ type: 'adopted', idWidth }));
  }

  get idWidth(): number {
    return this.#width.value;
  }

  get after(): number {
    return this.options.shared.after;
  }

  async prepare(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.check();
    await orAborted(this.#askToPrepare(), signal);
    this.check();
  }

  onWidth(listener: WidthListener): () => void {
    return this.#width.onWidth(listener);
  }

  now(): number {
    return this.options.shared.storeNow(this.clock.monotonic());
  }

  before(): number {
    return this.options.shared.before;
  }

  stamp(untilMs: number): void {
    this.options.shared.stamp(untilMs);
  }

  check(): void {
    this.options.check();
  }

  /** The thread has learned how many bits ids must have for the node id. */
  widen(idWidth: number): void {
    this.#width.widen(idWidth);
  }

  /** The thread has ensured that ids may be made, or has failed: then the next call tries again. */
  prepared(error?: unknown): void {
    this.#answer(error);
  }

  /** The tenure has ended: no answer will come. */
  end(reason: unknown): void {
    this.#ending.abort(reason);
    this.#answer(reason);
  }
}
