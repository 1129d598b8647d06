import { orAborted } from '../../core/base/abort.js';
import { explain } from '../../core/base/errors.js';
import { whileStoreIsBusy } from '../../core/lease/session/store-retry.js';
import { complain, fitLine, sayJson, sayLines } from './answer.js';
import { interruptible, watching } from './call.js';
import { ExitCode, type Io, type Screen } from './io.js';

/** How readings are shown. */
export interface ShowOptions {
  readonly json?: boolean;
  readonly watch?: boolean;
  /** Every row, also where they do not fit the terminal, and of a large cluster. */
  readonly all?: boolean;
  /** How many rows to show of a large cluster. @default what fits the terminal, else 100 */
  readonly limit?: number | undefined;
}

/** From the beginning of one reading to that of the next, in milliseconds. */
const WATCH_MS = 1_000;

/** What was read, in each of the forms in which it is shown. */
export interface StatusView {
  /** Whether there is no cluster. */
  readonly none?: boolean;
  report(): unknown;
  lines(screen: Screen | undefined, maxLines?: number): readonly string[];
}

/** Reads what is shown. */
export type Reader = (signal?: AbortSignal) => Promise<StatusView>;

/**
 * Shows readings, once or every second: a watch draws them in one place on a terminal, elsewhere one after the
 * other. It resolves to 0 when SIGINT or SIGTERM ends it. Only a failure of the first reading ends it; later
 * ones are shown. Without a watch it resolves to 69 where there is nothing.
 */
export async function show(
  read: Reader,
  request: ShowOptions,
  io: Io,
  signal?: AbortSignal,
): Promise<number> {
  if (request.watch) return watch(read, request, io);
  const screen = io.screen();
  // The prompt needs a line, too.
  const maxLines = screen && !request.all && request.limit === undefined ? screen.rows - 1 : undefined;
  const reading = await whileStoreIsBusy({ ...io, signal })(() => read(signal));
  if (request.json) sayJson(io, reading.report());
  else sayLines(io, reading.lines(screen, maxLines));
  return reading.none ? ExitCode.storeUnusable : ExitCode.ok;
}

async function watch(read: Reader, { json }: ShowOptions, io: Io): Promise<number> {
  const frame = new Frame(io);
  let reading: StatusView | undefined;
  try {
    return await interruptible(io, (signal) =>
      watching(signal, async () => {
        for (;;) {
          const begun = io.clock.monotonic();
          let failure: string | undefined;
          try {
            // A reading may take as long as the store's time-outs, longer than the user wants to wait.
            const next =
              reading === undefined ? whileStoreIsBusy({ ...io, signal })(() => read(signal)) : read(signal);
            reading = await orAborted(next, signal);
          } catch (error) {
            if (signal.aborted || reading === undefined) throw error;
            failure = explain(error);
          }
          const screen = io.screen();
          if (screen && !json) {
            // After a failure, a terminal keeps the last reading, with the failure below it.
            const lines = reading.lines(screen, Math.max(3, screen.rows - 2));
            frame.draw(
              failure === undefined ? lines : [...lines, fitLine(`as it was: ${failure}`, screen, 'red')],
            );
          } else if (failure !== undefined) complain(io, failure);
          else if (json) sayJson(io, reading.report());
          else sayLines(io, [...reading.lines(undefined), '']);
          // While a reader pauses, nothing is read for it.
          await orAborted(io.written(), signal);
          await io.clock.sleep(WATCH_MS - (io.clock.monotonic() - begun), signal);
        }
      }),
    );
  } finally {
    frame.end();
  }
}

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
