/** A machine's clocks, all wrong in their own way. Times in milliseconds, true time counted from 0. */
export class Machine {
  #wallOffset: number;

  constructor(
    /** Wall clock at true time 0, since the Unix epoch. */
    wallStart: number,
    /** How much faster than true time the wall clock runs, as a share: 0.0005 is 500 ppm. */
    private readonly wallDrift: number,
    /** The monotonic clock at true time 0. */
    private readonly monotonicStart: number,
    /** The same for the monotonic clock. */
    private readonly monotonicDrift: number,
  ) {
    this.#wallOffset = wallStart;
  }

  wallAt(trueTime: number): number {
    return this.#wallOffset + trueTime * (1 + this.wallDrift);
  }

  monotonicAt(trueTime: number): number {
    return this.monotonicStart + trueTime * (1 + this.monotonicDrift);
  }

  /** How long a span of the monotonic clock is in truth. */
  trueMs(ms: number): number {
    return ms / (1 + this.monotonicDrift);
  }

  /** Somebody, or NTP, sets the wall clock. */
  stepWall(byMs: number): void {
    this.#wallOffset += byMs;
  }
}
