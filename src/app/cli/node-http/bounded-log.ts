import type { Clock } from '../../../core/base/clock.js';

/** Something for the log of another thread. */
export interface LogLine {
  readonly type: 'log';
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  /** Of a fault. */
  readonly stack?: string | undefined;
}

const LINES_A_SECOND = 20;

/**
 * Sends lines to the thread that writes the log, a few in a second: requests that fail must not keep it busy.
 */
export class BoundedLog {
  #secondBegan = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #left = 0;

  constructor(
    private readonly clock: Clock,
    private readonly send: (line: LogLine) => void,
  ) {}

  /** @param stack of a fault */
  write(level: LogLine['level'], message: string, stack?: string): void {
    const now = this.clock.monotonic();
    if (now - this.#secondBegan >= 1_000) {
      this.#secondBegan = now;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines > LINES_A_SECOND) {
      this.#left += 1;
      return;
    }
    const more = this.#left > 0 ? ` (before that, ${this.#left} lines were left out)` : '';
    this.#left = 0;
    this.send({ type: 'log', level, message: message + more, stack });
  }
}
