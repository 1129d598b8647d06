import type { Socket } from 'node:net';

/** So few that they take some milliseconds at the most. */
const PER_TURN = 32;

/**
 * Takes in only so many requests before everything else in this thread has had its turn: then no connection is read from until the next one.
 *
 * What one connection has sent by then is taken in as a whole, for Node's parser cannot be stopped within what it has been given, 64 KiB: that may
 * be more than a thousand requests. Without a bound, as many connections as there are would have theirs parsed in one turn.
 */
export class Intake {
  #count = 0;
  #paused: Socket[] = [];

  constructor(
    /** All connections that there are. */
    private readonly connections: () => Iterable<Socket>,
    /** Resolves when everything else in this thread has had its turn. */
    private readonly turn: () => Promise<void>,
    private readonly perTurn = PER_TURN,
  ) {}

  /** A request has come. */
  note(): void {
    this.#count += 1;
    if (this.#count === 1) void this.#watch();
    if (this.#count === this.perTurn) this.#pause();
  }

  #pause(): void {
    for (const socket of this.connections()) {
      // One that is paused already is so for another reason, and goes on when that is over.
      if (socket.isPaused()) continue;
      socket.pause();
      this.#paused.push(socket);
    }
  }

  async #watch(): Promise<void> {
    await this.turn();
    this.#count = 0;
    const paused = this.#paused;
    this.#paused = [];
    // One that Node itself holds back meanwhile, for its answers are not taken, is held back by it again.
    for (const socket of paused) if (!socket.destroyed) socket.resume();
  }
}
