import type { Writable } from 'node:stream';
import type { Clock } from '../clock.js';

/** Whom a {@link StandardOutput} tells of its end: once, however much is written to no effect. */
export interface OutputEnds {
  /** The reader has gone, as `head` does when it has read enough, and the command does not ask whether somebody reads: it has to be stopped. */
  readerGone(): void;
  /** The answer cannot be written, as on a disk that is full. */
  failed(error: Error): void;
}

/** The standard output of a command: what becomes of its answer, and who is told when nobody takes it. */
export class StandardOutput {
  #last = Promise.resolve(true);
  #isOpen = false;
  #isAsked = false;
  #hasEnded = false;
  #hasFailed = false;

  /**
   * @param stream opened by the first answer, and not before: node makes a pipe non-blocking when it opens it, and `run` leaves it to its child
   */
  constructor(
    private readonly stream: () => Pick<Writable, 'write' | 'on'>,
    private readonly clock: Pick<Clock, 'sleep'>,
    private readonly ends: OutputEnds,
  ) {}

  /** True once a part of the answer could not be written, for another reason than that nobody reads any more. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  write(text: string): void {
    const stream = this.stream();
    // It tells every write first, and that is enough.
    if (!this.#isOpen) stream.on('error', () => undefined);
    this.#isOpen = true;
    this.#last = new Promise((resolve) =>
      stream.write(text, (error) => {
        if (error) this.#end(error);
        resolve(!error);
      }),
    );
  }

  /** As `Io.taken`. Whoever asks learns from it that the reader has gone, and ends by itself. */
  async taken(): Promise<boolean> {
    this.#isAsked = true;
    const isRead = await this.#last;
    // A reader that is fast enough would leave no time for anything else.
    await this.clock.sleep(0);
    return isRead;
  }

  /** Resolves when the answer has been taken as a whole, or cannot be. */
  async written(): Promise<void> {
    await this.#last;
  }

  #end(error: Error & { readonly code?: string }): void {
    // What follows the first one only says that there was one.
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (error.code === 'EPIPE' || error.code === 'ECONNRESET') {
      if (!this.#isAsked) this.ends.readerGone();
      return;
    }
    this.#hasFailed = true;
    this.ends.failed(error);
  }
}
