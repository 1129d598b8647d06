/** A client that has more than this to take is not taking it, in bytes. */
const MOST_BYTES = 4 * 1024 * 1024;
/** How much is handed on at once, about, in bytes. */
const PIECE_BYTES = 64 * 1024;

/**
 * What one client is still to be sent. Bounded: a client that does not take it is let go, and may come back. The messages themselves are
 * shared by all clients.
 */
export class EventQueue {
  readonly stream: ReadableStream<Uint8Array>;
  #messages: Uint8Array[] = [];
  #bytes = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  /** @param onEnd called once, when nothing more can be sent: the client has gone, or was let go */
  constructor(private readonly onEnd: () => void) {
    this.stream = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (this.#messages.length === 0 && !this.#isOver) await new Promise<void>((resolve) => (this.#wake = resolve));
          if (this.#messages.length > 0) controller.enqueue(this.#take());
          else controller.close();
        },
        cancel: () => this.end(),
      },
      { highWaterMark: 0 },
    );
  }

  /** Sends a message as soon as the client takes it. */
  push(message: Uint8Array): void {
    if (this.#isOver) return;
    // What comes first may be everything there is, which is not cut short for being much.
    const isTaken = this.#bytes - (this.#messages[0]?.length ?? 0) <= MOST_BYTES;
    if (!isTaken) {
      this.end();
      return;
    }
    this.#messages.push(message);
    this.#bytes += message.length;
    this.#wake?.();
  }

  /** Sends nothing more. Idempotent. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#messages = [];
    this.#bytes = 0;
    this.#wake?.();
    this.onEnd();
  }

  #take(): Uint8Array {
    let size = 0;
    let count = 0;
    for (const { length } of this.#messages) {
      if (count > 0 && size + length > PIECE_BYTES) break;
      size += length;
      count += 1;
    }
    const taken = this.#messages.splice(0, count);
    this.#bytes -= size;
    return taken.length === 1 && taken[0] ? taken[0] : Buffer.concat(taken, size);
  }
}
