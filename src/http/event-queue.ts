/** A client that has more than this to take is not taking it, in bytes. */
const MOST_BYTES = 4 * 1024 * 1024;
/** How much is handed on at once at the most, in bytes. */
const PIECE_BYTES = 64 * 1024;

interface Entry {
  readonly message: Uint8Array;
  /** Whether it is part of everything there is, which is not cut short for being much. */
  readonly isBeginning: boolean;
}

/**
 * What one client is still to be sent. Bounded: a client that does not take it is let go, and may come back. The messages themselves are
 * shared by all clients, and handed on in pieces, so that what a client has not taken stays here, where it counts.
 */
export class EventQueue {
  readonly stream: ReadableStream<Uint8Array>;
  #entries: Entry[] = [];
  /** How much of the first one has been taken. */
  #offset = 0;
  /** What is still to be taken, but for beginnings. */
  #bytes = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  /** @param onEnd called once, when nothing more can be sent: the client has gone, or was let go */
  constructor(private readonly onEnd: () => void) {
    this.stream = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (this.#entries.length === 0 && !this.#isOver) await new Promise<void>((resolve) => (this.#wake = resolve));
          if (this.#entries.length > 0) controller.enqueue(this.#take());
          else controller.close();
        },
        cancel: () => this.end(),
      },
      { highWaterMark: 0 },
    );
  }

  /** What has not been taken of the message that tells everything there is. */
  get beginning(): readonly Uint8Array[] {
    return this.#entries.flatMap(({ message, isBeginning }) => (isBeginning ? [message] : []));
  }

  /** Sends a message, in parts, that tells everything there is: nobody need be told any more what came before. To be called before a client has one. */
  begin(parts: readonly Uint8Array[]): void {
    if (this.#isOver) return;
    // One that has been taken in part must be taken to its end.
    const begun = this.#offset > 0 ? this.#entries.slice(0, 1) : [];
    this.#entries = [...begun, ...parts.map((message) => ({ message, isBeginning: true }))];
    this.#bytes = this.#restOfFirst();
    this.#wake?.();
  }

  /** Sends a message as soon as the client takes it. */
  push(message: Uint8Array): void {
    if (this.#isOver) return;
    // One alone may be as long as it has to be.
    if (this.#bytes - this.#restOfFirst() > MOST_BYTES) {
      this.end();
      return;
    }
    this.#entries.push({ message, isBeginning: false });
    this.#bytes += message.length;
    this.#wake?.();
  }

  /** Sends nothing more. Idempotent. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#entries = [];
    this.#bytes = 0;
    this.#wake?.();
    this.onEnd();
  }

  /** How much of the first one is still to be taken; 0 where that is a beginning. */
  #restOfFirst(): number {
    const [first] = this.#entries;
    return first === undefined || first.isBeginning ? 0 : first.message.length - this.#offset;
  }

  #take(): Uint8Array {
    const pieces: Uint8Array[] = [];
    let room = PIECE_BYTES;
    while (room > 0 && this.#entries[0]) {
      const { message, isBeginning } = this.#entries[0];
      const piece = message.subarray(this.#offset, this.#offset + room);
      pieces.push(piece);
      room -= piece.length;
      this.#offset += piece.length;
      if (!isBeginning) this.#bytes -= piece.length;
      if (this.#offset < message.length) break;
      this.#entries.shift();
      this.#offset = 0;
    }
    return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
  }
}
