/** So few that they take some milliseconds, where each is an answer of the usual size, and so many that the turns themselves cost little beside them. */
const PER_TURN = 16;

/**
 * Lets only so much be done before everything else in this thread has had its turn. However many requests there are, a renewal of the lease,
 * which takes several turns of the event loop, waits for a few of them only at each.
 *
 * What has to wait is done in its order. Nothing is bounded here: whoever hands in tasks bounds them.
 */
export class FairShare {
  readonly #waiting: (() => void)[] = [];
  #left: number;
  #isWatching = false;

  constructor(
    /** Resolves when everything else in this thread has had its turn. */
    private readonly turn: () => Promise<void>,
    private readonly perTurn = PER_TURN,
  ) {
    this.#left = perTurn;
  }

  /** Does it now, or in one of the next turns. It must not throw. */
  run(task: () => void): void {
    if (this.#left > 0) {
      this.#left -= 1;
      task();
    } else {
      this.#waiting.push(task);
    }
    if (!this.#isWatching) void this.#watch();
  }

  async #watch(): Promise<void> {
    this.#isWatching = true;
    do {
      await this.turn();
      this.#left = this.perTurn;
      while (this.#left > 0 && this.#waiting.length > 0) {
        this.#left -= 1;
        this.#waiting.shift()?.();
      }
    } while (this.#waiting.length > 0);
    this.#isWatching = false;
  }
}
