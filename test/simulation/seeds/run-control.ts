const LIMIT = 0;
const STOPPED = 1;

/**
 * How far the threads of one run are to go, in memory that they share: a thread that simulates does not come
 * to read a message before it has carried out its whole order.
 */
export class RunControl {
  readonly #cells: Int32Array;

  /** @param memory that of the thread which made it; without it, a new one: no limit, not stopped */
  constructor(readonly memory: SharedArrayBuffer = unlimited()) {
    this.#cells = new Int32Array(memory);
  }

  /** True when somebody wants an end of everything, shrinking included. */
  get stopped(): boolean {
    return Atomics.load(this.#cells, STOPPED) === 1;
  }

  stop(): void {
    Atomics.store(this.#cells, STOPPED, 1);
  }

  /** Whether the seed of this place, counted from the first one of the run, is still of interest. */
  wants(place: number): boolean {
    return !this.stopped && place < Atomics.load(this.#cells, LIMIT);
  }

  /**
   * From this place on, no seed is of interest: one before it has been found to fail, or time is up. Limits
   * only ever fall.
   */
  limitTo(place: number): void {
    for (let limit = Atomics.load(this.#cells, LIMIT); place < limit; ) {
      const found = Atomics.compareExchange(this.#cells, LIMIT, limit, place);
      if (found === limit) return;
      limit = found;
    }
  }
}

function unlimited(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(8);
  new Int32Array(memory)[LIMIT] = 2 ** 31 - 1;
  return memory;
}

const SEED = 0;
const RUNS = 1;

/** What one thread is at, so that it can be reported when the thread dies. */
export class Pulse {
  readonly #cells: Uint32Array;

  /** @param memory that of the thread which made it; without it, a new one */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(8)) {
    this.#cells = new Uint32Array(memory);
  }

  /** The seed that is being simulated, or was last. */
  get seed(): number {
    return Atomics.load(this.#cells, SEED);
  }

  /** Simulations begun so far, modulo 2^32. */
  get runs(): number {
    return Atomics.load(this.#cells, RUNS);
  }

  beat(seed: number): void {
    Atomics.store(this.#cells, SEED, seed);
    Atomics.add(this.#cells, RUNS, 1);
  }
}
