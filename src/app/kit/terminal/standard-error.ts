import { Writable } from 'node:stream';
import type { Clock } from '../../../core/base/clock.js';
import { codeOf } from '../../../core/base/files.js';
import type { NonBlockingWrite } from './non-blocking-write.js';

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
    private readonly clock: Pick<Clock, 'monotonic' | 'sleep'>,
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

  #reportLost(): void {
    if (this.#lost === 0 || this.#stream.writableLength > 0) return;
    const lines = this.#lost;
    this.#lost = 0;
    this.onLost(lines);
  }
}
