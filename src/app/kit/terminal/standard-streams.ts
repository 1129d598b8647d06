import { Writable } from 'node:stream';
import type { Clock } from '../../../core/base/clock.js';
import { codeOf } from '../../../core/base/files.js';
import type { NonBlockingWrite } from './non-blocking-write.js';

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
    private readonly clock: Clock,
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

  #end(error: Error & { readonly code?: string }) {
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

/** What waits for the reader, in bytes: some thousand lines. */
const BUFFER_BYTES = 1 << 20;
/** From one attempt to the next while there is no room, in milliseconds. */
const PAUSE_MS = { min: 20, max: 250 };

/**
 * The standard error of a command: logs and complaints. No call waits for the reader, since a lease depends on
 * the caller. While the reader takes them, lines are written before the call returns. A line is lost if it
 * does not fit into the buffer, or if it cannot be written at all: no program reads any more, the disk is full.
 */
export class StandardError {
  readonly #stream: Writable;
  #lost = 0;

  /**
   * @param open called before the first line
   * @param onLost gets how many lines did not fit, once the reader has taken the ones before them
   */
  constructor(
    open: () => NonBlockingWrite,
    private readonly clock: Clock,
    private readonly onLost: (lines: number) => void,
  ) {
    let write: NonBlockingWrite | undefined;
    const attempt = (rest: Uint8Array, pauseMs: number, done: () => void): void => {
      let left = rest;
      try {
        write ??= open();
        while (left.length > 0) left = left.subarray(write(left));
      } catch (error) {
        if (codeOf(error) === 'EAGAIN') {
          const waitMs = left.length < rest.length ? PAUSE_MS.min : pauseMs;
          const nextMs = Math.min(2 * waitMs, PAUSE_MS.max);
          void clock.sleep(waitMs).then(() => attempt(left, nextMs, done));
          return;
        }
      }
      done();
    };
    this.#stream = new Writable({
      write: (bytes: Uint8Array, _, done) => attempt(bytes, PAUSE_MS.min, done),
    });
  }

  write(text: string): void {
    const bytes = Buffer.from(text);
    const { writableLength: waiting } = this.#stream;
    if (this.#lost > 0 || (waiting > 0 && waiting + bytes.length > BUFFER_BYTES)) this.#lost += 1;
    else this.#stream.write(bytes, () => this.#reportLost());
  }

  /** Resolves when the reader has taken everything, or after `timeoutMs` milliseconds. */
  async taken(timeoutMs: number): Promise<void> {
    const until = this.clock.monotonic() + timeoutMs;
    while (this.#stream.writableLength > 0 && this.clock.monotonic() < until)
      await this.clock.sleep(PAUSE_MS.min);
  }

  #reportLost() {
    if (this.#lost === 0 || this.#stream.writableLength > 0) return;
    const lines = this.#lost;
    this.#lost = 0;
    this.onLost(lines);
  }
}
