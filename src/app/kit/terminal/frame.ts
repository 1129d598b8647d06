import type { Io } from './io.js';

// The cursor hidden, and long lines cut by the terminal: a wrapped line would shift the lines below it.
const BEGIN = '\x1b[?25l\x1b[?7l';
const END = '\x1b[?7h\x1b[?25h';
const CLEAR = '\x1b[2J';
const HOME = '\x1b[H';
const ERASE_LINE = '\x1b[K';
const TO_END_OF_SCREEN = '\x1b[J';

/** Lines on a terminal that are drawn again and again in the same place, without flicker. */
export class Frame {
  #begun = false;

  constructor(private readonly io: Io) {}

  /** Draws the lines, which must fit the terminal, less one row. */
  draw(lines: readonly string[]): void {
    const start = this.#begun ? HOME : BEGIN + CLEAR + HOME;
    this.#begun = true;
    // Erased first: after a line that fills its row, the cursor is still on the last character.
    this.io.stdout(`${start}${lines.map((line) => `${ERASE_LINE}${line}\n`).join('')}${TO_END_OF_SCREEN}`);
  }

  /** Gives the cursor back, below the lines. Idempotent. */
  end(): void {
    if (this.#begun) this.io.stdout(END);
    this.#begun = false;
  }
}
