import type { Writable } from 'node:stream';
import type { Clock } from '../../../core/base/clock.js';

/** Listeners to the end of a {@link StandardOutput}. One of them is called, once. */
interface OutputEnds {
  /** The reader has gone, as `head` does, and the command does not use `taken()`: it has to be stopped. */
  readerGone(): void;
  /** The answer cannot be written, as on a disk that is full. */
  failed(error: Error): void;
}

/** The standard output of a command. */
export class StandardOutput {
  #last = Promise.resolve(true);
  #isOpen = false;
  #isAsked = false;
  #hasEnded = false;
  /** True once a part of the answer could not be written, although there is a reader. */
  hasFailed = false;

  /**
   * @param stream opened by the first answer, and not before: node makes a pipe non-blocking when it opens
   * it, and `run` leaves it to its child
   */
  constructor(
    private readonly stream: () => Pick<Writable, 'write' | 'on'>,
    private readonly clock: Pick<Clock, 'sleep'>,
    private readonly ends: OutputEnds,
  ) {}

  write(text: string | Uint8Array): void {
    const stream = this.stream();
    // The callback of each write gets the error first.
    if (!this.#isOpen) stream.on('error', () => undefined);
    this.#isOpen = true;
    this.#last = new Promise((resolve) =>
      stream.write(text, (error) => {
        if (error) this.#end(error);
        resolve(!error);
      }),
    );
  }

  /** As `Io.taken`. A command that calls it learns that the reader has gone, and ends by itself. */
  async taken(): Promise<boolean> {
    this.#isAsked = true;
    const isRead = await this.#last;
    // With a fast reader, nothing else would have a turn.
    await this.clock.sleep(0);
    return isRead;
  }

  /** Resolves when the answer has been taken as a whole, or cannot be. */
  async written(): Promise<void> {
    await this.#last;
  }

  #end(error: Error & { readonly code?: string }): void {
    // Later errors only repeat that there was one.
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (error.code === 'EPIPE' || error.code === 'ECONNRESET') {
      if (!this.#isAsked) this.ends.readerGone();
      return;
    }
    this.hasFailed = true;
    this.ends.failed(error);
  }
}
