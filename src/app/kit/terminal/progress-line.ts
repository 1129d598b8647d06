import type { Io } from '../io.js';
import { formatDuration } from './text.js';

/** How much of the work is done. */
interface Progress {
  readonly done: number;
  readonly of: number;
}

/** Shorter work is not shown, in milliseconds. */
const FIRST_MS = 500;
/** From one drawing to the next, in milliseconds: on a terminal, and in a log. */
const EVERY_MS = { terminal: 100, log: 5_000 };
const BAR = 16;
const COLUMNS = 80;

/**
 * The progress of long work, on standard error: on a terminal one line that is redrawn, and removed at the
 * end; in a log a line every five seconds.
 */
export class ProgressLine {
  readonly #isTerminal: boolean;
  #drawn = 0;
  /** The first progress of this work, and when that was, on the monotonic clock. */
  #first: { readonly progress: Progress; readonly at: number } | undefined;
  #nextAt = 0;

  /**
   * @param what the work, such as `writing lease objects`
   * @param onlyTerminal whether a log gets nothing
   */
  constructor(
    private readonly io: Io,
    private readonly what: string,
    private readonly onlyTerminal = false,
  ) {
    // The log format is JSON exactly where standard error is no terminal.
    this.#isTerminal = io.logFormat !== 'json';
  }

  /** Shows the progress, if that is due. Work of another extent begins again. */
  readonly update = (progress: Progress): void => {
    const now = this.io.clock.monotonic();
    if (this.#first?.progress.of !== progress.of) {
      this.#first = { progress, at: now };
      this.#nextAt = now + (this.#isTerminal ? FIRST_MS : EVERY_MS.log);
    }
    if (now < this.#nextAt) return;
    this.#nextAt = now + (this.#isTerminal ? EVERY_MS.terminal : EVERY_MS.log);
    const text = this.#text(progress, progress.done - this.#first.progress.done, now - this.#first.at);
    if (this.#isTerminal) this.#draw(text);
    else if (!this.onlyTerminal) this.io.stderr(`nodelease: ${text}\n`);
  };

  /** Removes the line from a terminal. Idempotent. */
  readonly end = (): void => {
    if (this.#drawn > 0) this.io.stderr(`\r${' '.repeat(this.#drawn)}\r`);
    this.#drawn = 0;
    this.#first = undefined;
  };

  #text({ done, of }: Progress, doneSince: number, tookMs: number): string {
    const perSecond = tookMs > 0 ? (doneSince * 1_000) / tookMs : 0;
    const left =
      perSecond > 0
        ? `, ${Math.round(perSecond)}/s, ${formatDuration(((of - done) / perSecond) * 1_000)} left`
        : '';
    const filled = of > 0 ? Math.floor((BAR * done) / of) : BAR;
    const bar = this.#isTerminal ? ` [${'#'.repeat(filled)}${'.'.repeat(BAR - filled)}]` : ':';
    return `${this.what}${bar} ${done} of ${of}${left}`;
  }

  /** With blanks instead of an escape sequence, for dumb terminals. */
  #draw(text: string) {
    const line = text.slice(0, (this.io.screen()?.columns ?? COLUMNS) - 1);
    this.io.stderr(`\r${line.padEnd(this.#drawn)}`);
    this.#drawn = Math.max(this.#drawn, line.length);
  }
}
