import type { Io } from './io.js';

// Cursor hidden, and lines that are too long cut by the terminal instead of wrapped, which would shift what is below them.
const BEGIN = '\x1b[?25l\x1b[?7l';
const END = '\x1b[?7h\x1b[?25h';
const CLEAR = '\x1b[2J';
const HOME = '\x1b[H';
const ERASE_LINE = '\x1b[K';
const TO_END_OF_SCREEN = '\x1b[J';

/** A picture on a terminal that is drawn again and again in the same place, without flicker. */
export class Frame {
  #begun = false;

  constructor(private readonly io: Pick<Io, 'stdout'>) {}

  /** Draws. The caller sees to it that the lines fit the terminal, less one row. */
  draw(lines: readonly string[]): void {
    const start = this.#begun ? HOME : BEGIN + CLEAR + HOME;
    this.#begun = true;
    // Erased first: behind a line that fills its row the cursor still stands on the last character.
    this.io.stdout(`${start}${lines.map((line) => `${ERASE_LINE}${line}\n`).join('')}${TO_END_OF_SCREEN}`);
  }

  /** Gives the cursor back, below the last picture. Idempotent. */
  end(): void {
    if (this.#begun) this.io.stdout(END);
    this.#begun = false;
  }
}
