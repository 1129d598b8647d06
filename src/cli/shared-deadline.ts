const MICROS = 1_000;

/**
 * Until when a lease is valid, in memory that two threads have: the one that renews writes it, and the other one finds it there without having
 * to receive a message. All threads of a process see the same monotonic clock.
 */
export class SharedDeadline {
  readonly #cell: BigInt64Array;

  /** @param memory that of the other thread's. @default new memory, of a deadline that has passed */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)) {
    this.#cell = new BigInt64Array(memory);
  }

  /** In milliseconds on the monotonic clock, never later than what was set. */
  get value(): number {
    return Number(Atomics.load(this.#cell, 0)) / MICROS;
  }

  /** @param deadline a finite number */
  set(deadline: number): void {
    Atomics.store(this.#cell, 0, BigInt(Math.floor(deadline * MICROS)));
  }
}
